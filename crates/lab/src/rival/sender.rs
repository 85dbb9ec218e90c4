//! The sending side of a rival: what is under way, what is lost, and what may go.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::{Cubic, RivalStats, Segment};
use crate::world::Moment;

/// Packets sent later that must have arrived before one counts as lost.
const REORDERING: u64 = 3;
/// The least timeout, as in Linux (RFC 6298 has one second).
const TIMEOUT_MIN: Duration = Duration::from_millis(200);
/// The longest timeout.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    UnderWay,
    Acked,
    Lost,
}

#[derive(Debug)]
struct Sent {
    position: u64,
    at: Moment,
    state: State,
}

#[derive(Debug, Default)]
pub(crate) struct Sender {
    cubic: Cubic,
    /// Transmissions from number `first` on.
    sent: VecDeque<Sent>,
    first: u64,
    under_way: u64,
    next_position: u64,
    /// Data to send again.
    lost: BTreeSet<u64>,
    largest_acked: Option<u64>,
    /// Losses of transmissions below this number are the same event.
    recovery_end: u64,
    rtt: Option<(Duration, Duration)>,
    timeout_at: Option<Moment>,
    backoff: u32,
    stats: RivalStats,
}

impl Sender {
    pub(crate) const fn stats(&self) -> RivalStats {
        self.stats
    }

    pub(crate) const fn window(&self) -> f64 {
        self.cubic.window()
    }

    pub(crate) const fn timeout_at(&self) -> Option<Moment> {
        self.timeout_at
    }

    /// The next packet, if the window has room: lost data first, then new data, of which there is no end.
    pub(crate) fn poll_send(&mut self, now: Moment) -> Option<Segment> {
        if self.under_way + 1 > self.cubic.window().max(1.0) as u64 {
            return None;
        }
        let position = self.lost.pop_first().unwrap_or_else(|| {
            self.next_position += 1;
            self.next_position - 1
        });
        let number = self.first + self.sent.len() as u64;
        self.sent.push_back(Sent {
            position,
            at: now,
            state: State::UnderWay,
        });
        self.under_way += 1;
        self.stats.sent += 1;
        if self.timeout_at.is_none() {
            self.timeout_at = Some(now.after(self.timeout()));
        }
        Some(Segment { number, position })
    }

    /// An acknowledgement of these transmissions.
    pub(crate) fn on_ack(&mut self, now: Moment, numbers: &[u64]) {
        let mut acked = 0.0;
        let mut newest_at = None;
        for &number in numbers {
            let Some(index) = number.checked_sub(self.first) else {
                continue;
            };
            let Some(sent) = self.sent.get_mut(index as usize) else {
                continue;
            };
            match sent.state {
                State::UnderWay => self.under_way -= 1,
                // It was late, not lost; its data goes again if it has not yet.
                State::Lost => {
                    self.lost.remove(&sent.position);
                }
                State::Acked => continue,
            }
            sent.state = State::Acked;
            acked += 1.0;
            newest_at = newest_at.max(Some(sent.at));
            self.largest_acked = self.largest_acked.max(Some(number));
        }
        if let Some(at) = newest_at {
            self.record_rtt(now.since(at));
            self.backoff = 0;
            self.timeout_at = Some(now.after(self.timeout()));
        }
        let is_in_recovery = self.largest_acked.is_some_and(|n| n < self.recovery_end);
        self.find_losses();
        if acked > 0.0 && !is_in_recovery {
            let rtt = self.rtt.map_or(0.1, |(smoothed, _)| smoothed.as_secs_f64());
            self.cubic.on_acked(now.0 as f64 / 1e9, acked, rtt);
        }
        while self
            .sent
            .front()
            .is_some_and(|sent| sent.state != State::UnderWay)
        {
            self.sent.pop_front();
            self.first += 1;
        }
        if self.under_way == 0 && self.lost.is_empty() {
            self.timeout_at = None;
        }
    }

    fn find_losses(&mut self) {
        let Some(overtaken) = self
            .largest_acked
            .and_then(|n| (n + 1).checked_sub(REORDERING))
        else {
            return;
        };
        let mut newest_lost = None;
        let count = overtaken.saturating_sub(self.first) as usize;
        for (index, sent) in self.sent.iter_mut().take(count).enumerate() {
            if sent.state == State::UnderWay {
                sent.state = State::Lost;
                self.under_way -= 1;
                self.stats.lost += 1;
                self.lost.insert(sent.position);
                newest_lost = Some(self.first + index as u64);
            }
        }
        if newest_lost.is_some_and(|number| number >= self.recovery_end) {
            self.recovery_end = self.first + self.sent.len() as u64;
            self.cubic.on_loss();
        }
    }

    /// The timer went off: everything under way counts as lost (RFC 6298 section 5).
    pub(crate) fn on_timeout(&mut self, now: Moment) {
        self.timeout_at = None;
        for sent in &mut self.sent {
            if sent.state == State::UnderWay {
                sent.state = State::Lost;
                self.stats.lost += 1;
                self.lost.insert(sent.position);
            }
        }
        self.under_way = 0;
        self.stats.timeouts += 1;
        self.backoff += 1;
        self.recovery_end = self.first + self.sent.len() as u64;
        self.cubic.on_timeout(self.backoff > 1);
        self.timeout_at = Some(now.after(self.timeout()));
    }

    fn record_rtt(&mut self, sample: Duration) {
        self.rtt = Some(match self.rtt {
            None => (sample, sample / 2),
            Some((smoothed, variation)) => (
                (smoothed * 7 + sample) / 8,
                (variation * 3 + smoothed.abs_diff(sample)) / 4,
            ),
        });
    }

    fn timeout(&self) -> Duration {
        let base = self
            .rtt
            .map_or(Duration::from_secs(1), |(smoothed, variation)| {
                (smoothed + variation * 4).max(TIMEOUT_MIN)
            });
        (base * (1 << self.backoff.min(8))).min(TIMEOUT_MAX)
    }
}
