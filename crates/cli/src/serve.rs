//! `punctual serve`: takes in what `punctual send` sends.

pub(crate) mod guests;
mod view;

use std::time::{Duration, Instant, SystemTime};

use punctual::{CloseCode, Config, Receive};

use crate::failure::Failure;
use crate::listen::Listen;
use crate::{interrupt, output};
use guests::Guests;
use view::View;

/// Time between two looks at the sessions. A session holds 1,024 messages until then.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long a farewell may take to leave.
const FAREWELL: Duration = Duration::from_millis(100);

/// Take in the messages that `punctual send` sends from another machine.
///
/// Prints the URL that clients need. Runs until Ctrl-C or SIGTERM, then says goodbye to its clients and ends with exit code 0.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  punctual keygen --out server.key\n  punctual serve --listen 0.0.0.0:7777 --key server.key"
)]
pub(crate) struct Args {
    #[command(flatten)]
    listen: Listen,
    /// Print JSON objects, one a line, each with an `event` and the time, `unix_s`: `listening` {`urls`}, `connected` {`session`, `remote`,
    /// `identity` (of the client's token; null: none)}, each second `counts` and at the end `closed` {`session`, `remote`, `messages`, `bytes`, and `reason` at the end}.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let config = Config {
        // They are counted, not kept.
        receive: Receive::Pieces,
        ..Config::default()
    };
    let (endpoint, urls) = args.listen.open(config)?;
    interrupt::watch();
    let mut view = View::new(args.json);
    view.on_listening(&urls, &args.listen)?;
    let mut guests = Guests::default();
    while !interrupt::is_requested() {
        let arrival = endpoint
            .accept_timeout(LOOK_EVERY)
            .map_err(Failure::failed)?;
        if let Some(session) = arrival {
            view.on_connected(guests.admit(session))?;
        }
        for guest in guests.serve() {
            view.on_closed(&guest)?;
        }
        view.show(&guests)?;
    }
    for guest in guests.dismiss(CloseCode::SHUTDOWN, "the server was stopped") {
        view.on_closed(&guest)?;
    }
    // The endpoint's thread says goodbye as it goes; what was closed just now is to be on its way before.
    let until = Instant::now() + FAREWELL;
    while endpoint.sessions() > 0 && Instant::now() < until {
        std::thread::sleep(LOOK_EVERY);
    }
    endpoint.close();
    view.on_end(&guests)
}

/// Prints what happens as a line of JSON, with the time: seconds since 1970.
pub(crate) fn print_line(mut value: serde_json::Value) -> Result<(), Failure> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    value["unix_s"] = now.map_or(0.0, |now| now.as_millis() as f64 / 1e3).into();
    output::print(&format!("{value}\n"))
}
