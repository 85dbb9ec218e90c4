//! Peers that hold the keys of their session and send what they like. Each ends its own session at worst; what it makes the
//! other side hold is bounded.

mod support;

use std::sync::Arc;
use std::time::Duration;

use punctual_lab::world::LabAead;
use punctual_proto::crypto::{Aead, AeadKey, Algorithm, OpenError};
use punctual_proto::wire::{Ack, AckRanges, Frame, Order, Preamble, Symbol, Writer};
use punctual_proto::{CloseCode, CloseReason, EndpointConfig, SendOptions, limits};
use support::lies::{Lies, LyingAead};
use support::{Duo, client_config, ms, path, server_config};

/// A server and a dishonest client.
struct Liar {
    duo: Duo,
    lies: Lies,
    block: u64,
    frames: Vec<u8>,
    /// Symbols among them.
    symbols: usize,
}

/// Far above the blocks that the client's endpoint counts: what it says itself counts as old, and is not handed on.
const FIRST_BLOCK: u64 = 20_000;
/// Bytes of frames that one packet takes.
const PACKET: usize = 1000;
/// More in one packet are malformed.
const SYMBOLS: usize = 32;

impl Liar {
    fn connect() -> Self {
        let lies = Lies::default();
        let client = EndpointConfig {
            aead: Arc::new(LyingAead(Arc::clone(&lies))),
            ..client_config()
        };
        let duo = Duo::connect_with(8, &path(ms(2), |_| {}), server_config(), client);
        Self {
            duo,
            lies,
            block: FIRST_BLOCK,
            frames: Vec::new(),
            symbols: 0,
        }
    }

    fn frame(&mut self, encode: impl FnOnce(&mut Writer<'_>)) {
        let mut buffer = [0; 1400];
        let mut writer = Writer::new(&mut buffer);
        encode(&mut writer);
        let len = writer.finish().unwrap();
        if self.frames.len() + len > PACKET {
            self.tell();
        }
        self.frames.extend_from_slice(&buffer[..len]);
    }

    /// A block of one symbol, with the next number.
    fn block(&mut self, preamble: &Preamble, content: &[u8]) {
        let mut data = [0; 1300];
        let mut writer = Writer::new(&mut data);
        preamble.encode(&mut writer);
        let head = writer.finish().unwrap();
        data[head..head + content.len()].copy_from_slice(content);
        let symbol = Symbol {
            source_symbols: 1,
            truncated_block: self.block as u16,
            esi: 0,
            data: &data[..head + content.len()],
        };
        self.block += 1;
        if self.symbols == SYMBOLS {
            self.tell();
        }
        self.frame(|writer| Frame::Symbol(symbol).encode(writer));
        self.symbols += 1;
    }

    fn message(&mut self, stream: u16, order: Order, content: &[u8]) {
        let preamble = Preamble::First {
            stream,
            order,
            message_len: content.len(),
        };
        self.block(&preamble, content);
    }

    /// Sends the frames so far.
    fn tell(&mut self) {
        let frames = std::mem::take(&mut self.frames);
        self.symbols = 0;
        self.lies.lock().unwrap().push_back(frames);
        for _ in 0..100 {
            // Something for the lie to take the place of.
            let options = SendOptions::within(ms(100)).drop_when_late();
            let (client, session) = (self.duo.client, self.duo.at_client);
            let what = [0; PACKET + 50];
            let _ = self.duo.world.send(client, session, &what, options);
            self.duo.run(ms(5));
            if self.lies.lock().unwrap().is_empty() || !self.duo.closed.is_empty() {
                return;
            }
        }
        panic!("the client does not send");
    }

    /// The server has closed the session for what the client said.
    fn is_found_out(&mut self) -> bool {
        self.tell();
        let server = self.duo.server;
        let protocol = CloseReason::Local {
            code: CloseCode::PROTOCOL,
        };
        self.duo.closed.contains(&(server, protocol))
    }
}

#[test]
fn what_is_said_arrives() {
    let mut liar = Liar::connect();
    liar.message(7, Order::None, &[1, 2, 3]);
    assert!(!liar.is_found_out());
    assert_eq!(liar.duo.received[0].2, [1, 2, 3]);
}

/// A peer that opens streams without end: there are no more than 1,024 numbers.
#[test]
fn a_stream_beyond_the_limit_is_malformed() {
    let mut liar = Liar::connect();
    for stream in 0..limits::STREAMS_MAX as u16 {
        liar.message(stream, Order::Sequence(0), &[1]);
    }
    assert!(!liar.is_found_out());
    assert_eq!(liar.duo.received.len(), limits::STREAMS_MAX);
    liar.message(limits::STREAMS_MAX as u16, Order::None, &[1]);
    assert!(liar.is_found_out());
}

#[test]
fn a_sequence_number_far_ahead_is_malformed() {
    let mut liar = Liar::connect();
    let far = limits::ORDERED_MESSAGES_MAX as u16 - 1;
    liar.message(1, Order::Sequence(far), &[1]);
    assert!(!liar.is_found_out());
    liar.message(1, Order::Sequence(far + 1), &[1]);
    assert!(liar.is_found_out());
    assert!(liar.duo.received.is_empty());
}

/// Ordered messages whose first one never comes wait up to a bound; then packets are refused.
#[test]
fn ordered_messages_that_wait_are_bounded() {
    let mut liar = Liar::connect();
    for sequence in 1..12_000 {
        liar.message(3, Order::Sequence(sequence), &[5; 310]);
    }
    assert!(!liar.is_found_out());
    assert!(liar.duo.received.is_empty());
    let stats = liar.duo.server_stats();
    assert!(
        stats.packets_refused > 100,
        "{stats:?} {:?}",
        liar.duo.closed
    );
}

/// Later blocks of messages that never began.
#[test]
fn messages_without_a_beginning_are_malformed_at_last() {
    let mut liar = Liar::connect();
    let later = Preamble::Later {
        distance: 1,
        index: 1,
    };
    for _ in 0..limits::ASSEMBLIES_MAX {
        liar.block += 1;
        liar.block(&later, &[1; 30]);
    }
    assert!(!liar.is_found_out());
    liar.block += 1;
    liar.block(&later, &[1; 30]);
    assert!(liar.is_found_out());
}

#[test]
fn parts_of_nothing_are_malformed() {
    let later = Preamble::Later {
        distance: 1,
        index: 1,
    };
    let first = Preamble::First {
        stream: 0,
        order: Order::None,
        message_len: limits::WHOLE_MAX + 1,
    };
    for preamble in [later, first] {
        let mut liar = Liar::connect();
        liar.block += 1;
        liar.block(&preamble, &[]);
        assert!(liar.is_found_out(), "{preamble:?}");
    }
}

/// Parts without end of messages that never begin: there is no room at last.
#[test]
fn parts_without_end_are_bounded() {
    let mut liar = Liar::connect();
    for _ in 0..2 {
        for part in 1..6000 {
            let later = Preamble::Later {
                distance: part,
                index: part as u16,
            };
            liar.block(&later, &[1; 310]);
        }
        liar.block += 1;
    }
    assert!(!liar.is_found_out());
    let stats = liar.duo.server_stats();
    assert!(
        stats.packets_refused > 100,
        "{stats:?} {:?}",
        liar.duo.closed
    );
}

/// Empty messages to an application that takes none: events are bounded.
#[test]
fn empty_messages_without_end_are_bounded() {
    let mut liar = Liar::connect();
    let (server, session) = (liar.duo.server, liar.duo.at_server.unwrap());
    liar.duo.world.with_endpoint(server, |endpoint, _| {
        endpoint.hold_messages(session, true);
    });
    for _ in 0..6000 {
        liar.message(0, Order::None, &[]);
    }
    assert!(!liar.is_found_out());
    assert!(liar.duo.server_stats().packets_refused > 10);
    liar.duo.world.with_endpoint(server, |endpoint, _| {
        endpoint.hold_messages(session, false);
    });
    liar.duo.run(ms(10));
    let received = liar.duo.received.len();
    assert!((4000..4200).contains(&received), "{received}");
}

/// Keys without end: a message each, more than the block window remembers.
#[test]
fn keys_without_end_are_messages_like_others() {
    let mut liar = Liar::connect();
    for key in 0..12_000 {
        liar.message(1, Order::Key(key * 1_000_003), &[1]);
    }
    assert!(!liar.is_found_out());
    assert_eq!(liar.duo.received.len(), 12_000);
}

/// An acknowledgement of what was never sent would make the sender take a message for delivered.
#[test]
fn acknowledgements_of_what_was_never_sent_are_malformed() {
    let mut liar = Liar::connect();
    let mut ranges = AckRanges::default();
    assert!(ranges.push(100_000, 100_001));
    let ack = Ack {
        ranges,
        received_at: 0,
        delay_us: 0,
        is_kept: false,
        frame_us: 0,
        ce_count: 0,
    };
    liar.frame(|writer| Frame::Ack(ack).encode(writer));
    assert!(liar.is_found_out());
}

/// Giving up blocks that never were costs the peer its own messages at most.
#[test]
fn giving_up_what_never_was_changes_nothing() {
    let mut liar = Liar::connect();
    liar.message(1, Order::None, &[1]);
    for first in [0, 1, 5, FIRST_BLOCK + 4000] {
        liar.frame(|writer| Frame::Abandon { first, count: 1 }.encode(writer));
    }
    liar.tell();
    liar.block = FIRST_BLOCK + 4001;
    liar.message(1, Order::None, &[2]);
    assert!(!liar.is_found_out());
    for _ in 0..20 {
        let first = (1 << 62) - 1;
        let abandon = Frame::Abandon { first, count: 1 };
        liar.frame(|writer| abandon.encode(writer));
        assert!(!liar.is_found_out());
    }
    assert_eq!(liar.duo.received.len(), 2);
    liar.duo.run(Duration::from_secs(1));
    assert!(liar.duo.closed.is_empty());
}

/// A large ordered message was given up, and its place is taken, when late blocks complete it after all: it used to be counted
/// twice, and the message after the next was never handed on.
#[test]
fn what_takes_the_place_of_a_large_message_ends_it() {
    let mut liar = Liar::connect();
    let len = limits::WHOLE_MAX + 1;
    let first = Preamble::First {
        stream: 1,
        order: Order::Sequence(0),
        message_len: len,
    };
    liar.block(&first, &[1; 900]);
    // It waits for the large one, whose end was told after it.
    liar.block = FIRST_BLOCK + 1001;
    liar.message(1, Order::Sequence(1), &[2]);
    let void = Preamble::First {
        stream: 1,
        order: Order::Void(0),
        message_len: 0,
    };
    liar.block = FIRST_BLOCK + 1000;
    liar.block(&void, &[]);
    liar.tell();
    assert_eq!((liar.duo.pieces, liar.duo.aborted), (1, 1));
    assert_eq!(liar.duo.received.len(), 1);
    assert_eq!(liar.duo.received_before_abort, 0);
    for index in 1..=len as u64 / 900 {
        liar.block = FIRST_BLOCK + index;
        let later = Preamble::Later {
            distance: index,
            index: index as u16,
        };
        liar.block(&later, &[1; 900]);
    }
    assert!(!liar.is_found_out());
    liar.block = FIRST_BLOCK + 1002;
    liar.message(1, Order::Sequence(2), &[3]);
    assert!(!liar.is_found_out());
    assert_eq!((liar.duo.pieces, liar.duo.aborted), (1, 1));
    assert_eq!(liar.duo.received.len(), 2);
}

/// What of a message never arrives, whatever else does.
const NEVER: &[u8] = b"never";

/// Does not open what holds [`NEVER`]: its endpoint acknowledges all but that.
struct DeafAead;

struct DeafKey(Box<dyn AeadKey>);

impl Aead for DeafAead {
    fn key(&self, algorithm: Algorithm, key: &[u8]) -> Box<dyn AeadKey> {
        Box::new(DeafKey(LabAead.key(algorithm, key)))
    }

    fn preferred(&self) -> Algorithm {
        LabAead.preferred()
    }
}

impl AeadKey for DeafKey {
    fn seal(&self, nonce: [u8; 12], header: &[u8], buffer: &mut [u8]) -> [u8; 16] {
        self.0.seal(nonce, header, buffer)
    }

    fn open(&self, nonce: [u8; 12], header: &[u8], buffer: &mut [u8]) -> Result<usize, OpenError> {
        let len = self.0.open(nonce, header, buffer)?;
        match buffer[..len].windows(NEVER.len()).any(|part| part == NEVER) {
            true => Err(OpenError),
            false => Ok(len),
        }
    }
}

/// A regression: one small message that its peer does not acknowledge, while it acknowledges all else, was sent again each round time for ever.
#[test]
fn what_is_never_acknowledged_is_sent_less_and_less() {
    let client = EndpointConfig {
        aead: Arc::new(DeafAead),
        ..client_config()
    };
    let mut server = server_config();
    // (Copies of it would take others' packets with it.)
    server.thin_streams.bundling = false;
    let mut duo = Duo::connect_with(8, &path(ms(2), |_| {}), server, client);
    let (server, session) = (duo.server, duo.at_server.expect("it is connected"));
    let send = |duo: &mut Duo, content: &[u8]| {
        (duo.world)
            .send(server, session, content, SendOptions::default())
            .unwrap();
    };
    send(&mut duo, NEVER);
    duo.run(ms(1));
    let seconds = 60;
    for _ in 0..50 * seconds {
        send(&mut duo, b"now and then");
        duo.run(ms(20));
    }
    duo.run(ms(100));
    let of_others = 50 * seconds;
    assert_eq!(duo.received.len(), of_others);
    let symbols = duo.server_stats().symbols_sent as usize;
    assert!((32..100).contains(&(symbols - of_others)), "{symbols}");
}
