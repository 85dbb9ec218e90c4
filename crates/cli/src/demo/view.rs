//! What is seen while the demo runs: lines that are redrawn on a terminal, a line now and then elsewhere, nothing with `--json`
//! unless a terminal watches. All of it on standard error.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::board::{Board, Counts, get};
use super::settings::{POLICIES, Settings};
use crate::output;
use crate::scoreboard::{count, percent};
use crate::terminal;

/// Time between two lines where nothing is redrawn.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Where it is shown.
pub(super) struct View {
    clients: u32,
    seconds: u32,
    form: Form,
}

enum Form {
    Redrawn {
        time: ProgressBar,
        lanes: Vec<ProgressBar>,
    },
    Lines {
        next: Instant,
    },
    Silent,
}

impl View {
    pub(super) fn new(settings: &Settings, json: bool) -> Self {
        let form = if io::stderr().is_terminal() {
            redrawn(settings)
        } else if json {
            Form::Silent
        } else {
            Form::Lines {
                next: Instant::now() + LINE_EVERY,
            }
        };
        Self {
            clients: settings.clients,
            seconds: settings.seconds,
            form,
        }
    }

    pub(super) fn show_connecting(&mut self, connected: u32) {
        if let Form::Redrawn { time, .. } = &self.form {
            time.set_message(format!(
                "connecting  {connected} of {} clients",
                self.clients
            ));
            time.tick();
        }
    }

    pub(super) fn show_sending(&mut self, board: &Board, since: Duration) {
        let seconds = since.as_secs().min(u64::from(self.seconds));
        self.show(
            board,
            since,
            &format!("sending     {seconds} of {} s", self.seconds),
        );
    }

    pub(super) fn show_draining(&mut self, board: &Board) {
        let whole = Duration::from_secs(u64::from(self.seconds));
        self.show(board, whole, "waiting for the last messages");
    }

    fn show(&mut self, board: &Board, since: Duration, what: &str) {
        match &mut self.form {
            Form::Redrawn { time, lanes } => {
                time.set_position(since.as_millis() as u64);
                time.set_message(what.to_owned());
                for (bar, counts) in lanes.iter().zip(&board.lanes) {
                    bar.set_message(terminal::cut(&line(counts), 14));
                }
            }
            Form::Lines { next } if Instant::now() >= *next => {
                *next += LINE_EVERY;
                let late = |(kind, counts): (&_, &Counts)| format!("{kind} {}", late(counts));
                let lanes: Vec<String> = POLICIES.iter().zip(&board.lanes).map(late).collect();
                output::note(&format!(
                    "{}: late so far {}",
                    what.replace("     ", " "),
                    lanes.join(", ")
                ));
            }
            Form::Lines { .. } | Form::Silent => {}
        }
    }

    /// Takes away what is redrawn, before results are printed.
    pub(super) fn clear(&self) {
        if let Form::Redrawn { time, lanes } = &self.form {
            lanes.iter().for_each(ProgressBar::finish_and_clear);
            time.finish_and_clear();
        }
    }
}

fn redrawn(settings: &Settings) -> Form {
    let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(8));
    let style =
        |template| ProgressStyle::with_template(template).expect("the template is a constant");
    let time = all.add(ProgressBar::new(u64::from(settings.seconds) * 1000));
    time.set_style(style("{msg:30} {wide_bar}"));
    let lane = |kind: punctual_policy::PolicyKind| {
        let bar = all.add(ProgressBar::new_spinner());
        bar.set_style(style("  {prefix:12}{msg}"));
        bar.set_prefix(kind.to_string());
        bar
    };
    Form::Redrawn {
        time,
        lanes: POLICIES.map(lane).into(),
    }
}

fn line(counts: &Counts) -> String {
    let (sent, arrived) = (get(&counts.sent), get(&counts.arrived));
    format!(
        "{} of {:>9}; {} under way",
        late(counts),
        count(arrived),
        count(sent.saturating_sub(arrived))
    )
}

/// `12 late (0.05 %)`.
fn late(counts: &Counts) -> String {
    let (arrived, late) = (get(&counts.arrived), get(&counts.late));
    let share = late as f64 / arrived.max(1) as f64;
    format!("{:>5} late ({})", count(late), percent(share))
}
