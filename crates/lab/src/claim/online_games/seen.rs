//! What an arm over TCP did, by connection.

use std::time::Duration;

use super::THEN;
use crate::arena::ArmRun;
use crate::arm::{Exchange, MESSAGE_MIN, NEVER, Script, Sender, Tcp};
use crate::claim::{Here, Sum, mean, row, share, sum};
use crate::report::Unit;
use crate::reproduce::Row;
use crate::tcp_trace::{
    Connection, Delivery, Held, Profile, SenderSide, TrafficShares, deliveries, held,
};

/// What a TCP arm did, by connection.
pub(super) struct Seen<'a> {
    pub(super) run: &'a ArmRun<Exchange>,
    pub(super) connections: Vec<Traced>,
}

pub(super) struct Traced {
    pub(super) server: SenderSide,
    pub(super) client: SenderSide,
    pub(super) shares: [TrafficShares; 2],
    pub(super) deliveries: Vec<Delivery>,
    /// Of the server's messages, and of the client's.
    pub(super) held: [Vec<Held>; 2],
}
impl<'a> Seen<'a> {
    pub(super) fn new(
        script: &Script,
        began: Duration,
        run: &'a ArmRun<Exchange>,
        connections: &[Connection],
    ) -> Self {
        let profile = Profile {
            has_probes: !run.name.contains("2006"),
        };
        let traced = |connection: &Connection| {
            let server = SenderSide::new(connection, Sender::Server, profile)?;
            let client = SenderSide::new(connection, Sender::Client, profile)?;
            let held =
                [(Sender::Server, &server), (Sender::Client, &client)].map(|(from, side)| {
                    let sent_us = &run.played.ways[from as usize].sent_us;
                    let sent_us = sent_us.get(connection.flow as usize);
                    let planned = &script.messages[from as usize][connection.flow as usize];
                    let writes = sent_us.into_iter().flatten().zip(planned);
                    let writes = writes.filter(|(sent, _)| **sent != NEVER);
                    let writes = writes.map(|(&sent, planned)| {
                        let at = began + Duration::from_micros(u64::from(sent));
                        let bytes = u64::from(planned.bytes.max(MESSAGE_MIN as u32));
                        (at.as_nanos() as u64, bytes + Tcp::FRAMING_BYTES)
                    });
                    held(&side.segments, writes)
                });
            (!server.segments.is_empty()).then(|| Traced {
                deliveries: deliveries(connection, Sender::Server, &server.segments),
                shares: [Sender::Server, Sender::Client]
                    .map(|from| TrafficShares::new(connection, from)),
                server,
                client,
                held,
            })
        };
        Self {
            run,
            connections: connections.iter().filter_map(traced).collect(),
        }
    }

    pub(super) fn is_then(&self) -> bool {
        self.run.name == THEN
    }

    pub(super) fn row(&self, what: &str, unit: Unit, paper: Option<f64>, here: Here) -> Row {
        row(&self.run.name, what, unit, paper, here)
    }

    /// A mean over everything in all connections.
    pub(super) fn over(&self, group: impl Fn(&Traced) -> Sum) -> Here {
        mean(&self.connections.iter().map(group).collect::<Vec<_>>())
    }

    /// A share of everything in all connections.
    pub(super) fn share_of(&self, group: impl Fn(&Traced) -> Sum) -> Here {
        share(&self.connections.iter().map(group).collect::<Vec<_>>())
    }
}

/// Which packets.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Of {
    All,
    Once,
    Again,
}

/// A number of some packets of a connection; None when there are too few.
pub(super) type Number = fn(&Traced, Of) -> Option<f64>;

impl Traced {
    pub(super) const fn side(&self, from: Sender) -> &SenderSide {
        match from {
            Sender::Server => &self.server,
            Sender::Client => &self.client,
        }
    }

    /// From departure to acknowledgement, of the server's packets.
    pub(super) fn latencies_ms(&self, of: Of) -> impl Iterator<Item = f64> + Clone + '_ {
        let segments = self.server.segments.iter();
        let chosen = segments.filter(move |segment| match of {
            Of::All => true,
            Of::Once => segment.copies == 0,
            Of::Again => segment.copies > 0,
        });
        chosen.filter_map(|segment| Some((segment.acknowledged_ns? - segment.sent_ns) as f64 / 1e6))
    }

    pub(super) fn mean_ms(&self, of: Of) -> Option<f64> {
        let (sum, of) = sum(self.latencies_ms(of));
        (of > 0.0).then(|| sum / of)
    }

    /// Standard deviation; None with fewer than two.
    pub(super) fn sd_ms(&self, of: Of) -> Option<f64> {
        let mean = self.mean_ms(of)?;
        let (squares, of) = sum(self.latencies_ms(of).map(|ms| (ms - mean) * (ms - mean)));
        (of > 1.0).then(|| libm::sqrt(squares / (of - 1.0)))
    }

    /// Whether packets that were sent again raise something by more than a share: 1 or 0; None for connections without any.
    pub(super) fn expands(&self, number: Number, least: f64) -> Option<f64> {
        let has_loss = !self.server.retransmissions.is_empty();
        let once = number(self, Of::Once).filter(|_| has_loss)?;
        let all = number(self, Of::All)?;
        Some(f64::from(u8::from(all > once * (1.0 + least))))
    }
}
