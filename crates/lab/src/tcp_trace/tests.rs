use std::time::Duration;

use super::packet::{SACK_BLOCKS, SYN};
use super::{
    Cause, Connection, Delivery, FastFailure, NEVER_NS, Packet, Profile, SenderSide, TrafficShares,
    connections, deliveries, held,
};
use crate::arm::Sender;

/// A connection in which the server sends; its numbers run over while it does.
struct Tape {
    packets: Vec<Packet>,
}

const BASE: u32 = u32::MAX - 250;
const HEADER: u16 = 52;

impl Tape {
    fn new(has_sack: bool) -> Self {
        let mut tape = Self {
            packets: Vec::new(),
        };
        for from in [Sender::Client, Sender::Server] {
            let mut syn = tape.packet(0, from, from, 0);
            syn.flags = SYN;
            syn.offers_sack = has_sack;
            syn.sequence = BASE.wrapping_sub(1);
            tape.packets.push(syn);
        }
        tape
    }

    fn packet(&self, at_ms: u64, seen_at: Sender, from: Sender, payload: u16) -> Packet {
        Packet {
            at_ns: at_ms * 1_000_000,
            seen_at,
            from,
            flow: 3,
            port: 4000,
            ip_bytes: HEADER + payload,
            header_bytes: HEADER,
            flags: 16,
            offers_sack: false,
            sequence: BASE,
            acknowledged: BASE,
            window: 500,
            sack_count: 0,
            sack: [(0, 0); SACK_BLOCKS],
        }
    }

    /// The server sends 100 bytes, segment by segment.
    fn sends(mut self, at_ms: u64, segment: u32) -> Self {
        let mut packet = self.packet(at_ms, Sender::Server, Sender::Server, 100);
        packet.sequence = BASE.wrapping_add(segment * 100);
        self.packets.push(packet);
        self
    }

    /// A segment reaches the client.
    fn arrives(mut self, at_ms: u64, segment: u32) -> Self {
        let mut packet = self.packet(at_ms, Sender::Client, Sender::Server, 100);
        packet.sequence = BASE.wrapping_add(segment * 100);
        self.packets.push(packet);
        self
    }

    /// The server hears that the client has all before a segment, and some beyond.
    fn hears(self, at_ms: u64, before: u32, sack: &[(u32, u32)]) -> Self {
        self.hears_with(at_ms, before, sack, 0)
    }

    fn hears_with(mut self, at_ms: u64, before: u32, sack: &[(u32, u32)], payload: u16) -> Self {
        let mut packet = self.packet(at_ms, Sender::Server, Sender::Client, payload);
        let place = |segment: u32| BASE.wrapping_add(segment * 100);
        packet.acknowledged = place(before);
        packet.sack_count = sack.len() as u8;
        for (block, &(from, to)) in packet.sack.iter_mut().zip(sack) {
            *block = (place(from), place(to));
        }
        self.packets.push(packet);
        self
    }

    fn connection(self) -> Connection {
        let mut all = connections(self.packets);
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    fn server_side(self, has_probes: bool) -> SenderSide {
        SenderSide::new(&self.connection(), Sender::Server, Profile { has_probes }).unwrap()
    }

    fn causes(self, has_probes: bool) -> Vec<Cause> {
        let side = self.server_side(has_probes);
        side.retransmissions
            .iter()
            .map(|again| again.cause)
            .collect()
    }
}

#[test]
fn headers_are_read_and_what_is_none_is_not() {
    let mut tcp = vec![0; 20];
    tcp[..4].copy_from_slice(&[0x1b, 0x58, 0x0f, 0xa0]);
    tcp[4..12].copy_from_slice(&[0, 0, 0, 7, 0, 0, 0, 9]);
    tcp[13] = 16;
    // Two of no meaning, SACK with a block, SACK permitted.
    tcp.extend([1, 1, 5, 10, 0, 0, 0, 20, 0, 0, 0, 30, 4, 2, 0, 0]);
    tcp[12] = 9 << 4;
    tcp.extend([0; 11]);
    let read = |tcp: &[u8], ip_bytes| {
        let side = Sender::Server;
        Packet::read(Duration::from_micros(5), side, side, 1, ip_bytes, tcp)
    };
    let packet = read(&tcp, 67).unwrap();
    assert_eq!((packet.port, packet.header_bytes), (4000, 56));
    assert_eq!((packet.sequence, packet.acknowledged), (7, 9));
    assert_eq!((packet.payload_bytes(), packet.at_ns), (11, 5000));
    assert_eq!((packet.sack_count, packet.sack[0]), (1, (20, 30)));
    assert!(packet.offers_sack);
    for len in 0..36 {
        assert_eq!(read(&tcp[..len], 20 + len), None, "{len}");
    }
    // A header shorter than the least, a packet shorter than its header, options of no length and beyond the end.
    let with = |at: usize, byte| {
        let mut tcp = tcp.clone();
        tcp[at] = byte;
        tcp
    };
    assert_eq!(read(&with(12, 4 << 4), 67), None);
    assert_eq!(read(&tcp, 30), None);
    for len in [0, 1, 200] {
        assert_eq!(read(&with(23, len), 67).unwrap().sack_count, 0, "{len}");
    }
}

#[test]
fn later_segments_tell_of_a_loss() {
    // Segment 0 is lost; segments 1, 2 and 3 are reported one by one.
    let tape = || {
        Tape::new(true)
            .sends(0, 0)
            .sends(10, 1)
            .hears(110, 0, &[(1, 2)])
    };
    assert_eq!(tape().sends(135, 0).causes(true), [Cause::FastByTime]);
    let all = tape().sends(111, 2).sends(112, 3).hears(211, 0, &[(1, 4)]);
    assert_eq!(all.sends(211, 0).causes(true), [Cause::FastThreeDuplicates]);
    // The copy is lost too: a segment that was sent after it tells.
    let again = tape().sends(135, 0).sends(140, 2).hears(240, 0, &[(1, 3)]);
    let causes = [Cause::FastByTime, Cause::LostRetransmission];
    assert_eq!(again.sends(265, 0).causes(true), causes);
}

#[test]
fn without_sack_it_takes_three_duplicates() {
    let tape = |duplicates: u64| {
        let tape = (0..5).fold(Tape::new(false), |tape, segment| {
            tape.sends(segment, segment as u32)
        });
        let heard = (0..duplicates).fold(tape, |tape, nth| tape.hears(101 + nth, 0, &[]));
        heard.sends(104, 0)
    };
    assert_eq!(tape(3).causes(false), [Cause::FastThreeDuplicates]);
    assert_eq!(tape(2).causes(false), [Cause::Timeout]);
    // An acknowledgement of a part: the next is lost too, and is sent at once.
    let part = tape(3).hears(400, 2, &[]).sends(400, 2);
    let causes = [Cause::FastThreeDuplicates, Cause::FastThreeDuplicates];
    assert_eq!(part.causes(false), causes);
}

#[test]
fn timers_are_told_apart() {
    // Two segments, nothing heard: the tail is probed, then the head's timer fires, and the rest follows the acknowledgement.
    let tape = || Tape::new(true).sends(0, 0).sends(1, 1);
    let causes = [Cause::Probe, Cause::Timeout, Cause::AfterTimeout];
    let all = tape()
        .sends(250, 1)
        .sends(500, 0)
        .hears(600, 1, &[])
        .sends(600, 1);
    assert_eq!(all.causes(true), causes);
    assert_eq!(tape().sends(500, 0).causes(false), [Cause::Timeout]);
    // One segment alone: probe and timeout look alike, and what the kernel is known to have comes first.
    let alone = || Tape::new(true).sends(0, 0).sends(300, 0).sends(700, 0);
    assert_eq!(alone().causes(true), [Cause::Probe, Cause::Timeout]);
    assert_eq!(alone().causes(false), [Cause::Timeout, Cause::Timeout]);
    let side = alone().server_side(false);
    let copies: Vec<_> = side
        .retransmissions
        .iter()
        .map(|again| again.copy)
        .collect();
    assert_eq!(copies, [1, 2]);
}

#[test]
fn a_duplicate_report_shows_a_needless_copy() {
    let tape = Tape::new(true).sends(0, 0).sends(200, 0).sends(210, 0);
    let side = tape
        .hears(220, 1, &[])
        .hears(300, 1, &[(0, 1)])
        .server_side(false);
    let spurious: Vec<_> = side
        .retransmissions
        .iter()
        .map(|again| again.is_spurious)
        .collect();
    assert_eq!(spurious, [false, true]);
    assert_eq!(side.segments[0].acknowledged_ns, Some(220_000_000));
}

#[test]
fn why_duplicates_did_not_come_together() {
    // Four segments after the lost one; `acks`: whether each acknowledgement of them carried content.
    let failure = |acks: &[bool]| {
        let tape = (0..5).fold(Tape::new(false), |tape, segment| {
            tape.sends(segment, segment as u32)
        });
        let heard = acks
            .iter()
            .zip(101..)
            .fold(tape, |tape, (&has_content, at_ms)| {
                tape.hears_with(at_ms, 0, &[], if has_content { 20 } else { 0 })
            });
        let side = heard.sends(500, 0).server_side(false);
        side.retransmissions[0].fast_failure
    };
    assert_eq!(failure(&[false, false]), Some(FastFailure::TooFew));
    assert_eq!(
        failure(&[true, true, true, true]),
        Some(FastFailure::TooFew)
    );
    let interrupted = Some(FastFailure::InterruptedByData);
    assert_eq!(failure(&[false, false, true, false]), interrupted);
    assert_eq!(
        failure(&[false, false, false, true]),
        Some(FastFailure::None)
    );
}

#[test]
fn what_is_sent_after_a_pause_begins_anew() {
    // A round trip of 100 ms gives a timeout of 300 ms: the margin is the least.
    let tape = Tape::new(true).sends(0, 0).hears(100, 1, &[]);
    let steady = (1..20).fold(tape, |tape, nth| {
        tape.sends(u64::from(nth) * 200, nth)
            .hears(u64::from(nth) * 200 + 100, nth + 1, &[])
    });
    let side = steady.sends(4150, 20).sends(4151, 21).hears(4250, 21, &[]);
    let side = side
        .sends(4252, 22)
        .hears(4351, 23, &[])
        .sends(4400, 23)
        .server_side(true);
    let restarts = side
        .segments
        .iter()
        .filter(|segment| segment.is_restart)
        .count();
    assert_eq!(restarts, 1);
    let in_train = side
        .segments
        .iter()
        .map(|segment| segment.is_in_restarted_train);
    assert_eq!(
        in_train.skip(19).collect::<Vec<_>>(),
        [false, true, true, true, false]
    );
    assert_eq!(side.rtt_min_ns, Some(99_000_000));
    // Messages of 60 bytes: the 38th ends in segment 22, which left 102 ms after it was written.
    let writes = (0..38u64).map(|nth| (if nth < 36 { 0 } else { 4_150_000_000 }, 60));
    let held = held(&side.segments, writes);
    assert_eq!(held.len(), 38);
    assert_eq!(
        (held[37].held_ns, held[37].is_in_restarted_train),
        (102_000_000, true)
    );
    assert!(!held[30].is_in_restarted_train);
}

#[test]
fn what_is_behind_a_loss_waits() {
    let connection = Tape::new(true)
        .sends(0, 0)
        .sends(10, 1)
        .sends(20, 2)
        .arrives(60, 1)
        .arrives(50, 0)
        .hears(100, 1, &[])
        .sends(200, 1)
        .connection();
    let side = |connection: &Connection| {
        SenderSide::new(connection, Sender::Server, Profile { has_probes: true }).unwrap()
    };
    let segments = side(&connection).segments;
    // The last never arrives.
    let all = deliveries(&connection, Sender::Server, &segments);
    let ends = |one: &Delivery| (one.arrived_ns == NEVER_NS, one.readable_ns == NEVER_NS);
    let ends: Vec<_> = all.iter().map(ends).collect();
    assert_eq!(ends, [(false, false), (false, false), (true, true)]);
    assert_eq!(
        (all[2].transport_ns(), all[2].waited_ns()),
        (NEVER_NS, None)
    );

    let connection = Tape::new(true)
        .sends(0, 0)
        .sends(10, 1)
        .sends(20, 2)
        .arrives(50, 0)
        .arrives(70, 2)
        .sends(200, 1)
        .arrives(250, 1)
        .connection();
    let segments = side(&connection).segments;
    let all = deliveries(&connection, Sender::Server, &segments);
    let ms = |ns: u64| ns / 1_000_000;
    let transport: Vec<_> = all.iter().map(|one| ms(one.transport_ns())).collect();
    let application: Vec<_> = all.iter().map(|one| ms(one.application_ns())).collect();
    let waited: Vec<_> = all.iter().filter_map(Delivery::waited_ns).map(ms).collect();
    assert_eq!(transport, [50, 240, 50]);
    assert_eq!(application, [50, 240, 230]);
    assert_eq!(waited, [0, 0, 180]);
}

#[test]
fn headers_and_pure_acks_are_counted() {
    let mut tape = Tape::new(true).sends(0, 0);
    let mut ack = tape.packet(50, Sender::Client, Sender::Client, 0);
    ack.acknowledged = BASE.wrapping_add(100);
    tape.packets.push(ack);
    let connection = tape.connection();
    let server = TrafficShares::new(&connection, Sender::Server);
    assert_eq!((server.packets, server.pure_acks), (2, 0));
    assert_eq!((server.header_bytes, server.payload_bytes()), (104, 100));
    let client = TrafficShares::new(&connection, Sender::Client);
    assert_eq!(
        (client.packets, client.pure_acks, client.payload_bytes()),
        (2, 1, 0)
    );
    assert_eq!(server.plus(&client).packets, 4);
}

#[test]
fn packets_are_sorted_by_connection() {
    let mut packets = Tape::new(true).sends(5, 0).packets;
    let mut other = packets[0];
    other.port = 3999;
    packets.push(other);
    let connections = connections(packets);
    assert_eq!(connections.len(), 2);
    assert!(connections.iter().all(|connection| connection.flow == 3));
    assert!(
        SenderSide::new(
            &connections[0],
            Sender::Server,
            Profile { has_probes: true }
        )
        .is_none()
    );
}
