//! When it is a message's turn, a block of it is cut: into how many symbols, and how many of them go in the first round. The
//! same plan, made when a message is accepted or only asked about, gives its prediction and its forecast.

use alloc::vec::Vec;
use core::time::Duration;

use punctual_policy::{Prediction, Situation};

use super::rounds::draw;
use super::send::{check, entry_of};
use super::{SendError, Session, Shared, State};
use crate::limits::{MTU_MIN, SOURCE_SYMBOLS_MAX, WHOLE_MAX};
use crate::message::{
    Block, Body, Cut, Fate, Flights, OutgoingMessage, PACKET_OVERHEAD, cut_evenly,
};
use crate::pool::Pool;
use crate::schedule::{Item, NO_DEADLINE};
use crate::stream::{Delivery, Forecast, MessageId, OutgoingStream, SendOptions, StreamId};
use crate::time::{Instant, nanos};
use crate::wire::{Order, Preamble, Writer};

/// Waiting for longer than this, or than half a round trip, a session's budget counts as short.
const SHORT_BUDGET: Duration = Duration::from_millis(50);

/// Bytes of a message that surely fit one block, however narrow the path becomes until it is cut.
pub(super) const fn whole_len_max() -> usize {
    crate::message::symbol_len_max(MTU_MIN as usize) * SOURCE_SYMBOLS_MAX - Preamble::LEN_MAX
}

/// What is decided about a block before its first symbol.
struct Plan {
    cut: Cut,
    rounds: u16,
}

/// How a message would be sent that is accepted now.
struct Intent {
    /// How long what is queued before it takes to leave.
    queue_delay: Duration,
    /// What is left of its deadline then, for what of it leaves last; `Duration::MAX` without one.
    time_left: Duration,
    /// Of its first block.
    plan: Plan,
    blocks: usize,
}

impl Session {
    /// Whether a block of this message may be cut now: limits of what may be on its way at once.
    pub(super) fn may_cut(&self, slot: u32) -> bool {
        let outbox = &self.traffic.outbox;
        let Some(message) = outbox.message(slot) else {
            return false;
        };
        if !outbox.has_block_numbers(1) {
            return false;
        }
        if message.delivery == Delivery::ReliableOrdered
            && message.sequence.is_none()
            && !self.is_next_to_place(message)
        {
            return false;
        }
        match &message.body {
            Body::Large(large) => {
                let is_new = !large.has_begun();
                let untold = self.control.abandoned.iter().filter(|run| run.is_large);
                if is_new && !outbox.has_large_place(untold.count()) {
                    return false;
                }
                // What is handed on whole counts whole from its first block on, and not again after.
                match (large.len() <= WHOLE_MAX, is_new) {
                    (true, false) => true,
                    (true, true) => outbox.has_room_for_large(large.len()),
                    (false, _) => outbox.has_room_for_large(self.full_block()),
                }
            }
            _ => true,
        }
    }

    /// Whether a message is the first of its ordered stream without a place, and there is one for it.
    fn is_next_to_place(&self, message: &OutgoingMessage) -> bool {
        !self.has_before(message)
            && self
                .traffic
                .streams
                .may_place(message.stream, message.len as usize > WHOLE_MAX)
    }

    /// Whether its ordered stream has a message before this one that waits to be cut, or for content.
    pub(super) fn has_before(&self, message: &OutgoingMessage) -> bool {
        let outbox = &self.traffic.outbox;
        let is_before = |other: MessageId| other < message.id;
        let unfilled =
            (self.traffic.streams.get(message.stream)).and_then(OutgoingStream::first_unfilled);
        let mut queued = (self.traffic.schedule.entries_of(message.stream))
            .filter_map(|entry| match entry.item {
                Item::Message(slot) => outbox.message(slot),
                Item::Block(_) => None,
            })
            .filter(|queued| queued.fate != Fate::Void);
        unfilled.is_some_and(is_before) || queued.next().is_some_and(|first| is_before(first.id))
    }

    fn full_block(&self) -> usize {
        let cut = cut_evenly(self.path.mtu.current());
        usize::from(cut.source_symbols) * cut.symbol_len
    }

    /// Cuts the next block of a message, and begins its first round; it is not in the schedule. [`Session::may_cut`] must have
    /// said yes.
    pub(super) fn cut_block(
        &mut self,
        now: Instant,
        slot: u32,
        shared: &mut Shared<'_>,
    ) -> Option<u64> {
        self.supersede_sequenced(now, slot, shared);
        self.place(slot);
        let message = self.traffic.outbox.message(slot)?;
        let drop_at = message.drop_at();
        // Taken out with the entry that it was put in with: what is left to cut changes it.
        self.dequeue(slot);
        let number = self.traffic.outbox.next_block();
        let (data, plan) = match &message_body(self, slot)? {
            Kind::Whole => {
                let data = self.traffic.outbox.take_whole(slot)?;
                let plan = self.plan_whole(now, slot, data.len(), shared)?;
                (data, plan)
            }
            Kind::Large => self.cut_large(now, slot, number, shared)?,
        };
        let mut block = Block::new(number, slot, plan.cut, data);
        block.rounds_planned = plan.rounds;
        block.drop_at = drop_at;
        let source_symbols = block.symbols.source_symbols;
        let k = u64::from(source_symbols);
        self.statistics.source_symbols += k;
        self.traffic.outbox.insert_block(block);
        let message = self.traffic.outbox.message_mut(slot)?;
        message.first_block.get_or_insert(number);
        message.course.chances.on_cut(source_symbols);
        let stream = message.stream;
        if let Some(stream) = self.traffic.streams.get_mut(stream) {
            stream.stats.source_symbols += k;
        }
        self.enqueue(slot);
        self.begin_first_round(now, number, shared);
        Some(number)
    }

    /// Gives a message of an ordered stream its place.
    fn place(&mut self, slot: u32) {
        let Some(message) = self.traffic.outbox.message_mut(slot) else {
            return;
        };
        if message.delivery != Delivery::ReliableOrdered || message.sequence.is_some() {
            return;
        }
        let sequence = self
            .traffic
            .streams
            .place(message.stream, message.len as usize);
        message.sequence = Some(sequence);
        let stream = message.stream.0;
        if let Body::Whole(data) = &mut message.body {
            Preamble::set_sequence(data, stream, sequence as u16);
        }
    }

    fn plan_whole(
        &mut self,
        now: Instant,
        slot: u32,
        block_len: usize,
        shared: &Shared<'_>,
    ) -> Option<Plan> {
        let message = self.traffic.outbox.message(slot)?;
        let time_left = message.deadline.map(|deadline| deadline.since(now));
        let options = message.options;
        self.plan(now, block_len, time_left, &options, shared)
    }

    /// The next block of a large message: a full one, or what there is left.
    fn cut_large(
        &mut self,
        now: Instant,
        slot: u32,
        number: u64,
        shared: &mut Shared<'_>,
    ) -> Option<(Vec<u8>, Plan)> {
        let message = self.traffic.outbox.message(slot)?;
        let Body::Large(large) = &message.body else {
            return None;
        };
        let preamble = match message.first_block {
            None => Preamble::First {
                stream: message.stream.0,
                order: order_of(message),
                message_len: large.len(),
            },
            Some(first) => Preamble::Later {
                distance: number - first,
                index: large.next_index(),
            },
        };
        let head = preamble.encoded_len();
        let block_len = self.full_block().min(head + large.available());
        let is_last = block_len - head == large.uncut();
        let (time_left, options) = (
            message.deadline.map(|deadline| deadline.since(now)),
            message.options,
        );
        let mut plan = self.plan(now, block_len, time_left, &options, shared)?;
        if block_len == self.full_block() {
            // As many symbols as a block may have: the least of it goes with a loss.
            plan.cut = cut_evenly(self.path.mtu.current());
        } else if !is_last {
            plan.cut = Cut::without_padding(block_len, head, plan.cut.source_symbols);
        }
        let content = (plan.cut.block_len() - head).min(block_len - head);
        let mut data = shared.pool.take(head + content);
        encode_preamble(&preamble, &mut data);
        self.traffic
            .outbox
            .with_large(slot, |large| large.cut(number, content, &mut data))?;
        self.tell_writable_when_wanted(slot);
        Some((data, plan))
    }

    /// How a block of `block_len` bytes would be sent. `None` when it does not fit one block.
    fn plan(
        &mut self,
        now: Instant,
        block_len: usize,
        time_left: Option<Duration>,
        options: &SendOptions,
        shared: &Shared<'_>,
    ) -> Option<Plan> {
        let rounds = match time_left {
            Some(time_left) => self.path.rounds_within(time_left, self.clock_margin(now)),
            None => u16::MAX,
        };
        let miss = options.miss_target();
        let may_ride = rounds == 1 && shared.config.thin_streams.bundling;
        let flights = Flights {
            policy: shared.config.policies.policy(miss),
            rounds: rounds.max(1),
            loss: self.path.loss.upper_bound(),
            ride: may_ride && time_left.is_some_and(|left| self.would_ride(now, left)),
        };
        // Without a deadline there is no redundancy, and where too much waits the less of it the better: the fewest symbols are the cheapest.
        let waits = self.traffic.schedule.bytes_before(true) > 0;
        let is_cheapest = time_left.is_none() || waits && self.is_budget_short(now, options);
        let fewest = is_cheapest.then_some(1);
        let forced = options.source_symbols.or(fewest);
        let cut = self.traffic.split.single_block(
            block_len,
            self.path.mtu.current(),
            forced,
            flights,
            miss,
        )?;
        Some(Plan { cut, rounds })
    }

    /// How a message of `len` bytes would be sent.
    fn intend(
        &mut self,
        now: Instant,
        len: usize,
        options: &SendOptions,
        shared: &Shared<'_>,
    ) -> Intent {
        let queue_delay = self.queue_delay(options.within.is_some());
        let time_left = options
            .within
            .map(|within| within.saturating_sub(queue_delay));
        let block_len = len + 1 + 4;
        let (plan, blocks) = match self.plan(now, block_len, time_left, options, shared) {
            Some(plan) => (plan, 1),
            None => {
                let cut = cut_evenly(self.path.mtu.current());
                let full = usize::from(cut.source_symbols) * cut.symbol_len;
                let rounds = time_left.map_or(u16::MAX, |time_left| {
                    self.path.rounds_within(time_left, self.clock_margin(now))
                });
                (Plan { cut, rounds }, block_len.div_ceil(full - 8))
            }
        };
        let source_symbols = blocks * usize::from(plan.cut.source_symbols);
        let bytes = source_symbols * (plan.cut.symbol_len + PACKET_OVERHEAD);
        let own_delay = self.path.windows_time(bytes as u64);
        let time_left = time_left.map(|time_left| time_left.saturating_sub(own_delay));
        let rounds = match time_left {
            Some(time_left) if !own_delay.is_zero() => {
                self.path.rounds_within(time_left, self.clock_margin(now))
            }
            _ => plan.rounds,
        };
        Intent {
            queue_delay,
            time_left: time_left.unwrap_or(Duration::MAX),
            plan: Plan { rounds, ..plan },
            blocks,
        }
    }

    /// What the policy would be shown before the first flight of the stream's next message, if it is sent like that.
    fn first_situation(
        &self,
        now: Instant,
        stream: StreamId,
        intent: &Intent,
        options: &SendOptions,
        shared: &Shared<'_>,
    ) -> Situation {
        Situation {
            draw: draw(self.traffic.outbox.next_id().count()),
            price: self.price(stream, options.miss_target(), shared),
            ..intent.situation(now, self, options)
        }
    }

    /// The probability that a message keeps its deadline; 1 without one.
    pub(super) fn predict(
        &mut self,
        now: Instant,
        stream: StreamId,
        len: usize,
        options: &SendOptions,
        shared: &Shared<'_>,
    ) -> f64 {
        if options.within.is_none() {
            return 1.0;
        }
        let intent = self.intend(now, len, options, shared);
        if intent.plan.rounds == 0 {
            return 0.0;
        }
        let policy = shared.config.policies.policy(options.miss_target());
        let situation = self.first_situation(now, stream, &intent, options, shared);
        let action = policy.decide(&situation);
        let key = self.prediction_key(&situation, policy, action);
        let miss = self.remembered_miss(&key).unwrap_or_else(|| {
            let miss = self.predict_block(now, &situation, policy, action).miss;
            self.remember_miss(key, miss);
            miss
        });
        let miss = 1.0 - libm::pow(1.0 - miss, intent.blocks as f64);
        let stream = self.traffic.streams.get(stream);
        1.0 - stream.map_or(miss, |stream| stream.surprise.corrected(miss))
    }

    /// What could be promised for a message of `len` bytes now.
    pub(crate) fn forecast(
        &mut self,
        now: Instant,
        len: usize,
        options: &SendOptions,
        shared: &mut Shared<'_>,
    ) -> Result<Forecast, SendError> {
        check(len, options)?;
        if matches!(self.state, State::Closing { .. } | State::Closed) {
            return Err(SendError::Closed { why: None });
        }
        let intent = self.intend(now, len, options, shared);
        let situation = intent.situation(now, self, options);
        let policy = shared.config.policies.policy(options.miss_target());
        let action = policy.decide(&situation);
        let Prediction { miss, symbols } = self.predict_block(now, &situation, policy, action);
        let (plan, blocks) = (intent.plan, intent.blocks);
        let k = f64::from(plan.cut.source_symbols);
        let packet = (plan.cut.symbol_len + PACKET_OVERHEAD) as f64;
        Ok(Forecast {
            on_time: if options.within.is_some() {
                libm::pow(1.0 - miss, blocks as f64)
            } else {
                1.0
            },
            symbols_per_source_symbol: symbols / k,
            bytes: symbols * packet * blocks as f64,
            source_symbols: plan.cut.source_symbols,
            rounds: plan.rounds,
            queue_delay: intent.queue_delay,
        })
    }

    /// What the policy would be shown before the first flight of a message of `len` bytes of a stream now: of its first block.
    pub(crate) fn situation_of(
        &mut self,
        now: Instant,
        stream: StreamId,
        len: usize,
        options: &SendOptions,
        shared: &Shared<'_>,
    ) -> Result<Situation, SendError> {
        check(len, options)?;
        let intent = self.intend(now, len, options, shared);
        Ok(self.first_situation(now, stream, &intent, options, shared))
    }

    /// How long what is queued before a new message takes to leave, at the present rate. Messages with a deadline wait for
    /// others with one.
    pub(super) fn queue_delay(&self, has_deadline: bool) -> Duration {
        let before = self.traffic.schedule.bytes_before(has_deadline);
        if before == 0 {
            return Duration::ZERO;
        }
        let wait = self.path.time_to_send(before);
        // In steps, so that messages which follow each other share a prediction.
        let step = nanos(Duration::from_millis(1));
        Duration::from_nanos(nanos(wait).div_ceil(step) * step)
    }

    /// Whether messages wait longer than they should: this one would miss its deadline, or, without one, they stand in a queue.
    pub(super) fn is_budget_short(&self, now: Instant, options: &SendOptions) -> bool {
        let wait = self.queue_delay(options.within.is_some());
        match options.within {
            Some(within) => {
                let margin = self.clock_margin(now);
                self.path.rounds_within(within.saturating_sub(wait), margin) == 0
                    || wait > SHORT_BUDGET.max(within / 4)
            }
            None => wait > SHORT_BUDGET.max(self.path.rtt.smoothed() / 2),
        }
    }
}

/// How the content of a message comes.
enum Kind {
    Whole,
    Large,
}

fn message_body(session: &Session, slot: u32) -> Option<Kind> {
    match session.traffic.outbox.message(slot)?.body {
        Body::Whole(_) => Some(Kind::Whole),
        Body::Large(_) => Some(Kind::Large),
        Body::Cut => None,
    }
}

impl Intent {
    /// What a policy sees before the first flight, but for the price.
    fn situation(&self, now: Instant, session: &Session, options: &SendOptions) -> Situation {
        let Plan { cut, rounds } = &self.plan;
        session.outlook(
            now,
            cut.source_symbols,
            self.time_left,
            *rounds,
            options.miss_target(),
        )
    }
}

fn order_of(message: &OutgoingMessage) -> Order {
    match message.delivery {
        Delivery::ReliableOrdered => Order::Sequence(message.sequence.unwrap_or(0) as u16),
        Delivery::UnreliableSequenced => Order::Newest,
        Delivery::Latest => Order::Key(message.options.key),
        Delivery::Unreliable | Delivery::Reliable => Order::None,
    }
}

/// Preamble and content of a message of one block.
pub(super) fn encode(preamble: &Preamble, content: &[u8], pool: &mut Pool) -> Vec<u8> {
    let mut data = pool.take(preamble.encoded_len() + content.len());
    encode_preamble(preamble, &mut data);
    data.extend_from_slice(content);
    data
}

fn encode_preamble(preamble: &Preamble, out: &mut Vec<u8>) {
    let mut head = [0; Preamble::LEN_MAX];
    let mut writer = Writer::new(&mut head);
    preamble.encode(&mut writer);
    let len = writer.len();
    out.extend_from_slice(&head[..len]);
}

/// The entry of a block of a message.
pub(super) fn block_entry(message: &OutgoingMessage, block: &Block) -> crate::schedule::Entry {
    let symbol_len = block.symbols.symbol_len() as u32;
    let mut entry = crate::schedule::Entry {
        bytes: u32::from(block.flight.to_send) * symbol_len,
        needed_bytes: u32::from(block.flight.needed()) * symbol_len,
        ..entry_of(message, Item::Block(block.number))
    };
    if block.flight.is_next_redundant() && entry.rank != NO_DEADLINE {
        // After what was accepted until now: where symbols wait for each other, the first ones of a message are worth more.
        entry.rank = entry.rank + entry.rank.since(message.accepted_at);
        entry.deadline = entry.rank;
    }
    entry
}
