//! Both ends together: when content arrived, when it could be read, and how long it waited before it was sent.

use super::{Connection, Segment};
use crate::arm::Sender;

/// When what never happens does.
pub const NEVER_NS: u64 = u64::MAX;

/// What became of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// When it was first sent, in nanoseconds since the network began.
    pub sent_ns: u64,
    /// When all of it had arrived; [`NEVER_NS`] if it never did.
    pub arrived_ns: u64,
    /// When everything before it had arrived too: TCP hands it on then; [`NEVER_NS`] from the first on that never arrived.
    pub readable_ns: u64,
}

impl Delivery {
    /// From sending to arrival, or [`NEVER_NS`].
    pub const fn transport_ns(&self) -> u64 {
        since(self.arrived_ns, self.sent_ns)
    }

    /// From sending to when it could be read, or [`NEVER_NS`].
    pub const fn application_ns(&self) -> u64 {
        since(self.readable_ns, self.sent_ns)
    }

    /// How long it waited for what was sent before it, if it ever arrived and could be read.
    pub const fn waited_ns(&self) -> Option<u64> {
        match self.readable_ns {
            NEVER_NS => None,
            readable_ns => Some(readable_ns.saturating_sub(self.arrived_ns)),
        }
    }
}

const fn since(then_ns: u64, before_ns: u64) -> u64 {
    match then_ns {
        NEVER_NS => NEVER_NS,
        then_ns => then_ns.saturating_sub(before_ns),
    }
}

/// What became of the segments that an end sent.
pub fn deliveries(connection: &Connection, from: Sender, segments: &[Segment]) -> Vec<Delivery> {
    let Some(base) = connection.base(from) else {
        return Vec::new();
    };
    let mut arrived_ns: Vec<Option<u64>> = vec![None; segments.len()];
    for packet in connection.seen_at(from.other()) {
        if packet.from != from || packet.payload_bytes() == 0 || packet.is_control() {
            continue;
        }
        let place = packet.sequence.wrapping_sub(base).cast_signed();
        let Ok(start) = u64::try_from(place) else {
            continue;
        };
        let end = start + u64::from(packet.payload_bytes());
        let first = segments.partition_point(|segment| segment.start < start);
        for (segment, arrived_ns) in segments[first..].iter().zip(&mut arrived_ns[first..]) {
            if segment.end > end {
                break;
            }
            arrived_ns.get_or_insert(packet.at_ns);
        }
    }
    let mut readable_ns = 0;
    let mut deliveries = Vec::new();
    for (segment, arrived) in segments.iter().zip(&arrived_ns) {
        let arrived_ns = arrived.unwrap_or(NEVER_NS);
        readable_ns = readable_ns.max(arrived_ns);
        deliveries.push(Delivery {
            sent_ns: segment.sent_ns,
            arrived_ns,
            readable_ns,
        });
    }
    deliveries
}

/// A message that the application wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// From writing until its last byte was first sent.
    pub held_ns: u64,
    /// Whether that was in a train of segments which began after a pause longer than the timeout.
    pub is_in_restarted_train: bool,
}

/// How long messages waited at the sender. `writes` has when each was written, in nanoseconds since the network began, and its bytes
/// with what frames them; ends with the first that was never sent.
pub fn held(segments: &[Segment], writes: impl IntoIterator<Item = (u64, u64)>) -> Vec<Held> {
    let mut written = 0;
    let mut held = Vec::new();
    for (at_ns, bytes) in writes {
        written += bytes;
        let place = segments.partition_point(|segment| segment.end < written);
        let Some(segment) = segments.get(place) else {
            break;
        };
        held.push(Held {
            held_ns: segment.sent_ns.saturating_sub(at_ns),
            is_in_restarted_train: segment.is_in_restarted_train,
        });
    }
    held
}
