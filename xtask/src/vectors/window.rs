//! Which symbols a receiver keeps, takes for done, refuses, or ends the session for.

use punctual_proto::vectors::{Reassembled, Reassembly, symbol};
use punctual_proto::wire::{Order, Preamble, Symbol};
use serde_json::{Value, json};

use super::{hex, noise, written};

/// What comes.
enum Step {
    /// Block, k, bytes of a symbol, ESI.
    Symbol(u64, u8, usize, u8),
    /// First block, how many.
    Abandon(u64, u64),
}

use Step::{Abandon, Symbol as Of};

pub(super) fn blocks() -> Value {
    // A block of one symbol is a whole message.
    let whole = |block| Of(block, 1, 20, 0);
    let far = |newest: u64| (0..=newest).step_by(8000).map(whole);
    let scripts: [(&str, Vec<Step>); 7] = [
        (
            "each block is handed on once",
            vec![
                Of(0, 2, 10, 0),
                Of(0, 2, 10, 0),
                Of(0, 2, 10, 3),
                Of(0, 2, 10, 1),
                whole(1),
                Of(1, 1, 20, 9),
            ],
        ),
        (
            "what lies behind the window is done",
            vec![
                Of(0, 2, 10, 0),
                Of(100, 2, 10, 0),
                whole(8256),
                Of(0, 2, 10, 1),
                Of(100, 2, 10, 1),
            ],
        ),
        (
            "what is given up is done, and moves the window",
            vec![
                Of(5, 2, 10, 0),
                Abandon(4, 2),
                Of(5, 2, 10, 1),
                Of(4, 1, 20, 0),
                Of(6, 1, 20, 0),
                Of(7, 2, 10, 0),
                Abandon(8300, 5),
                Of(7, 2, 10, 1),
            ],
        ),
        (
            "numbers go on beyond 16 bits",
            far(72_000).chain([whole(65_500), whole(65_600)]).collect(),
        ),
        (
            "a number from long ago is no number to come",
            far(40_000)
                .chain([
                    whole(0),
                    whole(40_000 + 24_577),
                    whole(40_001),
                    whole(40_001 + 24_576),
                ])
                .collect(),
        ),
        (
            "a block cut anew begins with the new cut",
            vec![
                Of(7, 2, 12, 0),
                Of(7, 3, 8, 0),
                Of(7, 2, 12, 1),
                Of(7, 3, 8, 4),
                Of(7, 3, 8, 2),
            ],
        ),
        (
            "symbols that cannot be of one block end the session",
            vec![Of(3, 2, 10, 0), Of(3, 3, 12, 0)],
        ),
    ];
    let scripts: Vec<_> = scripts.into_iter().map(script).collect();
    json!({ "scripts": scripts })
}

fn script((what, steps): (&str, Vec<Step>)) -> Value {
    let mut receiver = Reassembly::default();
    let told = steps.into_iter().map(|step| match step {
        Abandon(first, count) => {
            receiver.handle_abandon(first, count);
            json!({ "abandon": { "first": first, "count": count } })
        }
        Of(number, k, symbol_len, esi) => {
            let data = symbol(&content(number), k, symbol_len, esi);
            let result = receiver.handle_symbol(&Symbol {
                source_symbols: k,
                truncated_block: number as u16,
                esi,
                data: &data,
            });
            let (result, messages) = match result {
                Reassembled::Nothing => ("acknowledged", Vec::new()),
                Reassembled::Refused => ("refused", Vec::new()),
                Reassembled::Malformed => ("malformed", Vec::new()),
                Reassembled::Messages(messages) => ("acknowledged", messages),
            };
            let handed_on: Vec<_> = messages.iter().map(|(_, data)| hex(data)).collect();
            json!({
                "symbol": { "block": number as u16, "k": k, "esi": esi, "data": hex(&data) },
                "result": result, "handed_on": handed_on,
            })
        }
    });
    json!({ "what": what, "steps": told.collect::<Vec<_>>() })
}

/// A message of twenty bytes with its preamble.
fn content(number: u64) -> Vec<u8> {
    let message = noise(300 + number, 18);
    let preamble = Preamble::First {
        stream: 0,
        order: Order::None,
        message_len: message.len(),
    };
    let mut block = written(|writer| preamble.encode(writer));
    block.extend_from_slice(&message);
    block
}
