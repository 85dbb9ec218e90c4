//! Packet keys, sealed packets, key updates.

use punctual_proto::crypto::Algorithm;
use punctual_proto::vectors::{PacketOpener, algorithm_bit, packet_keys, seal_packet};
use punctual_proto::wire::{ConnectionId, Frame, Header, Symbol};
use serde_json::{Value, json};

use super::handshake::Preferring;
use super::{hex, key, noise, written};

pub(super) fn packets() -> Value {
    let mut keys = Vec::new();
    let mut packets = Vec::new();
    for algorithm in [Algorithm::Aes128Gcm, Algorithm::ChaCha20Poly1305] {
        let first_secret = key(70 + u64::from(algorithm_bit(algorithm)));
        let mut secret = first_secret;
        for generation in 0..3 {
            let derived = packet_keys(algorithm, secret);
            keys.push(json!({
                "algorithm": algorithm_bit(algorithm), "generation": generation, "secret": hex(&secret),
                "key": hex(&derived.key), "iv": hex(&derived.iv), "next_secret": hex(&derived.next_secret),
            }));
            secret = derived.next_secret;
        }
        packets.extend(sealed(algorithm, first_secret));
    }
    json!({ "keys": keys, "packets": packets })
}

/// Packets of one direction in the order of their arrival, over two key updates, one of them late.
fn sealed(algorithm: Algorithm, secret: [u8; 32]) -> Vec<Value> {
    let aead = Preferring(algorithm);
    let data = noise(80, 1171);
    let ping = written(|writer| Frame::Ping.encode(writer));
    let symbol = |len| {
        let symbol = Symbol {
            source_symbols: 4,
            truncated_block: 77,
            esi: 5,
            data: &data[..len],
        };
        written(|writer| symbol.encode_last(writer))
    };
    // (generation, number, acknowledged, expected by the receiver, content)
    let arrivals = [
        (0, 0, None, 0, ping.clone()),
        (0, 1, Some(0), 1, symbol(100)),
        (0, 65_535, None, 2, symbol(1)),
        (1, 65_537, Some(65_530), 65_536, ping.clone()),
        (0, 65_536, Some(65_530), 65_538, symbol(17)),
        (1, 0x4000_0000, Some(65_537), 65_538, symbol(1171)),
        (2, 0x4000_0001, Some(0x4000_0000), 0x4000_0001, Vec::new()),
        (2, (1 << 40) + 3, Some(1 << 40), 1 << 40, ping),
    ];
    let mut opener = PacketOpener::new(&aead, algorithm, secret);
    let mut newest = 0;
    let mut vectors = Vec::new();
    for (generation, number, acknowledged, expected, content) in arrivals {
        let header = Header::for_number(
            ConnectionId(0x1234_5678),
            generation % 2 == 1,
            number,
            acknowledged,
        );
        let packet = seal_packet(
            &aead, algorithm, secret, generation, &header, number, &content,
        );
        let (opened, is_update) = opener.open(&aead, expected, &packet).expect("it opens");
        assert_eq!((opened, is_update), (content.clone(), generation > newest));
        newest = newest.max(generation);
        vectors.push(json!({
            "algorithm": algorithm_bit(algorithm), "first_secret": hex(&secret), "generation": generation,
            "number": number, "expected": expected, "content": hex(&content), "packet": hex(&packet),
        }));
    }
    vectors
}
