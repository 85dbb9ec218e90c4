//! A message is accepted: cut into blocks, and its first round begun.

use alloc::vec::Vec;
use core::time::Duration;

use super::{CloseReason, Session, Shared, State};
use crate::limits::{EVENTS_MAX, MESSAGE_MAX, SEND_MESSAGES_MAX, SEND_QUEUE_MAX};
use crate::message::{Block, Cut, OutgoingMessage, cut_evenly};
use crate::pool::Pool;
use crate::stream::{Forecast, MessageId, SendOptions, WhenLate};
use crate::time::Instant;
use crate::wire::{Preamble, Writer};

/// Why a message was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// The session already holds `limit` bytes (or the most messages) without an outcome. Wait for [`super::Event::Writable`].
    Full {
        /// Bytes that a session holds.
        limit: usize,
    },
    /// Larger than a message may be. Will not succeed later.
    TooLarge {
        /// Bytes of the message.
        size: usize,
        /// Bytes that a message may have.
        limit: usize,
    },
    /// An option is out of its range.
    Options {
        /// Which one, and its range.
        what: &'static str,
    },
    /// The session is not open (any more).
    Closed {
        /// Why, when it is known.
        why: Option<CloseReason>,
    },
}

impl core::fmt::Display for SendError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Full { limit } => write!(
                f,
                "the session holds {limit} bytes of unsent messages: wait until it is writable"
            ),
            Self::TooLarge { size, limit } => write!(
                f,
                "a message of {size} bytes is over the limit of {limit} bytes"
            ),
            Self::Options { what } => write!(f, "send option out of range: {what}"),
            Self::Closed { why: Some(why) } => write!(f, "the session is closed: {why}"),
            Self::Closed { why: None } => f.write_str("the session is closed"),
        }
    }
}

impl core::error::Error for SendError {}

/// What is decided about a message before its first symbol.
struct Plan {
    cut: Cut,
    rounds: u16,
    loss: f32,
    /// Blocks, of which all but the last are cut evenly and full.
    blocks: usize,
}

impl Session {
    pub(crate) fn send(
        &mut self,
        now: Instant,
        stream: u64,
        data: &[u8],
        options: SendOptions,
        shared: &mut Shared<'_>,
    ) -> Result<MessageId, SendError> {
        check(data.len(), &options)?;
        if stream >= 1 << 62 {
            return Err(SendError::Options {
                what: "stream must be below 2^62",
            });
        }
        if !matches!(self.state, State::Open) {
            return Err(SendError::Closed { why: None });
        }
        let plan = self.plan(stream, data.len(), &options, now, shared);
        if !self.has_room(&plan, data.len()) {
            self.traffic.was_full = true;
            return Err(SendError::Full {
                limit: SEND_QUEUE_MAX,
            });
        }
        let id = MessageId(self.traffic.next_message);
        self.traffic.next_message += 1;
        let first_block = self.traffic.outbox.next_block();
        let deadline = options.within.map(|within| now + within);
        let slot = self.traffic.outbox.insert_message(OutgoingMessage {
            id,
            accepted_at: now,
            deadline,
            options,
            first_block,
            blocks: plan.blocks as u8,
            blocks_done: 0,
            first_sent_at: None,
            lost_symbols: 0,
            arrival: None,
            predicted_on_time: 1.0,
        });
        let drop_at = deadline.filter(|_| options.when_late == WhenLate::Drop);
        self.insert_blocks(&plan, slot, stream, data, drop_at, shared.pool);
        self.statistics.messages_sent += 1;
        self.statistics.message_bytes_sent += data.len() as u64;
        for number in first_block..first_block + plan.blocks as u64 {
            self.begin_round(now, number, shared);
        }
        self.note_prediction(slot);
        Ok(id)
    }

    /// Whether the session may hold so much more.
    fn has_room(&self, plan: &Plan, len: usize) -> bool {
        let outbox = &self.traffic.outbox;
        let bytes = outbox.held_bytes() + len + plan.blocks * Preamble::LEN_MAX;
        self.traffic.events.len() < EVENTS_MAX
            && outbox.messages() < SEND_MESSAGES_MAX
            && outbox.has_block_numbers(plan.blocks)
            && bytes <= SEND_QUEUE_MAX
    }

    /// Cuts a message into its blocks.
    fn insert_blocks(
        &mut self,
        plan: &Plan,
        slot: u32,
        stream: u64,
        data: &[u8],
        drop_at: Option<Instant>,
        pool: &mut Pool,
    ) {
        let mut rest = data;
        for index in 0..plan.blocks {
            let preamble = preamble(index, stream, data.len());
            let room = if index + 1 == plan.blocks {
                rest.len()
            } else {
                plan.full_block() - preamble.encoded_len()
            };
            let (content, later) = rest.split_at(room.min(rest.len()));
            rest = later;
            let cut = if plan.blocks == 1 {
                plan.cut
            } else {
                plan.cut_of_part(content.len() + preamble.encoded_len())
            };
            let mut block = Block::new(
                self.traffic.outbox.next_block(),
                slot,
                cut,
                encode(&preamble, content, pool),
            );
            block.rounds_planned = plan.rounds;
            block.drop_at = drop_at;
            self.statistics.source_symbols += u64::from(block.source_symbols);
            self.traffic.outbox.insert_block(block);
        }
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
        let plan = self.plan(0, len, options, now, shared);
        let time_left = options.within.unwrap_or(Duration::MAX);
        let (miss, symbols) = self.predict_block(
            &plan.situation(time_left, self),
            options.miss_target(),
            shared,
        );
        let k = f64::from(plan.cut.source_symbols);
        let packet = (plan.cut.symbol_len + crate::message::PACKET_OVERHEAD) as f64;
        Ok(Forecast {
            on_time: if options.within.is_some() {
                libm::pow(1.0 - miss, plan.blocks as f64)
            } else {
                1.0
            },
            symbols_per_source_symbol: symbols / k,
            bytes: symbols * packet * plan.blocks as f64,
            source_symbols: plan.cut.source_symbols,
            rounds: plan.rounds,
        })
    }

    fn plan(
        &mut self,
        stream: u64,
        len: usize,
        options: &SendOptions,
        now: Instant,
        shared: &Shared<'_>,
    ) -> Plan {
        let rounds = match options.within {
            Some(within) => self
                .path
                .rounds_within(within, self.clock.residual(now).unwrap_or_default()),
            None => u16::MAX,
        };
        let loss = self.path.loss.upper_bound();
        let miss = options.miss_target();
        let policy = shared.config.policies.policy(miss);
        let mtu = self.path.mtu.current();
        let block_len = len + preamble(0, stream, len).encoded_len();
        let forced = options.source_symbols;
        // Without a deadline there is no redundancy, and the fewest symbols are the cheapest.
        let forced = if options.within.is_none() {
            forced.or(Some(1))
        } else {
            forced
        };
        match self.traffic.split.single_block(
            block_len,
            mtu,
            forced,
            policy,
            rounds.max(1),
            loss,
            miss,
        ) {
            Some(cut) => Plan {
                cut,
                rounds,
                loss,
                blocks: 1,
            },
            None => {
                let cut = cut_evenly(mtu);
                let full = usize::from(cut.source_symbols) * cut.symbol_len;
                let first = full - preamble(0, stream, len).encoded_len();
                let later = full - preamble(1, stream, len).encoded_len();
                Plan {
                    cut,
                    rounds,
                    loss,
                    blocks: 1 + (len - first).div_ceil(later),
                }
            }
        }
    }
}

impl Plan {
    fn full_block(&self) -> usize {
        usize::from(self.cut.source_symbols) * self.cut.symbol_len
    }

    /// The cut of a block of a larger message: as many symbols as it needs, a full block without padding.
    fn cut_of_part(&self, block_len: usize) -> Cut {
        Cut::of(block_len, block_len.div_ceil(self.cut.symbol_len))
    }

    fn situation(&self, time_left: Duration, session: &Session) -> punctual_policy::Situation {
        punctual_policy::Situation {
            source_symbols: self.cut.source_symbols,
            deficit: self.cut.source_symbols,
            unaccounted: 0,
            sent: 0,
            rounds_left: self.rounds,
            rounds_planned: self.rounds,
            loss: self.loss,
            draw: 0,
            time_left,
            round_time: session.path.round_time(),
        }
    }
}

fn check(len: usize, options: &SendOptions) -> Result<(), SendError> {
    if len > MESSAGE_MAX {
        return Err(SendError::TooLarge {
            size: len,
            limit: MESSAGE_MAX,
        });
    }
    if !(options.on_time > 0.0 && options.on_time < 1.0) {
        return Err(SendError::Options {
            what: "on_time must be above 0 and below 1",
        });
    }
    if options
        .source_symbols
        .is_some_and(|count| !(1..=64).contains(&count))
    {
        return Err(SendError::Options {
            what: "source_symbols must be 1 to 64",
        });
    }
    Ok(())
}

fn preamble(index: usize, stream: u64, message_len: usize) -> Preamble {
    if index == 0 {
        Preamble::First {
            stream,
            message_len,
        }
    } else {
        Preamble::Later { index: index as u8 }
    }
}

fn encode(preamble: &Preamble, content: &[u8], pool: &mut Pool) -> Vec<u8> {
    let mut head = [0; Preamble::LEN_MAX];
    let mut writer = Writer::new(&mut head);
    preamble.encode(&mut writer);
    let head_len = writer.len();
    let mut data = pool.take(head_len + content.len());
    data.extend_from_slice(&head[..head_len]);
    data.extend_from_slice(content);
    data
}
