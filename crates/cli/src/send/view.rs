//! What is seen while messages are sent: a line that is redrawn on a terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::tally::Tally;
use crate::output;
use crate::scoreboard::{count, percent};
use crate::terminal;

/// Time between two lines where nothing is redrawn.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Time between two drawings.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// Where it is shown.
pub(super) struct View {
    bar: Option<ProgressBar>,
    is_silent: bool,
    next: Instant,
}

impl View {
    pub(super) fn new(messages: u64, json: bool) -> Self {
        let is_terminal = io::stderr().is_terminal();
        let bar = is_terminal.then(|| {
            let style =
                ProgressStyle::with_template("{msg}\n{wide_bar} {percent:>3} %  {eta} left");
            let bar = ProgressBar::new(messages);
            bar.set_style(style.expect("the template is a constant"));
            bar
        });
        let first = if is_terminal { DRAW_EVERY } else { LINE_EVERY };
        Self {
            bar,
            is_silent: json && !is_terminal,
            next: Instant::now() + first,
        }
    }

    pub(super) fn show(&mut self, tally: &Tally) {
        let now = Instant::now();
        if self.is_silent || now < self.next {
            return;
        }
        match &self.bar {
            Some(bar) => {
                bar.set_position(tally.resolved());
                bar.set_message(terminal::cut(&line(tally, now), 0));
                self.next = now + DRAW_EVERY;
            }
            None => {
                output::note(&line(tally, now));
                self.next = now + LINE_EVERY;
            }
        }
    }

    /// Takes it away, before results are printed.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What is known of the messages sent so far, by their outcomes and deadlines: those add up. Latencies are of the messages that arrived.
fn line(tally: &Tally, now: Instant) -> String {
    let overdue = tally.overdue(now);
    let late = tally.late() + overdue;
    let known = tally.on_time() + late;
    let share = late as f64 / known.max(1) as f64;
    let superseded = match tally.superseded() {
        0 => String::new(),
        superseded => format!(", {} superseded", count(superseded)),
    };
    let quantile = |quantile| {
        tally
            .quantile_ms(quantile)
            .map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"))
    };
    format!(
        "{} sent: {} late ({}), {} on time{superseded}, {} waiting; arrived within p50 {} p99 {} ms",
        count(tally.sent()),
        count(late),
        percent(share),
        count(tally.on_time()),
        count(tally.outstanding() - overdue),
        quantile(0.5),
        quantile(0.99)
    )
}

#[cfg(test)]
mod tests {
    use punctual::{MessageId, MissReason, Outcome};

    use super::*;

    /// Goal: a reader can tell what is counted.   Method: one message of each fate; the counts add up to those sent.
    #[test]
    fn the_line_says_what_it_counts() {
        let mut tally = Tally::default();
        let now = Instant::now();
        assert_eq!(
            line(&tally, now),
            "0 sent: 0 late (0 %), 0 on time, 0 waiting; arrived within p50 - p99 - ms"
        );
        (0..4).for_each(|id| tally.on_sent(MessageId(id), None));
        let (latency, bound) = (Duration::from_millis(20), Duration::ZERO);
        tally.on_outcome(MessageId(0), Outcome::OnTime { latency, bound });
        let why = MissReason::Loss;
        tally.on_outcome(MessageId(1), Outcome::Dropped { why });
        tally.on_outcome(MessageId(2), Outcome::Superseded);
        let expected = "4 sent: 1 late (50.0 %), 1 on time, 1 superseded, 1 waiting; arrived within p50 20.0 p99 20.0 ms";
        assert_eq!(line(&tally, now), expected);
        // Throughout an outage nothing was late.
        let deadline = Some(now + Duration::from_millis(150));
        (4..6).for_each(|id| tally.on_sent(MessageId(id), deadline));
        let after = now + Duration::from_millis(151);
        let line = line(&tally, after);
        assert!(
            line.starts_with("6 sent: 3 late (75.0 %), 1 on time, 1 superseded, 1 waiting"),
            "{line}"
        );
    }
}
