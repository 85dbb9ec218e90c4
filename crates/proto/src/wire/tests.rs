//! What every decoder promises: what is written is read; all else is an error; nothing reads or loops past what it was given.
//! Some tests carry the name of a class of bugs that other transports had.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::limits::{
    ACK_RANGES_MAX, CLOSE_REASON_MAX, MESSAGE_MAX, REPAIR_SYMBOLS_MAX, STREAMS_MAX,
};

fn written(encode: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut buffer = vec![0; 4096];
    let mut writer = Writer::new(&mut buffer);
    encode(&mut writer);
    let len = writer
        .finish()
        .expect("the buffer is larger than any frame here");
    buffer.truncate(len);
    buffer
}

/// A well-formed acknowledgement, and a next number for which it is one.
fn any_ack() -> impl Strategy<Value = (Ack, u64)> {
    let lengths = prop_oneof![
        prop::collection::vec((0u64..7, 0u64..7), 1..=ACK_RANGES_MAX),
        prop::collection::vec((0u64..250, 0u64..250), 1..=2),
    ];
    let ce_count = prop_oneof![Just(0), 1u64..1 << 62];
    (
        lengths,
        any::<u32>(),
        (
            any::<u32>(),
            any::<bool>(),
            prop_oneof![Just(0), any::<u32>()],
        ),
        ce_count,
        0u64..1 << 40,
        0u64..1 << 20,
    )
        .prop_map(
            |(lengths, received_at, (delay_us, is_kept, frame_us), ce_count, floor, ahead)| {
                let mut runs = Vec::new();
                let mut next = floor;
                for (gap, length) in lengths {
                    let first = next + gap;
                    runs.push((first, first + length));
                    next = first + length + 2;
                }
                let mut ranges = AckRanges::default();
                for &(first, last) in runs.iter().rev() {
                    assert!(ranges.push(first, last));
                }
                let largest = ranges.largest().expect("at least one run");
                (
                    Ack {
                        ranges,
                        received_at,
                        delay_us,
                        is_kept,
                        frame_us,
                        ce_count,
                    },
                    largest + 1 + ahead,
                )
            },
        )
}

proptest! {
    #[test]
    fn varints_are_read_as_written(value in 0u64..1 << 62) {
        let bytes = written(|writer| writer.varint(value));
        prop_assert_eq!(bytes.len(), bytes::varint_len(value));
        prop_assert_eq!(Reader::new(&bytes).varint(), Ok(value));
        for end in 0..bytes.len() {
            prop_assert_eq!(Reader::new(&bytes[..end]).varint(), Err(DecodeError::Truncated));
        }
    }

    #[test]
    fn acknowledgements_are_read_as_written((ack, next_number) in any_ack()) {
        let frame = Frame::Ack(ack);
        let bytes = written(|writer| frame.encode(writer));
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(Frame::decode(&mut reader, next_number), Ok(Some(frame)));
        prop_assert_eq!(reader.remaining(), 0);
        for end in 1..bytes.len() {
            prop_assert!(Frame::decode(&mut Reader::new(&bytes[..end]), next_number).is_err());
        }
        // Of what was not sent nothing can be acknowledged.
        let largest = ack.ranges.largest().expect("at least one run");
        prop_assert!(Frame::decode(&mut Reader::new(&bytes), largest).is_err());
    }

    #[test]
    fn symbols_are_read_as_written(
        source_symbols in 1u8..=64,
        truncated_block: u16,
        index: u8,
        data in prop::collection::vec(any::<u8>(), 1..1400),
    ) {
        let esi = (usize::from(index) % (usize::from(source_symbols) + REPAIR_SYMBOLS_MAX)) as u8;
        let symbol = Symbol { source_symbols, truncated_block, esi, data: &data };
        let frame = Frame::Symbol(symbol);
        let bytes = written(|writer| frame.encode(writer));
        prop_assert_eq!(bytes.len(), data.len() + symbol_overhead(data.len()));
        prop_assert_eq!(Frame::decode(&mut Reader::new(&bytes), 0), Ok(Some(frame)));
        for end in 1..bytes.len() {
            prop_assert!(Frame::decode(&mut Reader::new(&bytes[..end]), 0).is_err());
        }
        let last = written(|writer| symbol.encode_last(writer));
        prop_assert_eq!(last.len(), data.len() + SYMBOL_HEADER);
        prop_assert_eq!(Frame::decode(&mut Reader::new(&last), 0), Ok(Some(frame)));
    }

    #[test]
    fn other_frames_are_read_as_written(
        (first, count) in (0u64..1 << 62).prop_flat_map(|first| (Just(first), 1..=(1 << 62) - first)), data: [u8; 8], code: u16,
        reason in prop::collection::vec(any::<u8>(), 0..=CLOSE_REASON_MAX),
    ) {
        let frames = [
            Frame::Ping,
            Frame::Abandon { first, count },
            Frame::PathChallenge(data),
            Frame::PathResponse(data),
            Frame::Close { code, reason: &reason },
        ];
        let bytes = written(|writer| frames.iter().for_each(|frame| frame.encode(writer)));
        let mut reader = Reader::new(&bytes);
        for frame in frames {
            prop_assert_eq!(Frame::decode(&mut reader, 0), Ok(Some(frame)));
        }
        prop_assert_eq!(Frame::decode(&mut reader, 0), Ok(None));
    }

    #[test]
    fn headers_are_read_as_written(destination: u32, key_phase: bool, number in 0u64..1 << 62, behind in 0u64..1 << 31) {
        let acknowledged = number.checked_sub(behind);
        let header = Header::for_number(ConnectionId(destination), key_phase, number, acknowledged);
        let mut bytes = written(|writer| header.encode(writer));
        prop_assert_eq!(bytes.len(), header.encoded_len());
        prop_assert!(Header::decode(&bytes).is_err(), "no room for a tag");
        bytes.extend_from_slice(&[0; TAG_LEN]);
        let seen = Header::decode(&bytes).expect("what was written is read");
        prop_assert_eq!((seen.destination, seen.key_phase, seen.number_len), (header.destination, key_phase, header.number_len));
        // Whatever the receiver expects between the first that is not acknowledged and the next.
        if let Some(acknowledged) = acknowledged {
            prop_assert_eq!(seen.number(acknowledged + 1), number);
            prop_assert_eq!(seen.number(number + 1), number);
            prop_assert_eq!(seen.number(acknowledged + 1 + behind / 2), number);
        }
    }

    #[test]
    fn handshake_packets_are_read_as_written(
        id: u32,
        cookie in prop::collection::vec(any::<u8>(), 0..=255),
        noise in prop::collection::vec(any::<u8>(), 0..900),
        refusal in 0usize..6,
    ) {
        let id = ConnectionId(id);
        let why = [Refusal::Version, Refusal::Key, Refusal::TokenMissing, Refusal::TokenInvalid, Refusal::TokenExpired, Refusal::Full];
        let packets = [
            HandshakePacket::Hello(Hello { source: id, cookie: &cookie, noise: &noise }),
            HandshakePacket::Retry(Retry { destination: id, cookie: &cookie }),
            HandshakePacket::Accept(Accept { destination: id, noise: &noise }),
            HandshakePacket::Refuse(Refuse { destination: id, why: why[refusal] }),
        ];
        for packet in packets {
            let mut buffer = [0; 1300];
            let len = packet.encode(&mut buffer).expect("1,300 bytes hold each of them");
            prop_assert_eq!(HandshakePacket::decode(&buffer[..len]), Ok(packet));
            for end in 0..len {
                prop_assert!(HandshakePacket::decode(&buffer[..end]).is_err());
            }
            prop_assert_eq!(packet.encode(&mut buffer[..len - 1]), None);
        }
    }

    #[test]
    fn preambles_are_read_as_written(
        stream in 0..STREAMS_MAX as u16,
        sequence: u16,
        key in 0u64..1 << 62,
        message_len in 0usize..=MESSAGE_MAX,
        index in 1u16..,
        more in 0u64..1 << 61,
    ) {
        let first = |stream, order, message_len| Preamble::First { stream, order, message_len };
        for preamble in [
            first(stream, Order::None, message_len),
            first(0, Order::None, message_len),
            first(stream, Order::Sequence(sequence), message_len),
            first(0, Order::Void(sequence), 0),
            first(stream, Order::Newest, message_len),
            first(stream, Order::Key(key), message_len),
            Preamble::Later { distance: u64::from(index) + more, index },
        ] {
            let bytes = written(|writer| preamble.encode(writer));
            prop_assert_eq!(bytes.len(), preamble.encoded_len());
            prop_assert!(bytes.len() <= Preamble::LEN_MAX);
            prop_assert_eq!(Preamble::decode(&mut Reader::new(&bytes)), Ok(preamble));
            for end in 0..bytes.len() {
                prop_assert!(Preamble::decode(&mut Reader::new(&bytes[..end])).is_err());
            }
        }
    }

    /// RFC 9000 appendix A.3 in words: no other number with these lowest bits is nearer.
    #[test]
    fn truncated_numbers_expand_to_the_nearest(number in 0u64..1 << 60, expected in 0u64..1 << 60, is_near: bool, bits in prop_oneof![Just(16u32), Just(32)]) {
        let window = 1u64 << bits;
        let expected = if is_near { number.saturating_add(expected % (4 * window)).saturating_sub(2 * window) } else { expected };
        let seen = expand(number % window, bits, expected);
        prop_assert_eq!(seen % window, number % window);
        prop_assert!(seen.abs_diff(expected) <= window / 2 || seen < window);
    }

    #[test]
    fn no_bytes_make_a_decoder_panic_or_stand_still(data in prop::collection::vec(any::<u8>(), 0..200), next_number in 0u64..1 << 62) {
        let mut reader = Reader::new(&data);
        let mut before = reader.remaining();
        while let Ok(Some(_)) = Frame::decode(&mut reader, next_number) {
            prop_assert!(reader.remaining() < before);
            before = reader.remaining();
        }
        let _ = (Header::decode(&data), HandshakePacket::decode(&data), HandshakePacket::source_of(&data));
        let _ = Preamble::decode(&mut Reader::new(&data));
    }
}

/// SLikeNet's acknowledgement ranges let one packet ask for billions of steps. Here an ACK is read in at most 12, names only
/// numbers that were sent, and its runs go strictly downwards.
#[test]
fn ack_range_loops() {
    let ack = |more: u8, fields: &[u64]| {
        written(|writer| {
            writer.u8(2);
            writer.u32(1000);
            writer.u32(0);
            writer.varint(0);
            writer.u8(more);
            fields.iter().for_each(|&field| writer.varint(field));
        })
    };
    fn decode(bytes: &[u8], next_number: u64) -> Result<Option<Frame<'_>>, DecodeError> {
        Frame::decode(&mut Reader::new(bytes), next_number)
    }
    let huge = (1 << 62) - 1;
    assert!(decode(&ack(0, &[1000]), 1001).is_ok());
    assert!(decode(&ack(0, &[1001]), 1001).is_err(), "below zero");
    assert!(decode(&ack(0, &[huge]), 1001).is_err(), "far below zero");
    assert!(decode(&ack(0, &[0]), 1000).is_err(), "never sent");
    assert!(decode(&ack(1, &[0, 998, 0]), 1001).is_ok(), "down to 0");
    assert!(decode(&ack(1, &[0, 999, 0]), 1001).is_err());
    assert!(decode(&ack(1, &[0, huge, 0]), 1001).is_err());
    assert!(decode(&ack(1, &[0, 0, huge]), 1001).is_err());
    assert!(decode(&ack(1, &[0, 8, 990]), 1001).is_ok(), "down to 0");
    assert!(
        decode(&ack(64, &[0; 2]), 1001).is_err(),
        "a frame of no time"
    );
    assert!(decode(&ack(64, &[0; 1]), 1001).is_err(), "no frame");
    assert!(decode(&ack(192, &[0, 1]), 1001).is_ok());
    assert!(decode(&ack(255, &[0; 129]), 1001).is_err());
    // An honest ACK of numbers past 2^32, seen from far ahead and from just behind.
    let mut ranges = AckRanges::default();
    assert!(ranges.push((1 << 32) - 2, (1 << 32) + 1));
    let frame = Frame::Ack(Ack {
        ranges,
        received_at: 0,
        delay_us: 0,
        is_kept: false,
        frame_us: 0,
        ce_count: 0,
    });
    let bytes = written(|writer| frame.encode(writer));
    for next_number in [(1 << 32) + 2, (1 << 32) + (1 << 30)] {
        assert_eq!(decode(&bytes, next_number), Ok(Some(frame)));
    }
}

/// SRT and ENet trusted lengths in packets. Every length here is checked against what is left and against its own bound.
#[test]
fn oversized_fields() {
    let frame = |bytes: &[u8]| Frame::decode(&mut Reader::new(bytes), 0).is_err();
    assert!(
        frame(&[
            0x40, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1
        ]),
        "a symbol of 2^62 bytes"
    );
    assert!(frame(&[0x07, 0, 0, 255]), "a reason longer than the packet");
    let mut reason = vec![0x07, 0, 0, 201];
    reason.extend_from_slice(&[b'x'; 201]);
    assert!(frame(&reason), "a reason longer than a reason");
    assert!(
        frame(&[0x40, 0, 0, 193, 1, 1]),
        "k = 1 has symbols 0 to 192"
    );
    assert!(frame(&[0x80, 0, 0, 193, 1]), "k = 1 has symbols 0 to 192");
    let mut hello = vec![0; 1200];
    hello[0] = 0x80;
    hello[4] = 1;
    hello[9] = 255;
    hello[9 + 1 + 255..][..2].copy_from_slice(&[0xff, 0xff]);
    assert_eq!(HandshakePacket::decode(&hello), Err(DecodeError::Truncated));
    let preamble = written(|writer| {
        writer.u8(0);
        writer.varint(MESSAGE_MAX as u64 + 1);
    });
    assert!(Preamble::decode(&mut Reader::new(&preamble)).is_err());
    let preamble = [0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    assert!(
        Preamble::decode(&mut Reader::new(&preamble)).is_err(),
        "a message of 2^62 bytes"
    );
    let preamble = |bytes: &[u8]| Preamble::decode(&mut Reader::new(bytes));
    assert!(preamble(&[0x01, 0x44, 0x00, 0]).is_err(), "stream 1,024");
    assert!(
        preamble(&[0x08, 0]).is_err(),
        "a void without a sequence number"
    );
    assert!(preamble(&[0x0a, 0, 0, 1]).is_err(), "a void with content");
    assert!(preamble(&[0x10, 0]).is_err(), "an unknown flag");
    assert!(preamble(&[0x80, 0, 0]).is_err(), "the first block again");
    assert!(preamble(&[0x80, 1, 2]).is_err(), "two blocks on, in one");
    let mut encoded = written(|writer| {
        Preamble::First {
            stream: 70,
            order: Order::Sequence(0),
            message_len: 5,
        }
        .encode(writer);
    });
    Preamble::set_sequence(&mut encoded, 70, 0xabcd);
    assert!(matches!(
        preamble(&encoded),
        Ok(Preamble::First {
            order: Order::Sequence(0xabcd),
            ..
        })
    ));
}

/// Datagrams cut short took ENet down.
#[test]
fn truncated_datagrams() {
    for len in 0..=HEADER_LEN_MAX + TAG_LEN {
        for first in 0..=255 {
            let mut datagram = vec![0; len];
            if let Some(byte) = datagram.first_mut() {
                *byte = first;
            }
            let _ = (
                classify(&datagram),
                Header::decode(&datagram),
                HandshakePacket::decode(&datagram),
            );
        }
    }
    let packet = [0xa0, 0, 0, 0, 1, 0, 0];
    for tag in 0..TAG_LEN {
        let mut short = packet.to_vec();
        short.resize(packet.len() + tag, 0);
        assert_eq!(Header::decode(&short), Err(DecodeError::Truncated));
    }
}

/// Answers must not be larger than what an unproven address sent.
#[test]
fn amplification() {
    let noise = [0; 400];
    let mut buffer = [0; 1300];
    for packet in [
        HandshakePacket::Retry(Retry {
            destination: ConnectionId(0),
            cookie: &noise[..255],
        }),
        HandshakePacket::Accept(Accept {
            destination: ConnectionId(0),
            noise: &noise,
        }),
        HandshakePacket::Refuse(Refuse {
            destination: ConnectionId(0),
            why: Refusal::Full,
        }),
    ] {
        assert!(packet.encode(&mut buffer).expect("it fits") < 1200);
    }
    let hello = HandshakePacket::Hello(Hello {
        source: ConnectionId(0),
        cookie: &[],
        noise: &[],
    });
    let len = hello.encode(&mut buffer).expect("it fits");
    assert_eq!(len, 1200);
    assert!(HandshakePacket::decode(&buffer[..1199]).is_err());
    // Of another version too.
    buffer[4] = 9;
    assert_eq!(
        HandshakePacket::decode(&buffer[..1200]),
        Err(DecodeError::Version { version: 9 })
    );
    assert_eq!(
        HandshakePacket::source_of(&buffer[..1200]),
        Some(ConnectionId(0))
    );
    assert_eq!(HandshakePacket::source_of(&buffer[..1199]), None);
}

#[test]
fn nothing_follows_padding() {
    let mut reader = Reader::new(&[0x01, 0x00, 0xff, 0xff]);
    assert_eq!(Frame::decode(&mut reader, 0), Ok(Some(Frame::Ping)));
    assert_eq!(Frame::decode(&mut reader, 0), Ok(None));
    assert_eq!(reader.remaining(), 0);
}
