//! What a client has seen of its probes: those that are settled become rows of the trace, in the order of leaving.

use std::collections::BTreeMap;
use std::time::Duration;

use punctual_proto::Instant;

use super::clocks::{Clocks, Exchange, Offsets};
use super::packet::{MeasuredPacket, Way};

/// A probe whose story is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settled {
    pub(super) message: u32,
    pub(super) index: u8,
    pub(super) attempt: u8,
    pub(super) departed: Instant,
    pub(super) up: Up,
    /// When its echo came.
    pub(super) heard: Option<Instant>,
}

/// What is known of its way up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Up {
    /// The server's clock at its arrival, and how long the echo was held (`None`: none was sent).
    Arrived {
        at_us: u32,
        held: Option<Duration>,
    },
    Lost,
    Unknown,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// By number; those before an unsettled one wait for it.
    settled: BTreeMap<u32, Settled>,
    offsets: Offsets,
    rows: Vec<MeasuredPacket>,
    /// Rows that the server was sent.
    uploaded: usize,
}

impl Ledger {
    pub(super) fn push(&mut self, number: u32, settled: Settled) {
        self.settled.insert(number, settled);
    }

    /// Packets so far.
    pub(super) fn len(&self) -> usize {
        self.settled.len() + self.rows.len()
    }

    /// Settled packets that are in no row yet.
    pub(super) fn waiting(&self) -> usize {
        self.settled.len()
    }

    /// Makes rows of all before `number`, the first that is not settled.
    pub(super) fn write_rows(&mut self, began: Instant, number: u32) {
        let later = self.settled.split_off(&number);
        let ready = std::mem::replace(&mut self.settled, later);
        let exchanges = ready.values().filter_map(Settled::exchange);
        self.offsets.add(exchanges);
        let from = self.rows.len();
        let earliest = self.rows.last().map_or(Duration::ZERO, |row| row.sent);
        for settled in ready.values() {
            let row = settled.row(began, &mut self.offsets);
            self.rows.push(MeasuredPacket {
                sent: row.sent.max(earliest),
                ..row
            });
        }
        self.rows[from..].sort_by_key(|row| row.sent);
    }

    /// The next rows for the server, at most `count`.
    pub(super) fn take_part(&mut self, count: usize) -> Vec<MeasuredPacket> {
        let end = self.rows.len().min(self.uploaded + count);
        let part = self.rows[self.uploaded..end].to_vec();
        self.uploaded = end;
        part
    }

    pub(super) fn has_more(&self) -> bool {
        self.uploaded < self.rows.len()
    }

    /// All rows, and how far their one-way delays can be trusted.
    pub(super) fn finish(&mut self) -> (Vec<MeasuredPacket>, Option<Clocks>) {
        (std::mem::take(&mut self.rows), self.offsets.clocks())
    }
}

impl Settled {
    /// The round trip, without what the server held.
    fn rtt(&self) -> Option<Duration> {
        let Up::Arrived { held, .. } = self.up else {
            return None;
        };
        let whole = self.heard?.since(self.departed);
        whole.checked_sub(held.unwrap_or_default())
    }

    fn exchange(&self) -> Option<Exchange> {
        match self.up {
            Up::Arrived { at_us, .. } => Some(Exchange::new(self.departed, at_us, self.rtt()?)),
            _ => None,
        }
    }

    fn row(&self, began: Instant, offsets: &mut Offsets) -> MeasuredPacket {
        let (up, down) = match self.up {
            Up::Lost => (Way::Lost, Way::Unknown),
            Up::Unknown => (Way::Unknown, Way::Unknown),
            Up::Arrived { at_us, held } => {
                let up = offsets.one_way(self.departed, at_us);
                match (self.rtt(), held) {
                    (Some(rtt), _) => {
                        // Both ways together are the round trip, whatever the offset.
                        let rtt = Duration::from_micros(rtt.as_micros() as u64);
                        let up = up.unwrap_or_default().min(rtt);
                        (Way::Took(up), Way::Took(rtt - up))
                    }
                    (None, Some(_)) => (up.map_or(Way::Unknown, Way::Took), Way::Lost),
                    (None, None) => (up.map_or(Way::Unknown, Way::Took), Way::Unknown),
                }
            }
        };
        let sent = self.departed.since(began);
        MeasuredPacket {
            sent: Duration::from_micros(sent.as_micros() as u64),
            message: self.message,
            index: self.index,
            attempt: self.attempt,
            up,
            down,
        }
    }
}
