//! A scenario without streams: its network is held open for other programs.

use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use punctual_lab::emulator::{FIRST_CLIENT, Privilege, SERVER, Site};
use punctual_lab::scenario::Scenario;
use serde_json::json;

use super::sockets::{self, Notes};
use crate::failure::Failure;
use crate::lab::inside::emulator_failed;
use crate::lab::packets;
use crate::progress::Progress;
use crate::{interrupt, output};

/// How often what crossed the network is shown.
const LOOK: Duration = Duration::from_millis(200);

/// Holds the network until Ctrl-C, or the end of its seconds.
pub(super) fn hold(
    scenario: &Scenario,
    seed: u64,
    notes: Notes,
    privilege: Privilege,
    json: bool,
) -> Result<(), Failure> {
    if scenario.rivals.is_some() {
        return Err(Failure::bad_input(
            "a scenario without streams only holds its network open: leave `rivals` out, and run what you like on it",
        ));
    }
    let mut emulator = sockets::start(scenario, seed, notes)?;
    if let Some(link) = scenario.link {
        emulator.begin_link(link.into());
    }
    let last = Ipv4Addr::from_bits(FIRST_CLIENT.to_bits() + scenario.sessions - 1);
    let clients = match scenario.sessions {
        1 => format!("{FIRST_CLIENT}"),
        _ => format!("{FIRST_CLIENT} to {last}"),
    };
    let enter = |site| {
        let user = match privilege {
            Privilege::Root => String::new(),
            Privilege::UserNamespace => format!(
                "--preserve-credentials --user=/proc/{}/ns/user ",
                std::process::id()
            ),
        };
        let path = emulator.namespace(0, site).path();
        format!("nsenter {user}--net={path} PROGRAM")
    };
    output::note(&format!(
        "The network is up for {} s, or until Ctrl-C: the server is {SERVER}, clients are {clients}.\n\
         At the server's end: {}\nAt the clients' end: {}",
        scenario.duration.as_secs_f64(),
        enter(Site::Server),
        enter(Site::Client),
    ));
    let progress = Progress::new(scenario.duration.as_millis() as u64, json);
    let begin = Instant::now();
    while begin.elapsed() < scenario.duration && !interrupt::is_requested() {
        thread::sleep(LOOK.min(scenario.duration.saturating_sub(begin.elapsed())));
        let report = emulator.report().map_err(emulator_failed)?;
        let packets = packets::sentence(&report);
        progress.show(begin.elapsed().as_millis() as u64, &packets);
    }
    progress.clear();
    let report = emulator.stop().map_err(emulator_failed)?;
    if json {
        let mut object = packets::numbers(&report);
        object.insert("command".to_owned(), json!(output::command_line()));
        object.insert("scenario".to_owned(), json!(scenario.name));
        output::print_json(&object)?;
    } else {
        output::print(&packets::text(&report))?;
    }
    packets::check_written(&report)
}
