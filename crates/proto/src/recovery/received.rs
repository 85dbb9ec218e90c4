//! Packet numbers received: the replay window and the acknowledgement ranges are one bitmap of 1,024 numbers.

use core::time::Duration;

use crate::limits::{ACK_RANGES_REPEATED, REPLAY_WINDOW};
use crate::time::Instant;
use crate::wire::AckRanges;

const WORDS: usize = REPLAY_WINDOW as usize / 64;
/// A number this far below the newest is settled: it has arrived or is lost.
const SETTLED_BELOW: u64 = 3;
/// Acknowledgements that are remembered until the peer is known to have them, and how many of them leave in a round trip at most: they reach back over two.
const TOLD_KEPT: usize = 16;
const TOLD_PER_ROUND_TRIP: u32 = 8;

/// The numbers received from the peer.
#[derive(Default)]
pub(crate) struct Received {
    /// One past the largest number received.
    next: u64,
    /// Bit n % 1024 tells whether n was received, for the 1,024 numbers below `next`.
    bits: [u64; WORDS],
    /// The least number that was received since the last acknowledgement, and between that and the one before, which may be lost.
    unnamed_from: Option<u64>,
    named_from: Option<u64>,
    told: Told,
}

/// What the peer knows of the numbers received: it need not be told again. (Loss makes runs for ever: twelve old ones were a third of what left on a narrow
/// way out, where half of a game's input came late.)
#[derive(Default)]
struct Told {
    /// All that was received of the numbers below has been named in an acknowledgement that has come.
    known_below: u64,
    /// Packets that held an acknowledgement, and the number below which it named all that was not known: the newest first.
    left: [(u64, u64); TOLD_KEPT],
    newest_at: Instant,
}

impl Told {
    /// A number below the newest was received: no acknowledgement that has left names it.
    fn on_overtaken(&mut self, number: u64) {
        self.known_below = self.known_below.min(number);
        for (_, below) in &mut self.left {
            *below = number.min(*below);
        }
    }
}

/// What a newly received number settled about the incoming direction.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) arrived: u32,
    pub(crate) lost: u32,
    /// This packet had been settled as lost.
    pub(crate) was_lost: bool,
}

impl Received {
    /// The number expected next, for expanding truncated ones.
    pub(crate) const fn expected(&self) -> u64 {
        self.next
    }

    /// Whether `number` has not been received, and is not too old to tell.
    pub(crate) const fn is_new(&self, number: u64) -> bool {
        if number >= self.next {
            return true;
        }
        self.next - number <= REPLAY_WINDOW && !self.contains(number)
    }

    const fn contains(&self, number: u64) -> bool {
        self.bits[(number / 64) as usize % WORDS] & (1 << (number % 64)) != 0
    }

    /// How many numbers of a range have not been received; `None` when that is not remembered.
    pub(crate) fn missing(&self, from: u64, to: u64) -> Option<u64> {
        if from > to || self.next.saturating_sub(from) > REPLAY_WINDOW {
            return None;
        }
        let mut above = to.min(self.next).max(from);
        let mut missing = to - above;
        while above > from {
            above -= self.run(above, from, true);
            let gap = self.run(above, from, false);
            missing += gap;
            above -= gap;
        }
        Some(missing)
    }

    /// Records a number that [`Received::is_new`].
    pub(crate) fn record(&mut self, number: u64) -> Settled {
        let mut settled = Settled {
            arrived: 0,
            lost: 0,
            was_lost: false,
        };
        if number >= self.next {
            let settled_from = self.next.saturating_sub(SETTLED_BELOW);
            self.advance(number + 1);
            self.insert(number);
            let settled_to = self.next.saturating_sub(SETTLED_BELOW);
            // A jump past the window says nothing of each number; it counts as one window of losses at most.
            for earlier in
                settled_from.max(settled_to.saturating_sub(REPLAY_WINDOW / 2))..settled_to
            {
                if self.contains(earlier) {
                    settled.arrived += 1;
                } else {
                    settled.lost += 1;
                }
            }
        } else {
            settled.was_lost = self.next - number > SETTLED_BELOW;
            self.told.on_overtaken(number);
            self.insert(number);
        }
        settled
    }

    fn insert(&mut self, number: u64) {
        self.unnamed_from = Some(self.unnamed_from.unwrap_or(number).min(number));
        self.bits[(number / 64) as usize % WORDS] |= 1 << (number % 64);
    }

    fn advance(&mut self, next: u64) {
        if next - self.next >= REPLAY_WINDOW {
            self.bits = [0; WORDS];
        } else {
            for number in self.next..next {
                self.bits[(number / 64) as usize % WORDS] &= !(1 << (number % 64));
            }
        }
        self.next = next;
    }

    /// An acknowledgement of all [`Received::ranges`] leaves, in this packet.
    pub(crate) fn on_named(&mut self, now: Instant, packet: u64, round_trip: Duration) {
        self.named_from = self.unnamed_from.take();
        let told = &mut self.told;
        if now.since(told.newest_at) >= round_trip / TOLD_PER_ROUND_TRIP {
            told.newest_at = now;
            told.left.rotate_right(1);
            told.left[0] = (packet, self.next);
        }
    }

    /// The peer has received these packets. O(runs) for each acknowledgement that is remembered.
    pub(crate) fn on_acknowledged(&mut self, packets: &AckRanges) {
        let has_come =
            |packet| (packets.runs()).any(|(first, last)| (first..=last).contains(&packet));
        let known =
            |(packet, below): &&(u64, u64)| *below > self.told.known_below && has_come(*packet);
        if let Some(&(_, below)) = self.told.left.iter().find(known) {
            self.told.known_below = below;
        }
    }

    /// The newest runs of numbers received: so many as are repeated of what the peer is not known to know, and all that has arrived since the last
    /// acknowledgement but one, as far as one holds it.
    pub(crate) fn ranges(&self) -> AckRanges {
        let mut ranges = AckRanges::default();
        let floor = self.next.saturating_sub(REPLAY_WINDOW);
        let mut above = self.next;
        while above > floor {
            let last = above - self.run(above, floor, false);
            if last <= floor {
                break;
            }
            let first = last - self.run(last, floor, true);
            let mut wanted = self.unnamed_from.iter().chain(&self.named_from);
            let is_old = wanted.all(|from| last <= *from);
            let named = ranges.runs().len();
            let is_enough =
                named >= ACK_RANGES_REPEATED || named > 0 && last <= self.told.known_below;
            if is_old && is_enough || !ranges.push(first, last - 1) {
                break;
            }
            above = first;
        }
        ranges
    }

    /// How many numbers just below `above` (and not below `floor`) have all been received, or all not, a word at a time.
    fn run(&self, above: u64, floor: u64, received: bool) -> u64 {
        let mut at = above;
        while at > floor {
            let word = self.bits[((at - 1) / 64) as usize % WORDS];
            let word = if received { word } else { !word };
            let in_word = (at - 1) % 64 + 1;
            let ones = u64::from((word << (64 - in_word)).leading_ones()).min(in_word);
            at -= ones;
            if ones < in_word {
                break;
            }
        }
        above - at.max(floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    /// The same as a set without bound.
    #[test]
    fn it_agrees_with_a_set_under_random_arrivals() {
        let mut state = 0x1234_5678_9abc_def0u64;
        let mut random = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..50 {
            let mut received = Received::default();
            let mut model = BTreeSet::new();
            let mut newest = 0;
            for _ in 0..2000 {
                let number = match random(10) {
                    0 => newest + 1 + random(80),
                    1 => newest + 1 + random(3000),
                    2..6 => newest.saturating_sub(random(1200)),
                    _ => newest + 1,
                };
                let in_window = newest < REPLAY_WINDOW || number > newest - REPLAY_WINDOW;
                if !model.is_empty() {
                    assert_eq!(
                        received.is_new(number),
                        number > newest || (in_window && !model.contains(&number))
                    );
                    let from = number.saturating_sub(random(100));
                    let missing = (from..number).filter(|number| !model.contains(number));
                    assert_eq!(
                        received.missing(from, number),
                        ((newest + 1).saturating_sub(from) <= REPLAY_WINDOW)
                            .then(|| missing.count() as u64)
                    );
                }
                if received.is_new(number) {
                    received.record(number);
                    model.insert(number);
                    newest = newest.max(number);
                }
                let floor = (newest + 1).saturating_sub(REPLAY_WINDOW);
                let mut runs: Vec<(u64, u64)> = Vec::new();
                for &number in model.range(floor..).rev() {
                    match runs.last_mut() {
                        Some(run) if run.0 == number + 1 => run.0 = number,
                        _ => runs.push((number, number)),
                    }
                }
                runs.truncate(crate::limits::ACK_RANGES_MAX);
                let ranges = received.ranges();
                assert!(
                    ranges
                        .runs()
                        .eq(runs.iter().copied().take(ranges.runs().len()))
                );
                let named = received.ranges().runs().len();
                assert!(named >= runs.len().min(ACK_RANGES_REPEATED));
                if random(4) == 0 {
                    received.on_named(Instant::ZERO, 0, Duration::ZERO);
                    received.on_named(Instant::ZERO, 0, Duration::ZERO);
                    assert!(received.ranges().runs().len() <= ACK_RANGES_REPEATED);
                }
            }
        }
    }

    /// Against a peer that takes down what it was told, over a path that loses and reorders both ways. Nothing is left out that it does not know, as far as a
    /// lost acknowledgement is repaired by the next; and old runs are not repeated for ever.
    #[test]
    fn what_the_peer_knows_is_not_named_again() {
        let mut state = 7u64;
        let mut random = move |below: u64| {
            state = (state.wrapping_mul(6_364_136_223_846_793_005))
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut received = Received::default();
        let (mut arrived, mut told) = (BTreeSet::new(), BTreeSet::new());
        // The peer's packets, and ours with their acknowledgements, on their way.
        let (mut incoming, mut outgoing): (Vec<u64>, Vec<(u64, AckRanges)>) = Default::default();
        let (mut runs, mut come) = (0, 0);
        let mut heard = AckRanges::default();
        for number in 0..20_000u64 {
            if random(10) > 0 {
                incoming.push(number);
            }
            if incoming.len() < 6 {
                continue;
            }
            let next = incoming.remove(random(3) as usize / 2);
            received.on_acknowledged(&heard);
            received.record(next);
            arrived.insert(next);
            let ranges = received.ranges();
            runs += ranges.runs().len();
            received.on_named(Instant::ZERO, number, Duration::ZERO);
            if random(10) > 0 {
                outgoing.push((number, ranges));
            }
            if outgoing.len() > 5 {
                let (packet, ranges) = outgoing.remove(0);
                told.extend(ranges.runs().flat_map(|(first, last)| first..=last));
                heard = AckRanges::default();
                heard.push(packet, packet);
                come += 1;
            }
        }
        assert!(come > 10_000 && runs < 4 * come, "{runs} in {come}");
        let untold = arrived.difference(&told).filter(|number| **number < 19_900);
        assert_eq!(untold.count(), 0);
    }

    #[test]
    fn a_gap_is_settled_as_lost_once() {
        let mut received = Received::default();
        let mut arrived = 0;
        let mut lost = 0;
        for number in (0..100).filter(|number| number % 10 != 5) {
            let settled = received.record(number);
            arrived += settled.arrived;
            lost += settled.lost;
        }
        assert_eq!((arrived, lost), (87, 10));
        assert!(received.record(15).was_lost);
        assert!(!received.is_new(15));
    }

    #[test]
    fn replays_are_seen_after_years() {
        let mut received = Received::default();
        received.record(u64::from(u32::MAX) - 1);
        for number in u64::from(u32::MAX)..u64::from(u32::MAX) + 5000 {
            assert!(received.is_new(number));
            received.record(number);
            assert!(!received.is_new(number));
            assert!(
                !received.is_new(number - REPLAY_WINDOW),
                "too old to tell is not new"
            );
        }
    }
}
