//! One direction of a connection as its sender saw it.

use super::cause::{AckKind, fast_failure};
use super::round_trip::RoundTrip;
use super::{Cause, Connection, FastFailure, Packet};
use crate::arm::Sender;

/// What is sent so soon after an acknowledgement was sent because of it. A busy machine takes milliseconds.
const ACK_CLOCKED_NS: u64 = 5_000_000;
/// Duplicate acknowledgements of the classic fast retransmit (RFC 5681).
const DUPLICATES: usize = 3;

/// What is known of the sender's kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Whether it sends tail loss probes. With a single segment under way their timer is that of the timeout.
    pub has_probes: bool,
}

/// Content that was sent as one packet, the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Its first byte, from 0 on.
    pub start: u64,
    /// After its last byte.
    pub end: u64,
    /// When it was first sent, in nanoseconds since the network began.
    pub sent_ns: u64,
    /// When it was last sent.
    last_sent_ns: u64,
    /// How often it was sent again.
    pub copies: u32,
    /// When the sender first heard that it had arrived.
    pub acknowledged_ns: Option<u64>,
    /// When a SACK block first covered it.
    sacked_ns: Option<u64>,
    /// Whether nothing was under way, and nothing had been sent for longer than the timeout: senders then begin with a small
    /// window again (RFC 5681, 4.1).
    pub is_restart: bool,
    /// Whether it follows such a one without a pause in which everything was acknowledged.
    pub is_in_restarted_train: bool,
}

/// A segment that was sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retransmission {
    /// When.
    pub at_ns: u64,
    /// Which, in [`SenderSide::segments`]; the first of those that it repeats.
    pub segment: usize,
    /// 1 for the first copy.
    pub copy: u32,
    /// Why.
    pub cause: Cause,
    /// For a first copy: why 4.4BSD's fast retransmit would not have been there by then.
    pub fast_failure: Option<FastFailure>,
    /// Whether the receiver said that it had it already (RFC 2883).
    pub is_spurious: bool,
}

/// What a sender did.
#[derive(Debug, Clone, Default)]
pub struct SenderSide {
    /// In the order of their bytes.
    pub segments: Vec<Segment>,
    /// In the order of time.
    pub retransmissions: Vec<Retransmission>,
    /// Least round trip of segments that were sent once; None without any.
    pub rtt_min_ns: Option<u64>,
}

impl SenderSide {
    /// None for a connection whose beginning is missing.
    pub fn new(connection: &Connection, from: Sender, profile: Profile) -> Option<Self> {
        let mut walk = Walk {
            base: connection.base(from)?,
            has_sack: connection.has_sack(),
            profile,
            side: Self::default(),
            acknowledged: 0,
            sent: 0,
            round_trip: RoundTrip::default(),
            last_data_ns: None,
            last_ack_ns: 0,
            window: None,
            duplicates_ns: Vec::new(),
            acks: Vec::new(),
            probed: false,
            timeout_until: 0,
            fast_until: 0,
        };
        for packet in connection.seen_at(from) {
            if packet.is_control() {
                continue;
            }
            if packet.from == from {
                walk.on_sent(packet);
            } else {
                walk.on_received(packet);
            }
        }
        Some(walk.side)
    }
}

struct Walk {
    base: u32,
    has_sack: bool,
    profile: Profile,
    side: SenderSide,
    /// All before this byte.
    acknowledged: u64,
    /// All before this byte.
    sent: u64,
    round_trip: RoundTrip,
    last_data_ns: Option<u64>,
    last_ack_ns: u64,
    /// Of the last acknowledgement.
    window: Option<u16>,
    /// Duplicate acknowledgements since the last new one.
    duplicates_ns: Vec<u64>,
    acks: Vec<(u64, AckKind)>,
    /// Whether a probe has been sent since the last new acknowledgement.
    probed: bool,
    /// What a timeout, or a fast retransmit, found under way.
    timeout_until: u64,
    fast_until: u64,
}

impl Walk {
    /// Bytes from the beginning; None for numbers before it (keep-alives of an idle beginning).
    fn place(&self, number: u32) -> Option<u64> {
        // Half of the numbers lie ahead: more than any connection here carries.
        u64::try_from(number.wrapping_sub(self.base).cast_signed()).ok()
    }

    fn on_sent(&mut self, packet: &Packet) {
        let payload = u64::from(packet.payload_bytes());
        let Some(start) = self.place(packet.sequence).filter(|_| payload > 0) else {
            return;
        };
        let (now, end) = (packet.at_ns, start + payload);
        if start < self.sent {
            self.on_sent_again(now, start, end.min(self.sent));
        }
        if end > self.sent {
            let timeout_ns = self.round_trip.timeout_ns();
            let is_alone = self.sent == self.acknowledged;
            let is_restart =
                is_alone && (self.last_data_ns).is_some_and(|last| now - last > timeout_ns);
            let train = self.side.segments.last();
            let is_in_restarted_train =
                is_restart || !is_alone && train.is_some_and(|last| last.is_in_restarted_train);
            self.side.segments.push(Segment {
                start: self.sent,
                end,
                sent_ns: now,
                last_sent_ns: now,
                copies: 0,
                acknowledged_ns: None,
                sacked_ns: None,
                is_restart,
                is_in_restarted_train,
            });
            self.sent = end;
        }
        self.last_data_ns = Some(now);
    }

    fn on_sent_again(&mut self, now: u64, start: u64, end: u64) {
        let segments = &self.side.segments;
        let first = segments.partition_point(|segment| segment.end <= start);
        let after = segments.partition_point(|segment| segment.start < end);
        if first >= after {
            return;
        }
        let cause = self.cause(now, first, end);
        let segment = segments[first];
        match cause {
            Cause::Timeout => self.timeout_until = self.sent,
            Cause::Probe => self.probed = true,
            Cause::FastThreeDuplicates => self.fast_until = self.sent,
            _ => {}
        }
        let fast_failure = (segment.copies == 0).then(|| {
            let acks = self.acks.iter().rev();
            let since = acks.take_while(|ack| ack.0 > segment.sent_ns).count();
            let acks = &self.acks[self.acks.len() - since..];
            fast_failure(acks.iter().map(|ack| ack.1))
        });
        self.side.retransmissions.push(Retransmission {
            at_ns: now,
            segment: first,
            copy: segment.copies + 1,
            cause,
            fast_failure,
            is_spurious: false,
        });
        for segment in &mut self.side.segments[first..after] {
            segment.copies += 1;
            segment.last_sent_ns = now;
        }
    }

    /// Why a segment is sent again. The order of the questions matters: it was compared with the kernel's own counters.
    fn cause(&self, now: u64, place: usize, end: u64) -> Cause {
        let segment = &self.side.segments[place];
        let is_ack_clocked = now.saturating_sub(self.last_ack_ns) < ACK_CLOCKED_NS;
        let is_recent = |&at: &u64| at > segment.last_sent_ns;
        let later = if self.has_sack {
            let later = self.side.segments[place + 1..].iter();
            later
                .filter(|later| later.sacked_ns.as_ref().is_some_and(is_recent))
                .take(DUPLICATES)
                .count()
        } else if segment.start <= self.acknowledged && is_ack_clocked {
            let duplicates = self.duplicates_ns.iter().filter(|at| is_recent(at)).count();
            // Fewer mean nothing without SACK.
            if duplicates >= DUPLICATES {
                DUPLICATES
            } else {
                0
            }
        } else {
            0
        };
        let is_head = segment.start <= self.acknowledged;
        let is_tail = end == self.sent;
        if later > 0 {
            match (segment.copies, later) {
                (0, DUPLICATES..) => Cause::FastThreeDuplicates,
                (0, _) => Cause::FastByTime,
                _ => Cause::LostRetransmission,
            }
        } else if segment.start < self.timeout_until && is_ack_clocked {
            Cause::AfterTimeout
        } else if segment.start < self.fast_until && is_ack_clocked {
            // A partial acknowledgement (RFC 6582).
            Cause::FastThreeDuplicates
        } else if is_tail && self.profile.has_probes && !self.probed {
            Cause::Probe
        } else if is_head {
            Cause::Timeout
        } else {
            Cause::Other
        }
    }

    fn on_received(&mut self, packet: &Packet) {
        let Some(acknowledged) = self.place(packet.acknowledged) else {
            return;
        };
        let now = packet.at_ns;
        self.last_ack_ns = now;
        let kind = if acknowledged > self.acknowledged {
            Some(AckKind::New)
        } else if acknowledged < self.acknowledged || self.sent == self.acknowledged {
            None
        } else if packet.payload_bytes() > 0 {
            Some(AckKind::WithData)
        } else if self.window.is_some_and(|window| window != packet.window) {
            Some(AckKind::Window)
        } else {
            Some(AckKind::Duplicate)
        };
        self.window = Some(packet.window);
        match kind {
            Some(AckKind::New) => self.on_new_ack(now, acknowledged),
            Some(AckKind::Duplicate) => self.duplicates_ns.push(now),
            _ => {}
        }
        self.acks.extend(kind.map(|kind| (now, kind)));
        self.on_sack(now, packet);
    }

    fn on_new_ack(&mut self, now: u64, acknowledged: u64) {
        let segments = &mut self.side.segments;
        let first = segments.partition_point(|segment| segment.end <= self.acknowledged);
        let after = segments.partition_point(|segment| segment.end <= acknowledged);
        if let Some(newest) = segments[first..after].last()
            && newest.copies == 0
            && newest.acknowledged_ns.is_none()
        {
            let sample_ns = now - newest.sent_ns;
            self.round_trip.on_sample(sample_ns);
            let least = self.side.rtt_min_ns.unwrap_or(u64::MAX);
            self.side.rtt_min_ns = Some(least.min(sample_ns));
        }
        for segment in &mut segments[first..after] {
            segment.acknowledged_ns.get_or_insert(now);
        }
        self.acknowledged = acknowledged.min(self.sent);
        self.duplicates_ns.clear();
        self.probed = false;
    }

    fn on_sack(&mut self, now: u64, packet: &Packet) {
        let blocks = &packet.sack[..usize::from(packet.sack_count)];
        for (number, &(start, end)) in blocks.iter().enumerate() {
            let (Some(start), Some(end)) = (self.place(start), self.place(end)) else {
                continue;
            };
            let is_within = |&(from, to): &(u32, u32)| {
                self.place(from).is_some_and(|from| from <= start)
                    && self.place(to).is_some_and(|to| end <= to)
            };
            // The first block may report what came twice (RFC 2883, section 4).
            if number == 0 && (end <= self.acknowledged || blocks.get(1).is_some_and(is_within)) {
                self.on_duplicate_report(start, end);
                continue;
            }
            let segments = &mut self.side.segments;
            let first = segments.partition_point(|segment| segment.start < start);
            for segment in &mut segments[first..] {
                if segment.end > end {
                    break;
                }
                segment.sacked_ns.get_or_insert(now);
                segment.acknowledged_ns.get_or_insert(now);
            }
        }
    }

    fn on_duplicate_report(&mut self, start: u64, end: u64) {
        let segments = &self.side.segments;
        let covers = |retransmission: &&mut Retransmission| {
            let segment = &segments[retransmission.segment];
            !retransmission.is_spurious && segment.start < end && start < segment.end
        };
        // The latest are at the end: more than a few back are not asked for.
        let mut latest = self.side.retransmissions.iter_mut().rev().take(64);
        if let Some(retransmission) = latest.find(covers) {
            retransmission.is_spurious = true;
        }
    }
}
