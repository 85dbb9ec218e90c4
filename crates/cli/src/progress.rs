//! How far work is that takes longer than a second, on standard error: a bar on a terminal, a line now and then elsewhere, and with `--json` nothing.

use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;
use crate::terminal;

/// Columns of what stands beside the message: a bar that can still be seen, the percentage, the time that is left.
const BESIDE: usize = 28;
/// Time between two lines where nothing is redrawn.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A bar, lines, or nothing where nobody would see it.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Where there are lines: when the next one is.
    next_line: Option<Mutex<Instant>>,
}

impl Progress {
    /// A bar of `length` steps.
    pub(crate) fn new(length: u64, json: bool) -> Self {
        let is_terminal = io::stderr().is_terminal();
        if json || !is_terminal {
            let next_line = Mutex::new(Instant::now() + LINE_EVERY);
            return Self {
                bar: ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden()),
                next_line: (!json).then_some(next_line),
            };
        }
        let bar = ProgressBar::new(length);
        let style = ProgressStyle::with_template("{msg:>12} {wide_bar} {percent:>3} %  {eta} left")
            .expect("the template is a constant");
        bar.set_style(style);
        Self {
            bar,
            next_line: None,
        }
    }

    /// Something that turns, for work that does not say how far it is.
    pub(crate) fn turning(what: &'static str, json: bool) -> Self {
        let is_hidden = json || !io::stderr().is_terminal();
        let bar = if is_hidden {
            ProgressBar::hidden()
        } else {
            let bar = ProgressBar::new_spinner().with_message(what);
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        };
        Self {
            bar,
            next_line: None,
        }
    }

    /// `position` steps are done; `what` is being done.
    pub(crate) fn show(&self, position: u64, what: &str) {
        if let Some(next_line) = &self.next_line {
            return self.show_line(position, what, next_line);
        }
        if self.bar.is_hidden() {
            return;
        }
        let what = terminal::cut(what, BESIDE);
        if self.bar.message() != what {
            self.bar.set_message(what);
        }
        self.bar.set_position(position);
    }

    fn show_line(&self, position: u64, what: &str, next_line: &Mutex<Instant>) {
        let now = Instant::now();
        let mut next_line = next_line.lock().unwrap_or_else(PoisonError::into_inner);
        if now >= *next_line {
            *next_line = now + LINE_EVERY;
            let length = self.bar.length().unwrap_or(1).max(1);
            let percent = u128::from(position) * 100 / u128::from(length);
            output::note(&format!("{percent} % done; {what}"));
        }
    }

    /// Takes the bar away, before anything is printed.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
