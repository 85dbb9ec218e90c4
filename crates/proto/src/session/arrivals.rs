//! When packets arrived, by what acknowledgements tell of it: round trips, delays and verdicts are as good as this is.
//!
//! An acknowledgement says when its largest packet arrived. What else it is the first to name came with that one; or before it if the acknowledgement was kept
//! (decision 0013), which it says, or if another in between was lost, which the peer's packet numbers tell.

use alloc::vec::Vec;
use core::time::Duration;

use super::Session;
use super::rounds::draw;
use crate::clock::Exchange;
use crate::limits::ACK_RANGES_REPEATED;
use crate::path::{Another, Answer};
use crate::recovery::{PacketState, SentPacket};
use crate::time::Instant;
use crate::wire::Ack;

/// Packets that left within such a time of each other left in one moment, and arrived in one if one acknowledgement names them.
const MOMENT: Duration = Duration::from_millis(5);

/// When the largest packet of an acknowledgement was sent, and how long it took by the peer's clock.
#[derive(Clone, Copy)]
pub(super) struct Largest {
    sent_at: Instant,
    took: Option<Duration>,
}

/// The last acknowledgement: the packet that held it, and when it left by the peer's clock. What it did not name has arrived since.
#[derive(Clone, Copy)]
pub(super) struct Heard {
    number: u64,
    left_at_us: u32,
    /// When it came, by our own.
    at: Instant,
}

/// What an acknowledgement is the first to name.
#[derive(Clone, Copy, Default)]
pub(super) struct Named {
    /// So many moments at which packets left, each [`MOMENT`] at least after the one before.
    moments: u16,
    last_moment: Option<Instant>,
    /// When the first and the last packet left that it names in time.
    in_time: Option<(Instant, Instant)>,
}

impl Named {
    fn add(&mut self, sent_at: Instant, is_in_time: bool) {
        let is_together = |last| sent_at.since(last) < MOMENT;
        if !self.last_moment.is_some_and(is_together) {
            self.moments = self.moments.saturating_add(1);
            self.last_moment = Some(sent_at);
        }
        if is_in_time {
            let first = self.in_time.map_or(sent_at, |(first, _)| first);
            self.in_time = Some((first, sent_at));
        }
    }
}

/// What an acknowledgement tells about when packets arrived.
pub(super) struct Stamps {
    /// If the largest is newly acknowledged.
    largest: Option<Largest>,
    /// The one before.
    before: Option<Heard>,
    /// None was lost that may have named what it is the first to name.
    is_next: bool,
    /// It was kept back: what it is the first to name came in some milliseconds before it left.
    is_kept: bool,
    /// What it is the first to name came at once, mostly.
    is_of_one_moment: bool,
    /// Packets before this one had not arrived when it was acknowledged: those that have now were overtaken, and answered at once.
    overtaken_below: u64,
    /// By the peer's clock, when it left.
    left_at_us: u32,
    /// One delay is learned of each acknowledgement: more would make moments in which more arrives count for more.
    gave_delay: bool,
}

impl Session {
    /// The packets that an acknowledgement is the first to name, in the order in which they left. O(packets remembered).
    pub(super) fn newly_named(&self, ack: &Ack, numbers: &mut Vec<u64>) -> Named {
        numbers.clear();
        let mut named = Named::default();
        let known = self.sent.numbers();
        for (first, last) in ack.ranges.runs().rev() {
            for number in first.max(known.start)..last.saturating_add(1).min(known.end) {
                let packet = self.sent.get(number);
                let Some(packet) = packet.filter(|it| it.state != PacketState::Settled) else {
                    continue;
                };
                numbers.push(number);
                named.add(packet.sent_at, packet.state == PacketState::Outstanding);
            }
        }
        named
    }

    /// What an acknowledgement, in a packet of this number, tells about when they arrived, and what that tells of the peer.
    pub(super) fn take_stamps(
        &mut self,
        now: Instant,
        number: u64,
        ack: &Ack,
        named: &Named,
    ) -> Stamps {
        let left_at_us = ack.received_at.wrapping_add(ack.delay_us);
        let before = self.liveness.heard;
        let unheard_from = before.map_or(0, |heard| heard.number + 1);
        if number >= unheard_from {
            self.liveness.heard = Some(Heard {
                number,
                left_at_us,
                at: now,
            });
        }
        // What came before it would have had acknowledgements of its own, of no more than the peer gathers.
        let missing = self.received.missing(unheard_from, number);
        let feedback = &mut self.path.feedback;
        // (One that was kept names more than it would.)
        let is_of_one_moment = missing.filter(|_| !ack.is_kept).is_some_and(|missing| {
            feedback.is_too_much_for(missing.saturating_add(1), named.moments)
        });
        feedback.record_frame(Duration::from_micros(ack.frame_us.into()));
        if let Some((first, last)) = named.in_time.filter(|_| !ack.is_kept) {
            feedback.record_gathered(last.since(first));
        }
        if missing == Some(0) && named.moments > 0 && !ack.is_kept {
            feedback.record_named(named.moments);
        }
        if let Some(from) = self.names_from(now, ack) {
            self.liveness.untold = Some((self.liveness.newest_acked_sent_at, from));
        }
        Stamps {
            largest: None,
            before,
            is_next: missing == Some(0),
            is_kept: ack.is_kept,
            is_of_one_moment,
            overtaken_below: self.largest_acked.unwrap_or(0),
            left_at_us,
            gave_delay: false,
        }
    }

    /// When the oldest packet left that an acknowledgement names, where it may have had no room for older ones, and those before it were lost: that one is older
    /// than any that is answered for in time.
    fn names_from(&self, now: Instant, ack: &Ack) -> Option<Instant> {
        let runs = ack.ranges.runs();
        if runs.len() < ACK_RANGES_REPEATED {
            return None;
        }
        let (first, _) = runs.last()?;
        let oldest = self.sent.get(first)?;
        let was_unnamed = oldest.state != PacketState::Settled;
        (was_unnamed && oldest.sent_at + self.path.round_time() * 2 < now).then_some(oldest.sent_at)
    }

    /// When a packet left that speaks for all that an acknowledgement is the first to name, if they came with the largest: each is as likely. Where the peer gathers
    /// what arrives, the newest has waited least for its answer. (To a loop of 16 ms a round trip of 38 ms was thought to be 27, and 17 packets a second
    /// were taken for lost that were not.)
    pub(super) fn typical(
        &self,
        now: Instant,
        numbers: &[u64],
        stamps: &Stamps,
    ) -> Option<Instant> {
        let overtaken = numbers.partition_point(|number| *number < stamps.overtaken_below);
        let newer = numbers.get(overtaken..).filter(|_| stamps.is_next)?;
        let index = draw(*newer.last()?) as usize % newer.len();
        let packet = self.sent.get(newer[index])?;
        // What was taken for lost tells of answers that come late, but not of a peer that has stood still.
        let is_recent = packet.state == PacketState::Outstanding
            || now.since(packet.sent_at) < self.path.round_time() * 2;
        let is_of_use = is_recent && packet.sent_at >= self.path.began;
        is_of_use.then_some(packet.sent_at)
    }

    /// Clock offset from the largest packet, when it is newly acknowledged, and round trip and one-way delay of the typical one.
    ///
    /// What was sent before this host stood still says nothing of the round trip: its answer may have waited here. (One stop of three seconds was three round
    /// trips in a hundred of young sessions: for up to twenty seconds no message had a second round, and four copies instead.)
    pub(super) fn take_timestamps(
        &mut self,
        now: Instant,
        ack: &Ack,
        typical: Option<Instant>,
        resumed_at: Instant,
        stamps: &mut Stamps,
    ) {
        let Some(largest) = ack.ranges.largest() else {
            return;
        };
        // (What asks for no acknowledgement is settled from the beginning.)
        let is_newest = Some(largest) > self.largest_acked;
        let is_of_use = |packet: &&SentPacket| {
            let is_news = is_newest || packet.state != PacketState::Settled;
            is_news && packet.sent_at >= self.path.began
        };
        let Some(packet) = self.sent.get(largest).filter(is_of_use) else {
            return;
        };
        let (sent_at, bytes) = (packet.sent_at, packet.bytes);
        let held = Duration::from_micros(u64::from(ack.delay_us));
        let next = self.sent.get(largest + 1);
        let next_after = next.map(|next| next.sent_at.since(sent_at));
        self.clock.record(&Exchange {
            sent_at,
            received_at_us: ack.received_at,
            held,
            answered_at: now,
        });
        let took = self.clock.one_way_delay(sent_at, ack.received_at);
        let plausible = took.filter(|took| *took <= now.since(sent_at));
        let typical = typical.filter(|typical| *typical >= resumed_at);
        let before_largest = typical.map_or(Duration::ZERO, |typical| sent_at.since(typical));
        if let Some(took) = plausible {
            // (Where it was kept, nothing tells when the others came; but their answers come as late as that.)
            let took = if ack.is_kept {
                took
            } else {
                took + before_largest
            };
            self.path.owd.record_at(now, took, Another::LongerOrShorter);
        }
        let is_of_path = sent_at >= resumed_at || !self.path.rtt.is_known();
        let after = is_of_path.then(|| self.path.rtt.without_wait(now.since(sent_at), held));
        if let Some(after) = after.flatten() {
            self.liveness.latest_rtt = after;
            // (The largest alone may not have asked for an answer.)
            let is_answer = ack.is_kept || typical.is_some();
            let kept = if is_answer { held } else { Duration::ZERO };
            let answer = Answer {
                after,
                typically_after: after + before_largest + kept,
                there_us: ack.received_at.wrapping_sub(sent_at.wire_micros()),
                next_after,
                bytes,
            };
            self.path.record_answer(now, &answer);
        }
        // (Clocks as they are thought to be may have it arrive after its answer.)
        let took = took.map(|took| took.min(now.since(sent_at)));
        stamps.largest = Some(Largest { sent_at, took });
        stamps.gave_delay = true;
    }

    /// A message that was sent again when what it had sent first was not answered for may have been there since then: the answers were lost, and the one that
    /// comes does not name all that has arrived.
    pub(super) fn perhaps_before(
        &self,
        slot: u32,
        sent_at: Instant,
        arrival: Instant,
        bound: Duration,
    ) -> (Instant, Duration) {
        let message = self.traffic.outbox.message(slot);
        let first_sent_at = message.and_then(|message| message.course.first_sent_at);
        let is_of_before = |first: &Instant| {
            let untold = self.liveness.untold;
            *first + MOMENT < sent_at && untold.is_some_and(|(from, to)| (from..to).contains(first))
        };
        let Some(first) = first_sent_at.filter(is_of_before) else {
            return (arrival, bound);
        };
        let likely = (first + self.path.owd.quantile(0.5)).min(arrival);
        (likely, bound + arrival.since(likely))
    }

    /// How long a packet took that a later one had overtaken.
    pub(super) fn take_overtaken(
        &mut self,
        now: Instant,
        number: u64,
        sent_at: Instant,
        stamps: &mut Stamps,
    ) -> Option<Duration> {
        if number >= stamps.overtaken_below {
            return None;
        }
        let took = self.clock.one_way_delay(sent_at, stamps.left_at_us);
        let took = took.filter(|took| *took <= now.since(sent_at))?;
        let is_exact = sent_at >= self.path.began && !stamps.is_kept;
        if is_exact && !core::mem::replace(&mut stamps.gave_delay, true) {
            self.path.owd.record_at(now, took, Another::LongerOrShorter);
        }
        Some(took)
    }

    /// When a packet arrived, in our time, and how well that is known. An acknowledgement names what came since the one before; one that was lost between
    /// the two may have named it earlier.
    pub(super) fn arrival(
        &self,
        now: Instant,
        sent_at: Instant,
        overtaken: Option<Duration>,
        stamps: &Stamps,
    ) -> (Instant, Duration) {
        // (An answer waits for a loop's next look here: up to a frame of it passes for the way back.)
        let residual = self
            .clock
            .uncertainty(now)
            .map(|unsure| unsure + self.path.timer_lag.before_end() / 2)
            .unwrap_or_else(|| self.path.rtt.min() / 2);
        let with_largest = stamps
            .largest
            .and_then(|Largest { sent_at, took }| Some((sent_at, sent_at + took?)));
        let Some(latest) = overtaken
            .map(|took| sent_at + took)
            .or_else(|| with_largest.map(|(_, arrived_at)| arrived_at))
        else {
            // No timestamp for it: it arrived at some time before its acknowledgement did.
            let early = sent_at + self.path.owd.min();
            let late = now - self.path.owd.min().min(now.since(sent_at) / 2);
            let spread = late.since(early);
            return (early + spread / 2, residual + spread / 2);
        };
        if stamps.is_next && !stamps.is_kept {
            return (latest, residual);
        }
        // An answer of its own may have been lost, and it came with the largest all the same.
        let is_of_largest = with_largest
            .filter(|_| overtaken.is_none() && !stamps.is_kept)
            .is_some_and(|(newest, _)| newest.since(sent_at) < MOMENT);
        let unnamed_for = stamps
            .before
            .filter(|heard| heard.at > sent_at)
            .and_then(|heard| self.clock.one_way_delay(sent_at, heard.left_at_us));
        let least = unnamed_for.unwrap_or_default().max(self.path.owd.min());
        let earliest = (sent_at + least).min(latest);
        let typical = sent_at + self.path.owd.quantile(0.5);
        let likely = match is_of_largest || stamps.is_of_one_moment || overtaken.is_some() {
            true => latest,
            false => typical.clamp(earliest, latest),
        };
        let spread = latest.since(likely).max(likely.since(earliest));
        (likely, residual + spread)
    }
}
