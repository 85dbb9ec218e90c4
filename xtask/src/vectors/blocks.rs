//! Preambles, the erasure code, messages cut into blocks and symbols.

use punctual_erasure::{REPAIR_SYMBOLS_MAX, SOURCE_SYMBOLS_MAX, rebuild, repair_symbol};
use punctual_proto::vectors::{Reassembled, Reassembly, symbol};
use punctual_proto::wire::{Order, Preamble, Reader, Symbol};
use serde_json::{Value, json};

use super::{hex, noise, written};

pub(super) fn preambles() -> Value {
    let first = |stream, order, message_len| Preamble::First {
        stream,
        order,
        message_len,
    };
    let later = |distance, index| Preamble::Later { distance, index };
    let preambles = [
        first(0, Order::None, 0),
        first(0, Order::None, 63),
        first(0, Order::None, 67_108_864),
        first(1, Order::None, 64),
        first(1023, Order::None, 20_000),
        first(0, Order::Sequence(0), 10),
        first(2, Order::Sequence(65_535), 10),
        first(2, Order::Void(258), 0),
        first(3, Order::Newest, 100),
        first(4, Order::Key(0), 100),
        first(0, Order::Key((1 << 62) - 1), 100),
        later(1, 1),
        later(70, 64),
        later(8191, 1023),
        later(1_000_000, 2),
    ];
    let mut vectors = Vec::new();
    for preamble in preambles {
        let bytes = written(|writer| preamble.encode(writer));
        assert_eq!(Preamble::decode(&mut Reader::new(&bytes)), Ok(preamble));
        vectors.push(match preamble {
            Preamble::First {
                stream,
                order,
                message_len,
            } => {
                let (order, value) = described(order);
                json!({
                    "bytes": hex(&bytes), "stream": stream, "order": order, "order_value": value, "message_len": message_len,
                })
            }
            Preamble::Later { distance, index } => {
                json!({ "bytes": hex(&bytes), "distance": distance, "index": index })
            }
        });
    }
    let invalid: [(&[u8], &str); 12] = [
        (&[0x10, 0], "unknown flags"),
        (&[0x81, 1, 1], "unknown flags"),
        (&[0x08, 0], "void without a sequence number"),
        (&[0x0A, 0, 1, 1], "void with content"),
        (&[0x80, 1, 0], "a later block with index 0"),
        (
            &[0x80, 1, 2],
            "a later block of an index above its distance",
        ),
        (
            &[0x80, 0x80, 0x01, 0, 0, 0x80, 0x01, 0, 0],
            "an index of 65,536",
        ),
        (&[0x80, 1], "ends within the preamble"),
        (&[0x01, 0x44, 0x00, 1], "stream 1,024"),
        (
            &[0x00, 0x84, 0x00, 0x00, 0x01],
            "a message of 67,108,865 bytes",
        ),
        (&[0x01, 5], "ends within the preamble"),
        (&[0x02, 5], "ends within the preamble"),
    ];
    let mut rejected = Vec::new();
    for (bytes, why) in invalid {
        assert!(Preamble::decode(&mut Reader::new(bytes)).is_err(), "{why}");
        rejected.push(json!({ "bytes": hex(bytes), "why": why }));
    }
    json!({ "preambles": vectors, "invalid": rejected })
}

/// What an order is called, and the number that it carries.
pub(super) fn described(order: Order) -> (&'static str, Option<u64>) {
    match order {
        Order::None => ("none", None),
        Order::Sequence(sequence) => ("sequence", Some(sequence.into())),
        Order::Void(sequence) => ("void", Some(sequence.into())),
        Order::Newest => ("newest", None),
        Order::Key(key) => ("key", Some(key)),
    }
}

/// Row `repair` of the matrix: what the code makes of blocks with a single 1.
fn row(repair: u8) -> Vec<u8> {
    let mut row = Vec::new();
    for column in 0..SOURCE_SYMBOLS_MAX {
        let mut block = [0; SOURCE_SYMBOLS_MAX];
        block[column] = 1;
        let mut out = [0];
        repair_symbol(&block, repair, &mut out).expect("64 symbols of one byte");
        row.push(out[0]);
    }
    row
}

pub(super) fn erasure() -> Value {
    let rows: Vec<Value> = (0..REPAIR_SYMBOLS_MAX as u8)
        .map(|repair| json!({ "repair": repair, "coefficients": hex(&row(repair)) }))
        .collect();
    // (k, bytes of a symbol, bytes of the block before padding, ESIs that arrive)
    let cases: [(u8, usize, usize, &[u8]); 6] = [
        (1, 5, 5, &[100]),
        (2, 4, 7, &[2, 1]),
        (4, 16, 61, &[0, 4, 9, 195]),
        (5, 11, 51, &[9, 8, 7, 6, 5]),
        (
            17,
            3,
            51,
            &[0, 1, 2, 3, 20, 5, 6, 7, 8, 21, 10, 11, 12, 13, 14, 15, 208],
        ),
        (64, 2, 127, &[]),
    ];
    let mut blocks = Vec::new();
    for (index, (k, symbol_len, len, arrived)) in cases.into_iter().enumerate() {
        let block = noise(90 + index as u64, len);
        let all_repairs: Vec<u8> = (64..128).collect();
        let arrived = if arrived.is_empty() {
            &all_repairs[..]
        } else {
            arrived
        };
        let symbols: Vec<(u8, Vec<u8>)> = arrived
            .iter()
            .map(|&esi| (esi, symbol(&block, k, symbol_len, esi)))
            .collect();
        assert_eq!(rebuilt(k, symbol_len, &symbols)[..len], block);
        blocks.push(json!({
            "k": k, "symbol_len": symbol_len, "block": hex(&block),
            "symbols": symbols.iter().map(|(esi, data)| json!({ "esi": esi, "data": hex(data) })).collect::<Vec<_>>(),
        }));
    }
    json!({ "rows": rows, "blocks": blocks })
}

fn rebuilt(k: u8, symbol_len: usize, symbols: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut block = vec![0; usize::from(k) * symbol_len];
    let mut present = 0u64;
    let mut repairs: Vec<(u8, Vec<u8>)> = Vec::new();
    for (esi, data) in symbols {
        if *esi < k {
            present |= 1 << esi;
            block[usize::from(*esi) * symbol_len..][..symbol_len].copy_from_slice(data);
        } else {
            repairs.push((esi - k, data.clone()));
        }
    }
    let mut repairs: Vec<(u8, &mut [u8])> = repairs
        .iter_mut()
        .map(|(repair, data)| (*repair, &mut data[..]))
        .collect();
    rebuild(&mut block, symbol_len, present, &mut repairs).expect("k symbols are there");
    block
}

/// Cuts a message as a sender may: full blocks of `k` symbols, and a last one of as many as it needs.
fn cut(stream: u16, message: &[u8], k: usize, symbol_len: usize) -> Vec<(Vec<u8>, u8, usize)> {
    let mut blocks = Vec::new();
    let mut rest = message;
    let mut index = 0;
    loop {
        let preamble = if index == 0 {
            Preamble::First {
                stream,
                order: Order::None,
                message_len: message.len(),
            }
        } else {
            Preamble::Later {
                distance: u64::from(index),
                index,
            }
        };
        let mut block = written(|writer| preamble.encode(writer));
        let (content, later) = rest.split_at(rest.len().min(k * symbol_len - block.len()));
        block.extend_from_slice(content);
        let symbol_len = if later.is_empty() {
            block.len().div_ceil(block.len().div_ceil(symbol_len))
        } else {
            symbol_len
        };
        let symbols = block.len().div_ceil(symbol_len) as u8;
        blocks.push((block, symbols, symbol_len));
        if later.is_empty() {
            return blocks;
        }
        rest = later;
        index += 1;
    }
}

pub(super) fn messages() -> Value {
    // (stream, bytes, k of full blocks, bytes of a symbol, number of the first block)
    let cases = [
        (0, 0, 4, 30, 0u64),
        (0, 10, 1, 12, 1),
        (9, 100, 4, 30, 2),
        (0, 500, 64, 3, 3),
        (3, 1000, 16, 20, 6),
    ];
    let mut receiver = Reassembly::default();
    let mut vectors = Vec::new();
    for (index, (stream, len, k, symbol_len, first_block)) in cases.into_iter().enumerate() {
        let message = noise(100 + index as u64, len);
        let blocks = cut(stream, &message, k, symbol_len);
        let mut symbols = Vec::new();
        let mut delivered = None;
        // The last block first; of each block every fourth symbol is lost, and the others come from the highest downwards.
        for (position, (block, k, symbol_len)) in blocks.iter().enumerate().rev() {
            let number = first_block + position as u64;
            let esis = (0..=u8::MAX)
                .filter(|esi| esi % 4 != 3)
                .take(usize::from(*k));
            for esi in esis.collect::<Vec<_>>().into_iter().rev() {
                let data = symbol(block, *k, *symbol_len, esi);
                let frame = Symbol {
                    source_symbols: *k,
                    truncated_block: number as u16,
                    esi,
                    data: &data,
                };
                if let Reassembled::Messages(mut messages) = receiver.handle_symbol(&frame) {
                    delivered = messages.pop();
                }
                symbols.push(json!({ "block": number, "k": k, "esi": esi, "data": hex(&data) }));
            }
        }
        assert_eq!(
            delivered.as_ref(),
            Some(&(stream, message.clone())),
            "case {index}"
        );
        vectors.push(json!({
            "stream": stream, "message": hex(&message), "first_block": first_block, "blocks": blocks.len(),
            "symbols": symbols,
        }));
    }
    json!({ "messages": vectors })
}
