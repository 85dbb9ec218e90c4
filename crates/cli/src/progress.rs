//! A bar on standard error for work that takes longer than a second: on a terminal only, and never with `--json`.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal;

/// Columns of what stands beside the message: a bar that can still be seen, the percentage, the time that is left.
const BESIDE: usize = 28;

/// A bar, or nothing where nobody would see it.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar of `length` steps; hidden with `json` or when standard error is not a terminal.
    pub(crate) fn new(length: u64, json: bool) -> Self {
        let is_hidden = json || !io::stderr().is_terminal();
        if is_hidden {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(length);
        let style = ProgressStyle::with_template("{msg:>12} {wide_bar} {percent:>3} %  {eta} left")
            .expect("the template is a constant");
        bar.set_style(style);
        Self(bar)
    }

    /// Something that turns, for work that does not say how far it is.
    pub(crate) fn turning(what: &'static str, json: bool) -> Self {
        let is_hidden = json || !io::stderr().is_terminal();
        if is_hidden {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::new_spinner().with_message(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// `position` steps are done; `what` is being done.
    pub(crate) fn show(&self, position: u64, what: &str) {
        if self.0.is_hidden() {
            return;
        }
        let what = terminal::cut(what, BESIDE);
        if self.0.message() != what {
            self.0.set_message(what);
        }
        self.0.set_position(position);
    }

    /// Takes the bar away, before anything is printed.
    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}
