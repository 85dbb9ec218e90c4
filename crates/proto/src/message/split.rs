//! Into how many symbols a message is cut: the k that minimises expected bytes, all headers and what packets are worth included, within the path MTU.

use punctual_policy::Policy;

use crate::limits::{MTU_MIN, SOURCE_SYMBOLS_MAX, UDP_IP_HEADER};
use crate::wire::{HEADER_LEN_MAX, SYMBOL_HEADER, TAG_LEN};

/// Candidates above the least possible k: beyond it, headers outweigh what finer repair symbols save, at any loss.
const CANDIDATES: usize = 12;

/// Whether a symbol leaves room for another in a packet of `mtu` bytes: it takes something along, and something takes it along.
pub(crate) const fn leaves_room(symbol_len: usize, mtu: usize) -> bool {
    symbol_len <= mtu / 2
}

/// What a packet is worth besides its bytes, in bytes. (Ethernet spends 38 on a frame; a radio's preamble and answer, or two system calls, take as long as hundreds. By bytes alone 500 of them
/// were four packets and more where only one round fits, to save a tenth.)
const PACKET_WORTH: usize = 100;

/// What is to be expected of a block's flights.
#[derive(Clone, Copy)]
pub(crate) struct Flights<'a> {
    pub(crate) policy: &'a dyn Policy,
    /// 1 or more.
    pub(crate) rounds: u16,
    pub(crate) loss: f32,
    /// Redundant symbols leave in packets that leave anyway, if they leave room in one.
    pub(crate) ride: bool,
}

impl Flights<'_> {
    /// Bytes that a block is expected to cost.
    fn cost_of(&self, cut: Cut, mtu: usize) -> f32 {
        let symbols = self
            .policy
            .expected_symbols(cut.source_symbols, self.rounds, self.loss);
        let of_packet = (cut.symbol_len + PACKET_OVERHEAD + PACKET_WORTH) as f32;
        let needed = f32::from(cut.source_symbols);
        let rides = self.ride && leaves_room(cut.symbol_len, mtu);
        let of_redundant = if rides {
            (cut.symbol_len + SYMBOL_HEADER) as f32
        } else {
            of_packet
        };
        needed * of_packet + (symbols - needed).max(0.0) * of_redundant
    }
}

/// How a block is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// k, 1..=64.
    pub(crate) source_symbols: u8,
    /// Bytes of each symbol.
    pub(crate) symbol_len: usize,
}

impl Cut {
    /// `block_len` bytes in about `source_symbols` equal symbols.
    pub(crate) fn of(block_len: usize, source_symbols: usize) -> Self {
        let symbol_len = block_len.div_ceil(source_symbols.max(1)).max(1);
        // Fewer symbols may do once each is rounded up to whole bytes.
        let source_symbols = block_len.div_ceil(symbol_len).max(1);
        Self {
            source_symbols: source_symbols as u8,
            symbol_len,
        }
    }
}

impl Cut {
    /// The largest part of `block_len` bytes that `source_symbols` symbols hold without padding, which only the last block of a
    /// message may have; more than the `head` bytes of its preamble.
    pub(crate) fn without_padding(block_len: usize, head: usize, source_symbols: u8) -> Self {
        let k = usize::from(source_symbols).max(1);
        let (k, symbol_len) = divisible(k, block_len / k);
        if k * symbol_len > head {
            Self {
                source_symbols: k as u8,
                symbol_len,
            }
        } else {
            Self {
                source_symbols: 1,
                symbol_len: block_len,
            }
        }
    }

    /// How a block of `block_len` bytes is cut anew for a path that carries symbols of `symbol_max` bytes and no longer ones. What is not the last of its message
    /// must fill its symbols, again: there is always such a cut of those that [`cut_evenly`] and [`Cut::without_padding`] make.
    pub(crate) fn anew(block_len: usize, symbol_max: usize, is_last: bool) -> Option<Self> {
        let least = block_len.div_ceil(symbol_max).max(1);
        (least..=SOURCE_SYMBOLS_MAX)
            .find(|k| is_last || block_len.is_multiple_of(*k))
            .map(|k| Self::of(block_len, k))
    }

    /// Bytes that its symbols hold.
    pub(crate) fn block_len(&self) -> usize {
        usize::from(self.source_symbols) * self.symbol_len
    }
}

/// Bytes of a UDP payload with one symbol besides it, with the shortest header.
pub(crate) const AROUND_SYMBOL: usize = 7 + SYMBOL_HEADER + TAG_LEN;
/// Bytes on the wire of such a packet besides the symbol in it.
pub(crate) const PACKET_OVERHEAD: usize = UDP_IP_HEADER + AROUND_SYMBOL;

/// The largest symbol that a packet of `mtu` bytes holds alone.
pub(crate) const fn symbol_len_max(mtu: usize) -> usize {
    mtu - HEADER_LEN_MAX - SYMBOL_HEADER - TAG_LEN
}

/// The cut for a block of `block_len` bytes, or `None` when it does not fit one block.
pub(crate) fn single_block(
    block_len: usize,
    mtu: usize,
    forced: Option<u8>,
    flights: Flights<'_>,
) -> Option<Cut> {
    let symbol_max = symbol_len_max(mtu);
    let least = block_len.div_ceil(symbol_max).max(1);
    if least > SOURCE_SYMBOLS_MAX {
        return None;
    }
    if let Some(forced) = forced {
        return Some(Cut::of(
            block_len,
            usize::from(forced).clamp(least, SOURCE_SYMBOLS_MAX),
        ));
    }
    let most = (least + CANDIDATES).min(SOURCE_SYMBOLS_MAX);
    let mut best = Cut::of(block_len, least);
    let mut best_cost = flights.cost_of(best, mtu);
    for source_symbols in least + 1..=most {
        let cut = Cut::of(block_len, source_symbols);
        if usize::from(cut.source_symbols) != source_symbols {
            continue;
        }
        let cut_cost = flights.cost_of(cut, mtu);
        // A hair is no reason for more packets.
        if cut_cost < best_cost * 0.999 {
            (best, best_cost) = (cut, cut_cost);
        }
    }
    Some(best)
}

/// The cut of a full block of a message that needs several.
pub(crate) const fn cut_evenly(mtu: usize) -> Cut {
    let (source_symbols, symbol_len) = divisible(SOURCE_SYMBOLS_MAX, symbol_len_max(mtu));
    Cut {
        source_symbols: source_symbols as u8,
        symbol_len,
    }
}

/// So many symbols of this length, or some fewer and up to three bytes shorter, of which a block can be cut anew for the narrowest path without padding: twice as many of half
/// the length, or four for three.
const fn divisible(source_symbols: usize, symbol_len: usize) -> (usize, usize) {
    const HALVED: usize = SOURCE_SYMBOLS_MAX / 2;
    const FOUR_FOR_THREE: usize = SOURCE_SYMBOLS_MAX / 4 * 3;
    if symbol_len <= symbol_len_max(MTU_MIN as usize) {
        return (source_symbols, symbol_len);
    }
    let source_symbols = if source_symbols <= HALVED {
        source_symbols
    } else if source_symbols < FOUR_FOR_THREE {
        source_symbols / 3 * 3
    } else {
        FOUR_FOR_THREE
    };
    (source_symbols, symbol_len & !3)
}

/// The last choice: messages of one size on one path are cut alike, and the choice costs a dozen table look-ups.
#[derive(Default)]
pub(crate) struct SplitCache {
    last: Option<(Key, Cut)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    block_len: u32,
    mtu: u16,
    rounds: u16,
    ride: bool,
    forced: Option<u8>,
    /// Loss to about an eighth of an octave.
    loss: u32,
    miss: u32,
}

impl SplitCache {
    /// `miss` is the target of the policy.
    pub(crate) fn single_block(
        &mut self,
        block_len: usize,
        mtu: usize,
        forced: Option<u8>,
        flights: Flights<'_>,
        miss: f32,
    ) -> Option<Cut> {
        // The exponent and three bits of the fraction.
        let loss_step = flights.loss.to_bits() >> 20;
        let key = Key {
            block_len: block_len as u32,
            mtu: mtu as u16,
            // From some on, one more makes no difference, and their number follows every sample of the delay.
            rounds: flights.rounds.min(16),
            ride: flights.ride,
            forced,
            loss: loss_step,
            miss: miss.to_bits(),
        };
        if let Some((_, cut)) = self.last.filter(|(last, _)| *last == key) {
            return Some(cut);
        }
        let cut = single_block(block_len, mtu, forced, flights)?;
        self.last = Some((key, cut));
        Some(cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_policy::{Action, Situation};

    struct Doubling;

    impl Policy for Doubling {
        fn name(&self) -> &'static str {
            "doubling"
        }
        fn decide(&self, situation: &Situation) -> Action {
            Action::burst(u16::from(situation.deficit) + 1)
        }
        fn expected_symbols(&self, source_symbols: u8, _: u16, _: f32) -> f32 {
            f32::from(source_symbols) + 1.0
        }
    }

    #[test]
    fn one_repair_symbol_makes_small_symbols_worth_their_headers() {
        let cut = single_block(2051, 1472, None, flights(1, false)).unwrap();
        let cost = |k: usize| (k + 1) * (2051usize.div_ceil(k) + PACKET_OVERHEAD + PACKET_WORTH);
        let best = (2..=14).min_by_key(|&k| cost(k)).unwrap();
        assert_eq!(usize::from(cut.source_symbols), best);
        assert!(usize::from(cut.source_symbols) * cut.symbol_len >= 2051);
    }

    fn flights(rounds: u16, ride: bool) -> Flights<'static> {
        Flights {
            policy: &Doubling,
            rounds,
            loss: 0.02,
            ride,
        }
    }

    /// (By bytes alone, 500 were cut into four.)
    #[test]
    fn a_small_message_is_not_cut_to_save_few_bytes() {
        let symbols = |len, ride| {
            let cut = single_block(len, 1472, None, flights(1, ride)).unwrap();
            cut.source_symbols
        };
        for ride in [false, true] {
            let cut = [60, 200, 500, 1400].map(|len| symbols(len, ride));
            assert_eq!(cut, [1, 1, 2, 3]);
        }
    }

    #[test]
    fn every_length_fits_its_cut() {
        for len in 1..5000 {
            for forced in [None, Some(1), Some(4), Some(64)] {
                let cut = single_block(len, 1200, forced, flights(2, false)).unwrap();
                let k = usize::from(cut.source_symbols);
                assert!(
                    k * cut.symbol_len >= len && (k - 1) * cut.symbol_len < len,
                    "{len} {cut:?}"
                );
                assert!(cut.symbol_len <= symbol_len_max(1200));
            }
        }
        assert_eq!(
            single_block(64 * symbol_len_max(1200) + 1, 1200, None, flights(2, false)),
            None
        );
    }

    /// What is not the last of its message has no padding: whatever it was cut into, it can be cut for the narrowest path without any.
    #[test]
    fn what_was_cut_for_a_wide_path_can_be_cut_for_the_narrowest() {
        let symbol_max = symbol_len_max(MTU_MIN as usize);
        let check = |cut: Cut| {
            let anew = Cut::anew(cut.block_len(), symbol_max, false);
            let anew = anew.unwrap_or_else(|| panic!("{cut:?}"));
            assert!(anew.symbol_len <= symbol_max, "{cut:?} {anew:?}");
            assert_eq!(anew.block_len(), cut.block_len());
        };
        for mtu in 1200..=1472 {
            let full = cut_evenly(mtu);
            check(full);
            for block_len in (20..=full.block_len()).step_by(97) {
                let least = block_len.div_ceil(symbol_len_max(mtu));
                for k in [least, least + 5, 64] {
                    let k = k.clamp(least, SOURCE_SYMBOLS_MAX) as u8;
                    let cut = Cut::without_padding(block_len, 10, k);
                    assert!(cut.block_len() <= block_len && cut.block_len() > 10);
                    assert!(cut.symbol_len <= symbol_len_max(mtu));
                    check(cut);
                }
            }
            // The last one may have some.
            let last = Cut::anew(full.block_len() - 1, symbol_max, true).expect("it fits");
            assert!(last.symbol_len <= symbol_max);
        }
    }
}
