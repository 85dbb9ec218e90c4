use alloc::vec;
use alloc::vec::Vec;

use super::super::partials::PARTIAL_COST;
use super::*;
use crate::limits::WHOLE_MAX;
use crate::message::{Block, Cut};

struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }
}

/// Nothing else is held, and nobody else is there.
const ALONE: Room = Room {
    waiting_bytes: 0,
    unfinished_bytes: 0,
    share: Share::ALL,
};

fn block(number: u64, k: usize, preamble: &Preamble, content: &[u8]) -> Block {
    let mut head = [0; Preamble::LEN_MAX];
    let mut writer = crate::wire::Writer::new(&mut head);
    preamble.encode(&mut writer);
    let len = writer.len();
    let mut data = head[..len].to_vec();
    data.extend_from_slice(content);
    let cut = Cut::of(data.len(), k);
    Block::new(number, 0, cut, data)
}

fn take(inbox: &mut Inbox, block: &Block, esi: u8, pool: &mut Pool) -> Taken {
    let mut data = vec![0; block.symbols.symbol_len()];
    block.symbols.write_symbol(esi, &mut data);
    let symbol = Symbol {
        source_symbols: block.symbols.source_symbols,
        truncated_block: block.number as u16,
        esi,
        data: &data,
    };
    inbox.handle_symbol(&symbol, ALONE, pool)
}

fn first(stream: u16, message_len: usize) -> Preamble {
    Preamble::First {
        stream,
        order: Order::None,
        message_len,
    }
}

fn later(index: u16) -> Preamble {
    Preamble::Later {
        distance: u64::from(index),
        index,
    }
}

/// The one message that can be handed on.
fn message(inbox: &mut Inbox) -> (u16, Vec<u8>) {
    let Some(Ready::Message(arrived)) = inbox.pop_ready() else {
        panic!("no message is ready")
    };
    assert_eq!(inbox.pop_ready(), None);
    (arrived.stream, arrived.data)
}

/// Fragment reassembly: any k symbols in any order, with duplicates, give the message back, once.
#[test]
fn fragment_reassembly_from_any_symbols_in_any_order() {
    let mut random = Random(7);
    let mut pool = Pool::new(1 << 20);
    let mut inbox = Inbox::default();
    for number in 0..300u64 {
        let content: Vec<u8> = (0..random.below(5000))
            .map(|i| (i as u64 * 31 + number) as u8)
            .collect();
        let preamble = first((number % 3) as u16, content.len());
        let block = block(number, 1 + random.below(64), &preamble, &content);
        let mut messages = 0;
        let mut received = alloc::collections::BTreeSet::new();
        let repairs = 1 + random.below(191);
        for _ in 0..4000 {
            let esi = random.below(usize::from(block.symbols.source_symbols) + repairs) as u8;
            let is_new =
                received.len() < usize::from(block.symbols.source_symbols) && received.insert(esi);
            match take(&mut inbox, &block, esi, &mut pool) {
                Taken::Ready => {
                    let (stream, data) = message(&mut inbox);
                    assert_eq!((u64::from(stream), &data), (number % 3, &content));
                    messages += 1;
                    pool.give(data);
                }
                Taken::Kept => assert!(is_new),
                Taken::Duplicate => assert!(!is_new),
                other => panic!("{other:?}"),
            }
            if messages == 1 && random.below(4) == 0 {
                break;
            }
        }
        assert_eq!(messages, 1, "block {number}");
        assert!(!inbox.has_partials());
        assert_eq!(inbox.held_bytes(), 0);
    }
}

/// Fragment reassembly: symbols that contradict each other, of a peer that holds the keys, are errors and hold no more than the
/// bound.
#[test]
fn fragment_reassembly_of_nonsense_is_bounded() {
    let mut random = Random(11);
    let mut pool = Pool::new(1 << 20);
    let mut inbox = Inbox::default();
    let (mut refused, mut malformed) = (0, 0);
    for _ in 0..60_000 {
        let data = vec![random.below(256) as u8; 1 + random.below(1400)];
        let source_symbols = 1 + random.below(64) as u8;
        let symbol = Symbol {
            source_symbols,
            truncated_block: random.below(4000) as u16,
            esi: random.below(usize::from(source_symbols) + 192) as u8,
            data: &data,
        };
        match inbox.handle_symbol(&symbol, ALONE, &mut pool) {
            Taken::Refused => refused += 1,
            Taken::Malformed => malformed += 1,
            _ => {}
        }
        if random.below(100) == 0 {
            inbox.handle_abandon(
                random.below(4000) as u64,
                1 + random.below(50) as u64,
                &mut pool,
            );
        }
        while let Some(ready) = inbox.pop_ready() {
            if let Ready::Message(arrived) = ready {
                assert!(arrived.data.len() <= WHOLE_MAX);
            }
        }
        assert!(inbox.held_bytes() <= RECEIVE_MAX);
        assert!(inbox.partials.len() <= PARTIAL_BLOCKS_MAX);
    }
    assert!(refused > 1000 && malformed > 1000, "{refused} {malformed}");
}

/// A regression: the first symbol of a block of 64 took room for all of them, so that a packet cost its receiver ninety times its size.
#[test]
fn a_first_symbol_takes_its_own_room() {
    let mut inbox = Inbox::default();
    let mut pool = Pool::new(0);
    let begun = |number| block(number, 64, &first(0, 64 * 1400), &[7; 64 * 1400 - 10]);
    for number in 0..46 {
        assert_eq!(take(&mut inbox, &begun(number), 63, &mut pool), Taken::Kept);
    }
    let held = inbox.partials.capacity();
    assert!(held <= 46 * (4096 + 256), "{held}");
    // Room is granted for what is to come all the same.
    assert_eq!(inbox.held_bytes(), 46 * (64 * 1400 + PARTIAL_COST));
    assert_eq!(take(&mut inbox, &begun(46), 0, &mut pool), Taken::Refused);
}

/// A regression: of many small blocks a hundred times as much was held as was counted, for a session and for all.
#[test]
fn small_blocks_count_what_they_take() {
    let mut inbox = Inbox::default();
    let mut pool = Pool::new(0);
    for number in 0..PARTIAL_BLOCKS_MAX as u64 {
        let begun = block(number, 2, &first(0, 2), &[7; 2]);
        assert_eq!(take(&mut inbox, &begun, 0, &mut pool), Taken::Kept);
    }
    let (held, counted) = (inbox.partials.capacity(), inbox.held_bytes());
    assert!((held..=held * 2).contains(&counted), "{held} {counted}");
}

/// A regression: where blocks that were given up took all places, blocks that need none were refused, and so was all that came long after them.
#[test]
fn places_are_for_blocks_of_several_symbols_of_the_window() {
    let mut inbox = Inbox::default();
    let mut pool = Pool::new(1 << 20);
    let begun = |number| block(number, 2, &first(0, 100), &[7; 100]);
    for number in 0..PARTIAL_BLOCKS_MAX as u64 {
        assert_eq!(take(&mut inbox, &begun(number), 0, &mut pool), Taken::Kept);
    }
    let next = PARTIAL_BLOCKS_MAX as u64;
    assert_eq!(take(&mut inbox, &begun(next), 0, &mut pool), Taken::Refused);
    let whole = block(next + 1, 1, &first(0, 100), &[7; 100]);
    assert_eq!(take(&mut inbox, &whole, 0, &mut pool), Taken::Ready);
    assert_eq!(message(&mut inbox).1, [7; 100]);
    // The oldest lies behind the window of this one.
    let later = begun(BLOCK_WINDOW + 63);
    assert_eq!(take(&mut inbox, &later, 0, &mut pool), Taken::Kept);
    assert_eq!(take(&mut inbox, &later, 1, &mut pool), Taken::Ready);
    assert_eq!(take(&mut inbox, &begun(0), 1, &mut pool), Taken::Duplicate);
}

/// A symbol that was refused since too many events waited did not move the window: blocks behind it kept their room.
#[test]
fn what_is_refused_unseen_moves_the_window_as_well() {
    let mut inbox = Inbox::default();
    let mut pool = Pool::new(1 << 20);
    let begun = |number| block(number, 2, &first(0, 100), &[7; 100]);
    assert_eq!(take(&mut inbox, &begun(0), 0, &mut pool), Taken::Kept);
    assert!(inbox.held_bytes() > 0);
    inbox.pass_over(
        &Symbol {
            source_symbols: 2,
            truncated_block: BLOCK_WINDOW as u16 + 63,
            esi: 0,
            data: &[],
        },
        &mut pool,
    );
    assert_eq!(inbox.held_bytes(), 0);
    assert_eq!(take(&mut inbox, &begun(0), 1, &mut pool), Taken::Duplicate);
}

/// A packet held back until its block's number was read as one far ahead had the receiver take all blocks of the present for ones behind its window: it acknowledged them and
/// threw them away, and a block of one symbol was handed on twice.
#[test]
fn what_was_held_back_for_long_is_not_taken_for_what_is_to_come() {
    let mut inbox = Inbox::default();
    let mut pool = Pool::new(1 << 20);
    let whole = |number| block(number, 1, &first(0, 100), &[7; 100]);
    for number in (0..=40_000).step_by(8000) {
        assert_eq!(take(&mut inbox, &whole(number), 0, &mut pool), Taken::Ready);
        message(&mut inbox);
    }
    assert_eq!(take(&mut inbox, &whole(0), 0, &mut pool), Taken::Refused);
    assert_eq!(take(&mut inbox, &whole(40_001), 0, &mut pool), Taken::Ready);
    message(&mut inbox);
    // As far ahead as a sender may be.
    let ahead = whole(40_001 + BLOCKS_AHEAD_MAX);
    assert_eq!(take(&mut inbox, &ahead, 0, &mut pool), Taken::Ready);
}

/// What is given up is marked as done word by word: the same as block by block.
#[test]
fn runs_are_done_like_their_blocks() {
    let mut random = Random(3);
    for _ in 0..300 {
        let (mut by_run, mut by_block) = (Done::default(), Done::default());
        for _ in 0..20 {
            let first = random.below(600) as u64;
            let last = first + random.below(200) as u64;
            by_run.insert(&(first..=last));
            (first..=last).for_each(|block| by_block.insert(&(block..=block)));
            assert_eq!(by_run.base, by_block.base);
            for block in 0..900 {
                assert_eq!(by_run.contains(block), by_block.contains(block), "{block}");
            }
        }
    }
}

/// A block that is cut anew for a narrower path: what came of the old cut goes, what still comes of it is not kept, and whichever is complete first counts once.
#[test]
fn a_block_cut_anew_is_taken_once() {
    let mut pool = Pool::new(1 << 20);
    let content: Vec<u8> = (0..4000).map(|at| at as u8).collect();
    let wide = block(0, 3, &first(0, 4000), &content);
    let narrow = block(0, 4, &first(0, 4000), &content);
    let mut inbox = Inbox::default();
    for esi in [0, 4] {
        assert_eq!(take(&mut inbox, &wide, esi, &mut pool), Taken::Kept);
    }
    for esi in [1, 3] {
        assert_eq!(take(&mut inbox, &narrow, esi, &mut pool), Taken::Kept);
    }
    let whole = 4 * narrow.symbols.symbol_len();
    assert_eq!(inbox.held_bytes(), whole + PARTIAL_COST);
    assert_eq!(take(&mut inbox, &wide, 2, &mut pool), Taken::Duplicate);
    assert_eq!(take(&mut inbox, &narrow, 7, &mut pool), Taken::Kept);
    assert_eq!(take(&mut inbox, &narrow, 2, &mut pool), Taken::Ready);
    assert_eq!(message(&mut inbox), (0, content.clone()));
    assert_eq!(inbox.held_bytes(), 0);
    assert_eq!(take(&mut inbox, &wide, 1, &mut pool), Taken::Duplicate);
    // The old one was complete, and its sender did not hear of it.
    let mut inbox = Inbox::default();
    assert_eq!(take(&mut inbox, &wide, 0, &mut pool), Taken::Kept);
    assert_eq!(take(&mut inbox, &wide, 1, &mut pool), Taken::Kept);
    assert_eq!(take(&mut inbox, &wide, 2, &mut pool), Taken::Ready);
    assert_eq!(take(&mut inbox, &narrow, 0, &mut pool), Taken::Duplicate);
    // Nobody cuts into fewer and shorter ones.
    let mut inbox = Inbox::default();
    let longer = block(0, 5, &first(0, 9000), &[1; 9000]);
    assert_eq!(take(&mut inbox, &longer, 0, &mut pool), Taken::Kept);
    assert_eq!(take(&mut inbox, &wide, 0, &mut pool), Taken::Malformed);
}

/// A message of several blocks, whose blocks come in any order.
#[test]
fn a_large_message_is_assembled_from_blocks_in_any_order() {
    let mut pool = Pool::new(1 << 20);
    let mut inbox = Inbox::default();
    let content: Vec<u8> = (0..5000u32).map(|i| (i % 241) as u8).collect();
    let first = block(40, 2, &first(9, 5000), &content[..2000]);
    let second = block(41, 2, &later(1), &content[2000..4001]);
    let third = block(42, 1, &later(2), &content[4001..]);
    assert_eq!(take(&mut inbox, &third, 0, &mut pool), Taken::Kept);
    assert_eq!(take(&mut inbox, &first, 1, &mut pool), Taken::Kept);
    assert_eq!(take(&mut inbox, &first, 0, &mut pool), Taken::Kept);
    assert_eq!(take(&mut inbox, &second, 3, &mut pool), Taken::Kept);
    assert_eq!(take(&mut inbox, &second, 0, &mut pool), Taken::Ready);
    assert_eq!(message(&mut inbox), (9, content));
    assert_eq!(inbox.held_bytes(), 0);
}

/// Exactly once, after years: block numbers wrap on the wire, and what is done stays done.
#[test]
fn sequence_wrap_of_block_numbers() {
    let mut pool = Pool::new(1 << 20);
    let mut inbox = Inbox::default();
    for number in 0..200_000u64 {
        let block = block(number, 1, &first(0, 4), &[1, 2, 3, 4]);
        assert_eq!(
            take(&mut inbox, &block, 0, &mut pool),
            Taken::Ready,
            "{number}"
        );
        message(&mut inbox);
        assert_eq!(take(&mut inbox, &block, 1, &mut pool), Taken::Duplicate);
        assert!(inbox.done.words.len() <= 2);
    }
}

/// Blocks that never come (given up by their sender) do not make the memory of what is done grow.
#[test]
fn holes_are_forgotten_behind_the_window() {
    let mut pool = Pool::new(1 << 20);
    let mut inbox = Inbox::default();
    for number in (0..100_000u64).step_by(2) {
        let block = block(number, 1, &first(0, 1), &[1]);
        assert_eq!(take(&mut inbox, &block, 0, &mut pool), Taken::Ready);
        message(&mut inbox);
        assert!(inbox.done.words.len() <= BLOCK_WINDOW as usize / 64 + 1);
    }
}

/// A message whose first blocks complete a word of the memory of what is done used to be forgotten half assembled.
#[test]
fn a_large_message_survives_the_memory_of_what_is_done_moving_on() {
    let mut pool = Pool::new(1 << 20);
    let mut inbox = Inbox::default();
    for number in 0..62u64 {
        let preamble = first(0, 1);
        take(&mut inbox, &block(number, 1, &preamble, &[1]), 0, &mut pool);
        message(&mut inbox);
    }
    let content: Vec<u8> = (0..4000u32).map(|i| (i % 241) as u8).collect();
    for part in 0..4u16 {
        let preamble = match part {
            0 => first(5, 4000),
            index => later(index),
        };
        let range = usize::from(part) * 1000..usize::from(part) * 1000 + 1000;
        let block = block(62 + u64::from(part), 1, &preamble, &content[range]);
        let taken = take(&mut inbox, &block, 0, &mut pool);
        if part == 3 {
            let data = content.clone();
            assert_eq!(taken, Taken::Ready);
            assert_eq!(message(&mut inbox), (5, data));
        } else {
            assert_eq!(taken, Taken::Kept);
        }
    }
}

/// The first block of a large message comes last, and the message is not wanted: nothing of it is handed on. (Pieces that were
/// ready behind the first one used to be.)
#[test]
fn pieces_of_an_unwanted_message_are_not_handed_on() {
    let mut pool = Pool::new(1 << 20);
    let mut inbox = Inbox::default();
    let len = WHOLE_MAX + 1;
    let second = block(1, 1, &later(1), &[2; 100]);
    let first = block(0, 1, &first(9, len), &[1; 100]);
    assert_eq!(take(&mut inbox, &second, 0, &mut pool), Taken::Kept);
    assert_eq!(take(&mut inbox, &first, 0, &mut pool), Taken::Ready);
    assert!(matches!(
        inbox.pop_ready(),
        Some(Ready::Piece { offset: 0, .. })
    ));
    inbox.drop_message(0, &mut pool);
    assert_eq!(inbox.pop_ready(), None);
    assert!(!inbox.has_partials());
    assert_eq!(inbox.held_bytes(), 0);
}

/// Parts without content used to be kept without being counted: memory for nothing, without end.
#[test]
fn parts_of_nothing_are_malformed_and_small_ones_count() {
    let mut pool = Pool::new(1 << 20);
    let mut inbox = Inbox::default();
    let empty = block(1, 1, &later(1), &[]);
    assert_eq!(take(&mut inbox, &empty, 0, &mut pool), Taken::Malformed);
    let empty = block(2, 1, &first(1, 5), &[]);
    assert_eq!(take(&mut inbox, &empty, 0, &mut pool), Taken::Malformed);
    let mut inbox = Inbox::default();
    let (mut kept, mut number) = (0, 0);
    // Messages whose first block never comes, in parts of one byte.
    'refused: for _ in 0..20 {
        let first_block = number;
        for index in 1..8000u16 {
            number = first_block + u64::from(index);
            match take(
                &mut inbox,
                &block(number, 1, &later(index), &[7]),
                0,
                &mut pool,
            ) {
                Taken::Kept => kept += 1,
                _ => break 'refused,
            }
        }
        number += 1;
    }
    assert!(kept <= RECEIVE_MAX / 64, "{kept}");
    assert!(kept > 10_000, "{kept}");
    assert!(inbox.held_bytes() <= RECEIVE_MAX + 100);
}

/// Blocks of messages whose first one never comes: so many are kept, and one more is an error.
#[test]
fn messages_without_a_beginning_are_bounded() {
    let mut pool = Pool::new(1 << 20);
    let mut inbox = Inbox::default();
    for message in 0..crate::limits::ASSEMBLIES_MAX as u64 {
        let part = block(2 * message + 1, 1, &later(1), &[7; 50]);
        assert_eq!(take(&mut inbox, &part, 0, &mut pool), Taken::Kept);
    }
    let part = block(1001, 1, &later(1), &[7; 50]);
    assert_eq!(take(&mut inbox, &part, 0, &mut pool), Taken::Malformed);
}

/// Parts of one byte each that come before the first one, the last of them first: what they cost does not grow with their square.
#[test]
fn many_small_parts_in_the_worst_order_are_joined() {
    let mut inbox = Inbox::default();
    let mut pool = Pool::new(1 << 20);
    let parts = 4000;
    for index in (1..parts).rev() {
        let number = 2 * parts - index;
        let preamble = Preamble::Later {
            distance: number,
            index: index as u16,
        };
        let part = block(number, 1, &preamble, &[index as u8]);
        assert_eq!(take(&mut inbox, &part, 0, &mut pool), Taken::Kept);
    }
    let begin = block(0, 1, &first(0, parts as usize), &[0]);
    assert_eq!(take(&mut inbox, &begin, 0, &mut pool), Taken::Ready);
    let expected: Vec<u8> = (0..parts).map(|index| index as u8).collect();
    assert_eq!(message(&mut inbox).1, expected);
    assert_eq!(inbox.held_bytes(), 0);
}
