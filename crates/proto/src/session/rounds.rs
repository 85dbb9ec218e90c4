//! The rounds of a block: when one begins the policy says how many symbols go; it ends when all of them are accounted for, or
//! when the round time is over (DESIGN section 5; decision 0001 for what happens at the start and after the deadline).

use core::cmp::Reverse;
use core::time::Duration;

use punctual_policy::{Action, Answers, Burst, Deficit, Policy, Situation, Timing};

use super::{Due, Session, Shared};
use crate::limits::{BACKOFF_MAX, TIMER_GRANULARITY};
use crate::message::Pauses;
use crate::recovery::PacketState;
use crate::stream::{MissReason, StreamId};
use crate::time::Instant;

/// Symbols of one flight, whatever a policy asks for.
const FLIGHT_MAX: u16 = 255;

/// After so many times its source symbols a block is sent in vain: its peer does not acknowledge it, whatever else it acknowledges, and each round time would send it again for
/// ever. From then on waits double at each fourth time.
const IN_VAIN: u16 = 32;

/// What a round of a block does.
struct Decision {
    deadline: Option<Instant>,
    /// Symbols to send; none when the policy gives the deadline up.
    symbols: u16,
    /// They begin with the source symbols that did not arrive.
    repeats_source: bool,
    /// If nobody answers, the next round is longer.
    may_back_off: bool,
    /// So many times more than by any chance the block was sent in vain, whatever else is answered for; zero before its deadline.
    in_vain: u16,
    /// How long to wait for answers, if not for the round time.
    look_again: Option<Duration>,
    /// When they leave.
    pauses: Pauses,
    /// Nothing goes, since nobody knows what is missing: the peer is asked.
    asks: bool,
}

impl Decision {
    const fn sends(&self) -> bool {
        self.symbols > 0 || self.asks
    }
}

impl Session {
    /// Begins a round of block `number`: asks the policy and queues what it says.
    pub(super) fn begin_round(&mut self, now: Instant, number: u64, shared: &mut Shared<'_>) {
        let Some(block) = self.traffic.outbox.block(number) else {
            return;
        };
        let (slot, was_sent) = (block.message, block.sent > 0);
        match self.decide(now, number, shared) {
            Some(decision)
                if was_sent && decision.sends() && self.is_held(now, number, &decision) => {}
            Some(decision) => {
                self.begin_flight(now, number, decision);
                self.schedule_block(number);
            }
            None if self.waits_for_answers(now, number) => {}
            None => self.drop_late(now, slot, shared),
        }
    }

    /// In the dark what was sent already waits for its turn; and ever longer what was sent in vain again and again.
    fn is_held(&mut self, now: Instant, number: u64, decision: &Decision) -> bool {
        let round_time = self.path.round_time();
        let of_dark = self.liveness.darkness.holds_until(now, round_time);
        let of_block = self.traffic.outbox.block(number).and_then(|block| {
            let doublings = (decision.in_vain / 4).min(16);
            let wait = round_time.saturating_mul(1 << doublings).min(BACKOFF_MAX);
            Some(block.flight.began + wait).filter(|until| doublings > 0 && *until > now)
        });
        let Some(until) = of_dark.max(of_block) else {
            return false;
        };
        self.unschedule_block(number);
        if let Some(block) = self.traffic.outbox.block_mut(number) {
            block.flight.to_send = 0;
            block.flight.round_ends = Some(until);
            // An answer ends it.
            block.flight.waits_out = true;
        }
        self.arm(number);
        true
    }

    /// Begins the first round of a block that was just cut. It is not in the schedule yet: mostly all of it leaves at once.
    pub(super) fn begin_first_round(&mut self, now: Instant, number: u64, shared: &mut Shared<'_>) {
        if let Some(decision) = self.decide(now, number, shared) {
            self.begin_flight(now, number, decision);
        }
    }

    /// What to do in the next round of a block. `None` when its message is not to be repaired any more.
    fn decide(&mut self, now: Instant, number: u64, shared: &mut Shared<'_>) -> Option<Decision> {
        let block = self.traffic.outbox.block(number)?;
        let message = self.traffic.outbox.message(block.message)?;
        let (stream, deadline) = (message.stream, message.deadline);
        let miss_target = message.options.miss_target();
        let is_dark = self.liveness.darkness.is_dark(now);
        let is_first = block.sent == 0;
        let is_first_block = message.first_block == Some(number);
        let time_left = deadline.map_or(Duration::MAX, |deadline| deadline.since(now));
        let of_use = is_first.then(|| self.of_use_for(now, stream)).flatten();
        let time_left = of_use.map_or(time_left, |of_use| time_left.min(of_use));
        let rounds_left = match deadline {
            Some(_) => self.path.rounds_within(time_left, self.clock_margin(now)),
            None => 0,
        };
        if !is_first && (!message.fate_sends() || (rounds_left == 0 && !message.is_repaired())) {
            return None;
        }
        // (What is not sent any more stays as it was cut: answers to that may still come.)
        self.fit_to_path(number);
        let block = self.traffic.outbox.block(number)?;
        let flight_max = self.flight_max(now, block.symbols.deficit());
        let times = block.sent / u16::from(block.symbols.source_symbols.max(1));
        let in_vain = times.saturating_sub(IN_VAIN);
        let mut ride = None;
        let (action, counted, in_silence) = if rounds_left == 0 {
            // No deadline, or none that can be kept: nothing to buy with redundancy.
            let all = Action::burst(u16::from(block.symbols.deficit()));
            (all, Deficit::Rank, false)
        } else {
            let policy = shared.config.policies.policy(miss_target);
            let mut situation = self.situation(now, number, policy, time_left, rounds_left)?;
            if is_first && is_first_block {
                self.steer(stream, miss_target, policy, &situation, shared);
            }
            situation.price = self.price(stream, miss_target, shared);
            let in_silence = situation.answers.missing > 0.0;
            let mut action = policy.decide(&situation);
            action.symbols = action.symbols.min(flight_max);
            if shared.config.thin_streams.bundling {
                ride = self.ride_of(now, number, &situation, &action);
                action.look_again = action
                    .look_again
                    .or_else(|| Self::leaves_to_copies(&situation, &action));
            }
            (action, policy.counts(), in_silence)
        };
        // Inside the deadline the policy says how long to wait. After it (or without one) each round that nobody answered doubles the next,
        // unless so little is on its way that it matters to nobody.
        let is_linear = shared.config.thin_streams.linear_timeouts && self.is_thin() && !is_dark;
        Some(Decision {
            deadline,
            symbols: action.symbols,
            repeats_source: !is_first && counted == Deficit::Source,
            may_back_off: rounds_left == 0 && !is_linear,
            in_vain: if rounds_left == 0 { in_vain } else { 0 },
            look_again: action.look_again,
            pauses: Pauses::new(action.together.max(1), action.spacing, ride),
            asks: in_silence && action.symbols == 0 && self.sent.outstanding() == 0,
        })
    }

    /// In what time a message of a stream has to be there that begins now: no round of it begins once the next one of a sequenced stream has. (Planned by its deadline alone, at 60 messages
    /// a second 1 to 4 % never arrived, where one in a thousand was asked for.)
    fn of_use_for(&self, now: Instant, stream: StreamId) -> Option<Duration> {
        let until_next = self.traffic.streams.get(stream)?.superseded_after()?;
        let way = self.path.one_way_delay() + self.path.timer_lag.most();
        Some(until_next + way + self.clock_margin(now))
    }

    /// How many symbols a flight has at the most of a block that misses `deficit`.
    fn flight_max(&self, now: Instant, deficit: u8) -> u16 {
        let darkness = &self.liveness.darkness;
        if darkness.is_silent(now, self.path.round_time()) {
            deficit.into()
        } else {
            FLIGHT_MAX
        }
    }

    /// What a policy sees of a block with a deadline, but for the price.
    fn situation(
        &self,
        now: Instant,
        number: u64,
        policy: &dyn Policy,
        time_left: Duration,
        rounds_left: u16,
    ) -> Option<Situation> {
        let block = self.traffic.outbox.block(number)?;
        let message = self.traffic.outbox.message(block.message)?;
        let miss_target = message.options.miss_target();
        // Once something later was answered for, what was not is lost.
        let is_silent =
            block.silence.symbols > 0 && self.largest_acked < Some(block.silence.first_packet);
        let (silent, silent_flights) = if is_silent {
            (block.silence.symbols, block.silence.flights)
        } else {
            (0, 0)
        };
        // Of a flight before, answers may be missing whatever was answered together with it.
        let is_of_flight = block.silence.first_packet >= block.flight.first_packet;
        let silent_from = is_of_flight.then_some(block.silence.first_packet);
        let outlook = self.outlook(
            now,
            block.symbols.source_symbols,
            time_left,
            rounds_left,
            miss_target,
        );
        let outage = self.path.rtt.unseen_outage();
        Some(Situation {
            deficit: match policy.counts() {
                Deficit::Rank => block.symbols.deficit(),
                Deficit::Source => block.symbols.source_deficit(),
            },
            answers: Answers {
                unaccounted: silent,
                silent_flights,
                missing: self.chance_of_silence(
                    now.since(block.silence.since),
                    silent,
                    silent_from,
                    outage,
                ) as f32,
                ..outlook.answers
            },
            comes_anyway: self.copies_come(now, number),
            sent: block.sent,
            rounds_planned: block.rounds_planned,
            draw: draw(message.id.count()),
            ..outlook
        })
    }

    /// What a policy sees before the first flight of a block of `source_symbols`.
    pub(super) fn outlook(
        &self,
        now: Instant,
        source_symbols: u8,
        time_left: Duration,
        rounds: u16,
        miss_target: f32,
    ) -> Situation {
        let situation = Situation {
            loss_mean: self
                .path
                .level
                .for_misses(miss_target, rounds, source_symbols),
            burst: self.burst(now, rounds <= 1),
            answers: Answers {
                lost: self.path.feedback.unanswered() as f32,
                ..Answers::default()
            },
            ..Situation::first(source_symbols, rounds, self.path.loss.upper_bound())
        };
        self.with_time(now, situation, time_left, rounds)
    }

    /// The same with so much time left, which is enough for so many rounds.
    pub(super) fn with_time(
        &self,
        now: Instant,
        situation: Situation,
        time_left: Duration,
        rounds: u16,
    ) -> Situation {
        let round_time = self.path.round_time();
        // The last round begins when those before have waited their time.
        let before = round_time.saturating_mul(u32::from(rounds.saturating_sub(1)));
        let after_all = before + round_time;
        let margin = self.clock_margin(now);
        Situation {
            rounds_left: rounds,
            on_time: self.path.on_time(time_left.saturating_sub(before)) as f32,
            last_chance: self.path.on_time(time_left.saturating_sub(after_all)) as f32,
            timing: Timing {
                time_left,
                slack: self.path.slack(time_left, margin),
                round_time,
                rtt: self.path.rtt.smoothed(),
                rtt_deviation: self.path.rtt.variation(),
            },
            ..situation
        }
        .with_hurry(&self.path, margin + self.path.timer_lag.after_rounds())
    }

    /// How the losses of symbols sent now depend on each other, and on what was heard of last, in a single flight or several.
    pub(super) fn burst(&self, now: Instant, is_single: bool) -> Burst {
        let loss = self.path.loss.mean() as f32;
        let (correlation, lasts) = self.path.bursts.shape(loss, is_single);
        let (sent_at, was_lost) = self.path.bursts.last();
        Burst {
            correlation,
            surely: self.path.bursts.surely(loss),
            lasts,
            again: self.path.bursts.again(self.path.rtt.smoothed(), loss),
            // Of a single flight nothing is decided later.
            tells: if is_single {
                0.0
            } else {
                self.path.level.told_by_a_loss()
            },
            uneven: self.path.bursts.uneven(loss),
            was_lost,
            age: now.since(sent_at),
        }
    }

    /// How far the clock of the peer may be off.
    pub(super) fn clock_margin(&self, now: Instant) -> Duration {
        self.clock.residual(now).unwrap_or_default()
    }

    /// Whether so few packets are on their way that losses among them do not show as gaps: fewer than four (the thin-stream
    /// paper, section 3).
    pub(super) const fn is_thin(&self) -> bool {
        self.sent.outstanding() < 4
    }

    fn begin_flight(&mut self, now: Instant, number: u64, decision: Decision) {
        let round_time = self.path.round_time();
        let last_acked = self.liveness.last_acked;
        let flight_from = self.sent.next_number();
        self.unschedule_block(number);
        let Some(block) = self.traffic.outbox.block_mut(number) else {
            return;
        };
        block.flight.to_send = decision.symbols;
        block.flight.redundant = decision
            .symbols
            .saturating_sub(u16::from(block.symbols.deficit()));
        if decision.repeats_source {
            block.symbols.repeat_source();
        }
        block.flight.first_packet = flight_from;
        block.flight.is_acked = false;
        let was_silent = block.sent > 0 && last_acked < block.flight.began;
        block.flight.backoff = if decision.may_back_off && was_silent {
            (block.flight.backoff + 1).min(16)
        } else {
            0
        };
        block.flight.pauses = decision.pauses;
        block.flight.patience = decision.look_again.unwrap_or_default();
        block.flight.waits_out = block.flight.patience >= round_time * 2;
        let patience = block.flight.patience.max(round_time);
        block.flight.began = now;
        block.flight.round_ends = None;
        if block.flight.to_send == 0 {
            block.flight.round_ends = match decision.look_again {
                Some(wait) => Some(now + self.path.due_for(wait).max(TIMER_GRANULARITY)),
                // The policy gives the deadline up. Delivery goes on after it.
                None => decision
                    .deadline
                    .map(|deadline| deadline.max(now + round_time)),
            };
        }
        self.liveness.patience = patience;
        self.control.ping |= decision.asks;
        self.arm(number);
    }

    /// When the round of a block ends whose last symbol leaves now; it waits for the round time, or as the policy said.
    pub(super) fn round_end(&self, now: Instant, backoff: u8, patience: Duration) -> Instant {
        let wait = if patience.is_zero() {
            self.path.round_time()
        } else {
            patience
        };
        let wait = wait
            .saturating_mul(1 << backoff.min(16))
            .min(BACKOFF_MAX.max(wait));
        now + self.path.due_for(wait)
    }

    /// Sees to it that the session wakes when the block is due.
    pub(super) fn arm(&mut self, number: u64) {
        self.arm_not_before(number, Instant::ZERO);
    }

    /// The same, but not before `earliest`: whatever a block's state says, its timer cannot spin.
    pub(super) fn arm_not_before(&mut self, number: u64, earliest: Instant) {
        let Some(block) = self.traffic.outbox.block_mut(number) else {
            return;
        };
        let Some(due) = block.due().map(|due| due.max(earliest)) else {
            return;
        };
        if block.armed.is_none_or(|armed| due < armed) {
            block.armed = Some(due);
            self.traffic.timers.push(Reverse((due, Due::Block(number))));
        }
    }

    /// Something of the block was acknowledged, or taken for lost: is its flight settled?
    pub(super) fn settle_flight(&mut self, now: Instant, number: u64, shared: &mut Shared<'_>) {
        let Some(block) = self.traffic.outbox.block(number) else {
            return;
        };
        if !block.is_round_over() || block.symbols.is_complete() {
            return;
        }
        self.begin_round(now, number, shared);
    }

    /// The round is over: what has been unaccounted for longer than the round time is lost.
    pub(super) fn expire_round(&mut self, now: Instant, number: u64, shared: &mut Shared<'_>) {
        let round_time = self.path.round_time();
        let may_come_until = self.may_come_until(number);
        let Some(block) = self.traffic.outbox.block_mut(number) else {
            return;
        };
        block.flight.round_ends = may_come_until.filter(|until| *until > now);
        if block.flight.round_ends.is_some() {
            return;
        }
        let is_hurried = !block.flight.patience.is_zero() && block.flight.patience < round_time;
        let from = block.flight.first_packet.max(self.sent.first_outstanding());
        let mut touched = core::mem::take(shared.touched);
        touched.clear();
        let flight = from..block.flight.last_packet.saturating_add(1);
        let silent_from = flight
            .start
            .max(self.largest_acked.map_or(0, |largest| largest + 1));
        let silent = (silent_from..flight.end)
            .filter(|packet| self.holds_symbol_of(*packet, number))
            .count() as u16;
        // Hurried, it is early to take anything for lost.
        for packet in flight.filter(|_| !is_hurried) {
            if self.holds_symbol_of(packet, number) {
                let verdict = self.overdue(packet, u64::from(silent));
                self.lose_packet(now, packet, verdict, &mut touched);
            }
        }
        touched.retain(|other| *other != number);
        touched.sort_unstable();
        touched.dedup();
        self.note_silence(number, silent, silent_from, !is_hurried);
        for &other in touched.iter().filter(|_| silent > 0) {
            self.note_silence_beside(other);
        }
        self.begin_round(now, number, shared);
        self.settle_flights(now, touched, shared);
    }

    /// Until when the last of a block without a deadline may be delayed like what was answered for last, by a queue that outgrows the round time. Where there
    /// is a deadline the round time holds: a needless repair costs less than a late one.
    fn may_come_until(&self, number: u64) -> Option<Instant> {
        let block = self.traffic.outbox.block(number)?;
        let message = self.traffic.outbox.message(block.message)?;
        if message.deadline.is_some() || !self.path.congestion.outgrows_round_time() {
            return None;
        }
        let from = block.flight.first_packet.max(self.sent.first_outstanding());
        let last = (from..self.sent.next_number())
            .rev()
            .find(|packet| self.holds_symbol_of(*packet, number))?;
        let sent_at = self.sent.get(last)?.sent_at;
        Some(sent_at + self.overdue_after())
    }

    /// Why a message missed its deadline, or is about to.
    pub(super) fn miss_reason(&self, now: Instant, slot: u32) -> MissReason {
        let Some(message) = self.traffic.outbox.message(slot) else {
            return MissReason::Closed;
        };
        let Some(first_sent_at) = message.course.first_sent_at else {
            return MissReason::Queue;
        };
        // One packet that nothing followed is lost; silence for longer than that is the path's.
        let is_silent = self.liveness.last_received < first_sent_at
            && now.since(first_sent_at) > self.path.round_time() * 2;
        if is_silent && message.course.chances.has_lost() {
            return MissReason::PathDown;
        }
        let deadline = message.deadline.unwrap_or(now);
        match message.course.chances.miss_reason() {
            // So near a deadline that nothing could have kept it.
            MissReason::Queue if message.accepted_at + self.path.owd.min() > deadline => {
                MissReason::Delay
            }
            why => why,
        }
    }

    /// Whether packet `number` is under way and holds a symbol of `block`.
    pub(super) fn holds_symbol_of(&self, number: u64, block: u64) -> bool {
        self.sent
            .get(number)
            .is_some_and(|packet| packet.state == PacketState::Outstanding)
            && self.held_symbol_of(number, block)
    }

    /// Whether packet `number` held a symbol of `block`, whatever became of it.
    pub(super) fn held_symbol_of(&self, number: u64, block: u64) -> bool {
        self.sent
            .symbols_of(number)
            .any(|position| self.sent.symbol(number, position).block == block)
    }
}

/// A number that is uniform over messages, or over packets, and the same for each whatever else happens (splitmix64).
pub(super) const fn draw(count: u64) -> u32 {
    let mut z = count.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 32) as u32
}
