//! Varints, headers, frames, handshake packets.

use punctual_proto::wire::{
    Accept, Ack, AckRanges, ConnectionId, Frame, HandshakePacket, Header, Hello, Reader, Refusal,
    Refuse, Retry, Symbol, TAG_LEN, expand,
};
use serde_json::{Value, json};

use super::{hex, noise, written};

pub(super) fn varints() -> Value {
    let values = [
        0,
        1,
        37,
        63,
        64,
        15_293,
        16_383,
        16_384,
        494_878_333,
        (1 << 30) - 1,
        1 << 30,
        151_288_809_941_952_652,
        (1 << 62) - 1,
    ];
    let written: Vec<Value> = values
        .into_iter()
        .map(|value: u64| json!({ "value": value, "bytes": hex(&written(|writer| writer.varint(value))) }))
        .collect();
    let longer: [&[u8]; 3] = [
        &[0x40, 0x25],
        &[0x80, 0, 0, 7],
        &[0xc0, 0, 0, 0, 0, 0, 0, 0],
    ];
    let read: Vec<Value> = longer
        .into_iter()
        .map(|bytes| {
            let value = Reader::new(bytes)
                .varint()
                .expect("longer than needed, and read all the same");
            json!({ "bytes": hex(bytes), "value": value })
        })
        .collect();
    json!({ "written": written, "longer_than_needed": read })
}

pub(super) fn headers() -> Value {
    // (number, largest acknowledged, what the receiver expects next)
    let cases = [
        (0, None, 0),
        (1, Some(0), 1),
        (100, Some(90), 95),
        (16_382, None, 16_000),
        (16_383, None, 16_000),
        (0xffff, Some(0xfff0), 0x1_0000),
        (0x1_0002, Some(0xfff0), 0xfff5),
        (0x1_0000_0005, Some(0xffff_0000), 0xffff_fff0),
        (0xa82f_9b32, Some(0xa82f_9a00), 0xa82f_9b30),
        (1 << 40, Some((1 << 40) - (1 << 20)), (1 << 40) - 7),
    ];
    let mut headers = Vec::new();
    for (index, (number, acknowledged, expected)) in cases.into_iter().enumerate() {
        let destination = ConnectionId(0x0400_0000 + index as u32);
        let header = Header::for_number(destination, index % 2 == 1, number, acknowledged);
        let bytes = written(|writer| header.encode(writer));
        let mut packet = bytes.clone();
        packet.extend_from_slice(&[0; TAG_LEN]);
        let seen = Header::decode(&packet).expect("what was written is read");
        assert_eq!(seen.number(expected), number);
        headers.push(json!({
            "destination": destination.0, "key_phase": u8::from(header.key_phase), "number": number,
            "largest_acknowledged": acknowledged, "number_len": header.number_len, "expected": expected,
            "bytes": hex(&bytes),
        }));
    }
    let expansions: [(u64, u32, u64); 10] = [
        (0x9b32, 16, 0xa82f_30eb),
        (0xffff, 16, 0x1_0000),
        (1, 16, 0xffff),
        (3, 16, 0),
        (0x8000, 16, 0),
        (0x8001, 16, 0),
        (0x8000, 16, 0x1_0000),
        (0x7fff, 16, 0x1_0000),
        (0xffff_ffff, 32, 0x1_0000_0000),
        (0, 32, 0xffff_ffff),
    ];
    let expansions: Vec<Value> = expansions
        .into_iter()
        .map(|(truncated, bits, expected)| {
            json!({ "truncated": truncated, "bits": bits, "expected": expected,
                "value": expand(truncated, bits, expected) })
        })
        .collect();
    let mut invalid: Vec<Vec<u8>> = [0xa1u8, 0xa2, 0xa4, 0xbf, 0x9f, 0xc0]
        .iter()
        .map(|&first| vec![first; 30])
        .collect();
    invalid.push([&[0xa0, 0, 0, 0, 1, 0, 0][..], &[0; TAG_LEN - 1]].concat());
    invalid.push([&[0xa8, 0, 0, 0, 1, 0, 0, 0, 0][..], &[0; TAG_LEN - 1]].concat());
    invalid.push(vec![0xa0, 0, 0]);
    for bytes in &invalid {
        assert!(Header::decode(bytes).is_err(), "{bytes:?}");
    }
    let invalid: Vec<Value> = invalid.iter().map(|bytes| hex(bytes)).collect();
    json!({ "headers": headers, "expansions": expansions, "invalid_packets": invalid })
}

fn ack(runs: &[(u64, u64)], received_at: u32, delay_us: u32, ce_count: u64) -> Frame<'static> {
    let mut ranges = AckRanges::default();
    for &(first, last) in runs {
        assert!(ranges.push(first, last));
    }
    Frame::Ack(Ack {
        ranges,
        received_at,
        delay_us,
        is_kept: delay_us > 5000,
        frame_us: if received_at % 2 == 1 { 16_667 } else { 0 },
        ce_count,
    })
}

/// A frame in words.
fn describe(frame: &Frame<'_>) -> Value {
    match frame {
        Frame::Ping => json!({ "type": "PING" }),
        Frame::Ack(ack) => json!({
            "type": "ACK", "runs": ack.ranges.runs().collect::<Vec<_>>(), "received_at": ack.received_at,
            "delay_us": ack.delay_us, "kept": ack.is_kept, "frame_us": ack.frame_us, "ce_count": ack.ce_count,
        }),
        Frame::Abandon { first, count } => {
            json!({ "type": "ABANDON", "first": first, "count": count })
        }
        Frame::PathChallenge(data) => json!({ "type": "PATH_CHALLENGE", "data": hex(data) }),
        Frame::PathResponse(data) => json!({ "type": "PATH_RESPONSE", "data": hex(data) }),
        Frame::Close { code, reason } => {
            json!({ "type": "CLOSE", "code": code, "reason": String::from_utf8_lossy(reason) })
        }
        Frame::Symbol(symbol) => json!({
            "type": "SYMBOL", "k": symbol.source_symbols, "truncated_block": symbol.truncated_block,
            "esi": symbol.esi, "data": hex(symbol.data),
        }),
        _ => unreachable!("every frame of this version has its words above"),
    }
}

fn read_all(
    content: &[u8],
    next_number: u64,
) -> Result<Vec<Value>, punctual_proto::wire::DecodeError> {
    let mut reader = Reader::new(content);
    let mut frames = Vec::new();
    while let Some(frame) = Frame::decode(&mut reader, next_number)? {
        frames.push(describe(&frame));
    }
    Ok(frames)
}

pub(super) fn frames() -> Value {
    let data = noise(1, 70);
    let symbol = |k, block, esi, len| Symbol {
        source_symbols: k,
        truncated_block: block,
        esi,
        data: &data[..len],
    };
    let twelve: Vec<(u64, u64)> = (0..12)
        .map(|i| (10_000 - 40 * i, 10_000 - 40 * i + 9))
        .collect();
    let most: Vec<(u64, u64)> = (0..64)
        .map(|i| (10_000 - 16 * i, 10_000 - 16 * i + i % 9))
        .collect();
    // Each with the number that the receiver of the frame would send next.
    let single = [
        (Frame::Ping, 0),
        (ack(&[(0, 0)], 0, 0, 0), 1),
        (ack(&[(3, 7)], 0x1234_5678, 250, 0), 8),
        (
            ack(&[(90, 100), (80, 88), (0, 70)], u32::MAX, 70_000, 0),
            200,
        ),
        (ack(&[(90, 100), (88, 88)], 7, 16_384, 5), 101),
        (
            ack(
                &[(0x1_0000_0000, 0x1_0000_0003), (0xffff_fff0, 0xffff_fffe)],
                1,
                1,
                0,
            ),
            0x1_0000_0010,
        ),
        (ack(&twelve, 99, u32::MAX, 1 << 40), 20_000),
        (ack(&most, 0, 1, 0), 10_001),
        (ack(&[(5000, 5000), (3977, 3980)], 0, 1, 0), 5001),
        (Frame::Abandon { first: 0, count: 1 }, 0),
        (
            Frame::Abandon {
                first: 1 << 33,
                count: 8192,
            },
            0,
        ),
        (Frame::PathChallenge(*b"are you?"), 0),
        (Frame::PathResponse(*b"are you?"), 0),
        (
            Frame::Close {
                code: 0,
                reason: b"",
            },
            0,
        ),
        (
            Frame::Close {
                code: 0x101,
                reason: "bis später".as_bytes(),
            },
            0,
        ),
        (Frame::Symbol(symbol(1, 0, 0, 1)), 0),
        (Frame::Symbol(symbol(4, 0xffff, 195, 63)), 0),
        (Frame::Symbol(symbol(64, 513, 255, 64)), 0),
    ];
    let mut packets = Vec::new();
    for (frame, next_number) in &single {
        let bytes = written(|writer| frame.encode(writer));
        let read = read_all(&bytes, *next_number).expect("what was written is read");
        assert_eq!(read, [describe(frame)]);
        packets.push(json!({ "bytes": hex(&bytes), "next_number": next_number, "frames": read }));
    }
    let mixed = written(|writer| {
        ack(&[(1, 2)], 17, 9, 0).encode(writer);
        Frame::Ping.encode(writer);
        Frame::Symbol(symbol(2, 9, 1, 20)).encode(writer);
        symbol(3, 10, 2, 33).encode_last(writer);
    });
    let padded = written(|writer| {
        Frame::Ping.encode(writer);
        writer.bytes(&[0; 12]);
    });
    for (bytes, next_number) in [
        (mixed, 3),
        (padded, 0),
        (Vec::new(), 0),
        (vec![0, 1, 2, 3], 0),
    ] {
        let frames = read_all(&bytes, next_number).expect("these are well formed");
        packets.push(json!({ "bytes": hex(&bytes), "next_number": next_number, "frames": frames }));
    }
    json!({ "contents": packets, "invalid_contents": invalid_contents() })
}

fn invalid_contents() -> Vec<Value> {
    let long_reason = [&[0x07, 0, 0, 201][..], &[b'x'; 201]].concat();
    let many_ranges = [&[0x02, 0, 0, 1, 0, 0, 0, 0, 0, 0, 64, 0][..], &[0; 128]].concat();
    let cases: [(&[u8], u64, &str); 25] = [
        (
            &[0x02, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0],
            5,
            "acknowledges a packet that was not sent",
        ),
        (
            &[0x02, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 6],
            10,
            "the first run reaches below zero",
        ),
        (
            &[0x02, 0, 0, 0, 5, 0, 0, 0, 0, 0, 1, 0, 4, 0],
            10,
            "the gap reaches below zero",
        ),
        (
            &[0x02, 0, 0, 0, 5, 0, 0, 0, 0, 0, 1, 0, 0, 4],
            10,
            "the second run reaches below zero",
        ),
        (&many_ranges, 1000, "sixty-five runs"),
        (
            &[0x02, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0x44, 0],
            4000,
            "a run of more than 1,024 numbers",
        ),
        (
            &[0x02, 0, 0, 8, 0, 0, 0, 0, 0, 0, 1, 0, 0x43, 0xfe, 0],
            4000,
            "the second run is 1,024 below the largest",
        ),
        (
            &[0x02, 0, 0, 0, 5, 0, 0, 0, 0, 0, 1, 0],
            10,
            "fewer runs than stated",
        ),
        (&[0x02, 0, 0, 0, 5], 10, "ends within the ACK"),
        (
            &[
                0x02, 0, 0, 0, 5, 0, 0, 0, 0, 0xc0, 0, 0, 1, 0, 0, 0, 0, 0, 0,
            ],
            10,
            "a delay of more than 32 bits",
        ),
        (
            &[0x03, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0],
            10,
            "ACK_ECN without its count",
        ),
        (&[0x04, 5, 0], 0, "abandons no block"),
        (&[0x04, 5], 0, "ends within the ABANDON"),
        (
            &[0x04, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
            0,
            "abandons a block beyond 2^62 - 1",
        ),
        (
            &[0x05, 1, 2, 3, 4, 5, 6, 7],
            0,
            "ends within the PATH_CHALLENGE",
        ),
        (&[0x07, 0, 0, 3, b'a', b'b'], 0, "ends within the reason"),
        (&long_reason, 0, "a reason of 201 bytes"),
        (&[0x08], 0, "unknown frame type"),
        (&[0x3f], 0, "unknown frame type"),
        (&[0xc0], 0, "unknown frame type"),
        (&[0x43, 0, 1, 196, 1, 9], 0, "k = 4 has symbols 0 to 195"),
        (&[0x43, 0, 1, 0, 0], 0, "an empty symbol"),
        (&[0x83, 0, 1, 0], 0, "an empty last symbol"),
        (&[0x43, 0, 1, 0, 5, 1, 2, 3, 4], 0, "ends within the symbol"),
        (&[0x01, 0x83, 0], 0, "ends within the symbol's header"),
    ];
    let mut vectors = Vec::new();
    for (bytes, next_number, why) in cases {
        assert!(read_all(bytes, next_number).is_err(), "{why}");
        vectors.push(json!({ "bytes": hex(bytes), "next_number": next_number, "why": why }));
    }
    vectors
}

pub(super) fn handshake_packets() -> Value {
    let (cookie, message) = (noise(2, 16), noise(3, 90));
    let id = ConnectionId(0x8000_0007);
    let mut packets = vec![
        HandshakePacket::Hello(Hello {
            source: id,
            cookie: &[],
            noise: &message,
        }),
        HandshakePacket::Hello(Hello {
            source: ConnectionId(0),
            cookie: &cookie,
            noise: &message,
        }),
        HandshakePacket::Retry(Retry {
            destination: id,
            cookie: &cookie,
        }),
        HandshakePacket::Accept(Accept {
            destination: id,
            noise: &message[..63],
        }),
    ];
    let refusals = [
        (1, Refusal::Version),
        (2, Refusal::Key),
        (3, Refusal::TokenMissing),
        (4, Refusal::TokenInvalid),
        (5, Refusal::TokenExpired),
        (6, Refusal::Full),
    ];
    packets.extend(refusals.map(|(_, why)| {
        HandshakePacket::Refuse(Refuse {
            destination: id,
            why,
        })
    }));
    let mut vectors = Vec::new();
    for packet in &packets {
        let mut buffer = [0; 1300];
        let len = packet.encode(&mut buffer).expect("it fits");
        let bytes = &buffer[..len];
        assert_eq!(HandshakePacket::decode(bytes).as_ref(), Ok(packet));
        let description = match packet {
            HandshakePacket::Hello(hello) => json!({ "type": "HELLO", "source": hello.source.0,
                "cookie": hex(hello.cookie), "noise": hex(hello.noise) }),
            HandshakePacket::Retry(retry) => {
                json!({ "type": "RETRY", "destination": retry.destination.0,
                "cookie": hex(retry.cookie) })
            }
            HandshakePacket::Accept(accept) => json!({ "type": "ACCEPT",
                "destination": accept.destination.0, "noise": hex(accept.noise) }),
            HandshakePacket::Refuse(refuse) => {
                let code = refusals
                    .iter()
                    .find(|(_, why)| *why == refuse.why)
                    .map(|(code, _)| *code);
                json!({ "type": "REFUSE", "destination": refuse.destination.0, "code": code })
            }
        };
        vectors.push(json!({ "bytes": hex(bytes), "packet": description }));
    }
    json!({ "packets": vectors, "invalid": invalid_handshake_packets(&message) })
}

fn invalid_handshake_packets(message: &[u8]) -> Vec<Value> {
    let mut hello = [0; 1300];
    let packet = Hello {
        source: ConnectionId(1),
        cookie: &[],
        noise: message,
    };
    let len = HandshakePacket::Hello(packet)
        .encode(&mut hello)
        .expect("it fits");
    let short = hello[..len - 1].to_vec();
    let mut too_long_cookie = hello[..len].to_vec();
    too_long_cookie[9] = 255;
    too_long_cookie[265..267].copy_from_slice(&[0xff, 0xff]);
    let mut other_version = hello[..len].to_vec();
    other_version[4] = 2;
    let cases: [(Vec<u8>, &str); 8] = [
        (short, "a HELLO of 1,199 bytes"),
        (too_long_cookie, "the Noise message reaches past the end"),
        (other_version, "version 2"),
        (
            vec![0x81, 0, 0, 0, 1, 0, 0, 0, 9, 5, 1, 2],
            "ends within the cookie",
        ),
        (
            vec![0x82, 0, 0, 0, 1, 0, 0, 0, 9, 0, 4, 1, 2],
            "ends within the Noise message",
        ),
        (vec![0x83, 0, 0, 0, 1, 0, 0, 0, 9, 0], "refusal 0"),
        (vec![0x83, 0, 0, 0, 1, 0, 0, 0, 9, 7], "refusal 7"),
        (vec![0x85, 0, 0, 0, 1, 0, 0, 0, 9, 1], "unknown first byte"),
    ];
    let mut vectors = Vec::new();
    for (bytes, why) in cases {
        assert!(HandshakePacket::decode(&bytes).is_err(), "{why}");
        vectors.push(json!({ "bytes": hex(&bytes), "why": why }));
    }
    vectors
}
