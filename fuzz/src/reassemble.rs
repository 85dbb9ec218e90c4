//! Symbols -> messages under a hostile network, against a model.
//!
//! The input is a list of operations of two bytes. An honest sender cuts messages into blocks; the network delivers any of
//! the symbols, in any order, more than once. Whatever it does, a message arrives at most once and unchanged, and once the
//! network delivers everything, every message that was not given up has arrived. Then the same bytes are read as frames
//! from a dishonest peer: nothing may panic.

use punctual_proto::limits::LARGE_IN_PROGRESS_MAX;
use punctual_proto::vectors::{Reassembled, Reassembly, symbol};
use punctual_proto::wire::{Frame, Order, Preamble, Reader, Symbol, Writer};

/// Operations that are looked at.
const OPERATIONS_MAX: usize = 600;
/// Blocks that one case makes at most.
const BLOCKS_MAX: usize = 200;

struct Block {
    number: u64,
    message: usize,
    data: Vec<u8>,
    k: u8,
    symbol_len: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    UnderWay,
    Arrived,
    GivenUp,
}

#[derive(Default)]
struct Model {
    messages: Vec<Vec<u8>>,
    fates: Vec<Fate>,
    blocks: Vec<Block>,
    receiver: Reassembly,
}

/// Reads `data` as operations on the model, and again as the frames of a dishonest peer.
pub fn reassemble(data: &[u8]) {
    honest(data);
    dishonest(data);
}

fn honest(data: &[u8]) {
    let mut model = Model::default();
    let (operations, _) = data.as_chunks::<2>();
    for &[what, which] in operations.iter().take(OPERATIONS_MAX) {
        match what >> 6 {
            0 => model.send(what & 0x3f, which),
            1 | 2 => model.deliver(usize::from(which), what & 0x7f),
            _ if which < 16 => model.give_up(what & 0x3f),
            _ => model.deliver(usize::from(which), (what & 0x3f).wrapping_mul(5)),
        }
    }
    model.deliver_everything();
}

impl Model {
    /// A message of some length, in blocks of some shape.
    fn send(&mut self, shape: u8, size: u8) {
        if self.blocks.len() >= BLOCKS_MAX {
            return;
        }
        let k = usize::from(shape % 9) + 1;
        let symbol_len = usize::from(shape / 9) * 3 + 8;
        let index = self.messages.len();
        let mut content: Vec<u8> = (0..usize::from(size) * 3)
            .map(|i| (i * 31 + index * 7) as u8)
            .collect();
        if self.large_in_progress() >= LARGE_IN_PROGRESS_MAX {
            // One more of several blocks has to wait; one of one block need not.
            content.truncate((k * symbol_len).saturating_sub(Preamble::LEN_MAX));
        }
        let first_block = self.blocks.len() as u64;
        let mut rest = &content[..];
        for part in 0u16.. {
            let preamble = if part == 0 {
                Preamble::First {
                    stream: index as u16,
                    order: Order::None,
                    message_len: content.len(),
                }
            } else {
                Preamble::Later {
                    distance: self.blocks.len() as u64 - first_block,
                    index: part,
                }
            };
            let mut head = [0; Preamble::LEN_MAX];
            let mut writer = Writer::new(&mut head);
            preamble.encode(&mut writer);
            let head_len = writer
                .finish()
                .expect("the buffer has a preamble's greatest length");
            let mut data = head[..head_len].to_vec();
            let (now, later) =
                rest.split_at(rest.len().min((k * symbol_len).saturating_sub(head_len)));
            data.extend_from_slice(now);
            let number = self.blocks.len() as u64;
            let k = data.len().div_ceil(symbol_len) as u8;
            self.blocks.push(Block {
                number,
                message: index,
                data,
                k,
                symbol_len,
            });
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        self.messages.push(content);
        self.fates.push(Fate::UnderWay);
    }

    /// Messages of several blocks that have neither arrived nor been given up.
    fn large_in_progress(&self) -> usize {
        let pairs = self.blocks.windows(2);
        let mut large: Vec<usize> = pairs
            .filter(|pair| pair[0].message == pair[1].message)
            .map(|pair| pair[0].message)
            .filter(|message| self.fates[*message] == Fate::UnderWay)
            .collect();
        large.dedup();
        large.len()
    }

    fn deliver(&mut self, block: usize, esi: u8) {
        if self.blocks.is_empty() {
            return;
        }
        let Block {
            number,
            data,
            k,
            symbol_len,
            ..
        } = &self.blocks[block % self.blocks.len()];
        let esi = (usize::from(esi) % (usize::from(*k) + 192)) as u8;
        let data = symbol(data, *k, *symbol_len, esi);
        let frame = Symbol {
            source_symbols: *k,
            truncated_block: *number as u16,
            esi,
            data: &data,
        };
        match self.receiver.handle_symbol(&frame) {
            Reassembled::Nothing | Reassembled::Refused => {}
            Reassembled::Malformed => panic!("an honest peer's symbol is never malformed"),
            Reassembled::Messages(messages) => {
                for (stream, data) in messages {
                    self.arrive(usize::from(stream), &data);
                }
            }
        }
    }

    fn arrive(&mut self, index: usize, data: &[u8]) {
        assert_eq!(
            data, self.messages[index],
            "message {index} is not what was sent"
        );
        assert!(
            self.fates[index] != Fate::Arrived,
            "message {index} arrives twice"
        );
        self.fates[index] = Fate::Arrived;
    }

    /// The sender gives a message up, and the receiver hears of it.
    fn give_up(&mut self, which: u8) {
        let Some(index) = usize::from(which).checked_rem(self.messages.len()) else {
            return;
        };
        let mut blocks = self
            .blocks
            .iter()
            .filter(|block| block.message == index)
            .map(|block| block.number);
        let first = blocks.next().expect("every message has a block");
        self.receiver
            .handle_abandon(first, 1 + blocks.count() as u64);
        if self.fates[index] == Fate::UnderWay {
            self.fates[index] = Fate::GivenUp;
        }
    }

    fn deliver_everything(&mut self) {
        for block in 0..self.blocks.len() {
            for esi in 0..self.blocks[block].k {
                self.deliver(block, esi);
            }
        }
        for (index, fate) in self.fates.iter().enumerate() {
            assert!(*fate != Fate::UnderWay, "message {index} never arrives");
        }
    }
}

fn dishonest(data: &[u8]) {
    let mut receiver = Reassembly::default();
    let mut reader = Reader::new(data);
    while let Ok(Some(frame)) = Frame::decode(&mut reader, 0) {
        match frame {
            Frame::Symbol(symbol) if receiver.handle_symbol(&symbol) == Reassembled::Malformed => {
                return;
            }
            Frame::Abandon { first, count } => receiver.handle_abandon(first, count),
            _ => {}
        }
    }
}
