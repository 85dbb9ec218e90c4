//! What a storm does with streams and messages.

use std::sync::Arc;
use std::time::Duration;

use punctual_proto::{
    Delivery, Endpoint, Fairness, MessageId, SendError, SendOptions, SharedContent, StreamConfig,
    StreamError, StreamId, WhenLate, limits,
};

use super::model::{self, Rule, Sent};
use super::{Broken, Mutator, Storm, TARGETS};
use crate::world::HostId;

/// Streams of one direction that a storm has open, at most.
const STREAMS: u64 = 6;

/// A message whose content comes piece by piece.
pub(super) struct Appending {
    side: usize,
    message: MessageId,
    content: Vec<u8>,
    at: usize,
    /// It is left as it is, and cancelled in the end.
    is_left: bool,
}

/// How a content is handed in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hand {
    Bytes,
    Shared,
    Later,
}

impl Storm<'_> {
    fn broken<T>(&self, rule: Rule, detail: String) -> Result<T, Broken> {
        Err(Broken {
            rule,
            at: self.world.now(),
            detail,
        })
    }

    fn verdict(&self, verdict: Result<(), (Rule, String)>) -> Result<(), Broken> {
        verdict.or_else(|(rule, detail)| self.broken(rule, detail))
    }

    /// A pair, one of its sides, and where that is; `None` before the server knows the client.
    fn choose_side(&mut self) -> Option<(usize, usize)> {
        let pair = self.choices.below(self.pairs.len() as u64) as usize;
        let side = self.choices.below(2) as usize;
        self.pairs[pair].at(side, self.server).map(|_| (pair, side))
    }

    /// Calls `f` with the endpoint of a side, its session and its time.
    fn with_side<R>(
        &mut self,
        pair: usize,
        side: usize,
        f: impl FnOnce(&mut Endpoint, punctual_proto::SessionId, punctual_proto::Instant) -> R,
    ) -> Option<R> {
        let (host, session) = self.pairs[pair].at(side, self.server)?;
        let result = self
            .world
            .with_endpoint(host, |endpoint, now| f(endpoint, session, now));
        Some(result)
    }

    pub(super) fn open_first_streams(&mut self, pair: usize, side: usize) -> Result<(), Broken> {
        for _ in 0..self.choices.below(4) {
            self.open_stream_of(pair, side)?;
        }
        Ok(())
    }

    pub(super) fn open_stream(&mut self) -> Result<(), Broken> {
        match self.choose_side() {
            Some((pair, side)) => self.open_stream_of(pair, side),
            None => Ok(()),
        }
    }

    fn open_stream_of(&mut self, pair: usize, side: usize) -> Result<(), Broken> {
        let delivery = match self.choices.below(5) {
            0 => Delivery::Unreliable,
            1 => Delivery::UnreliableSequenced,
            2 => Delivery::Reliable,
            3 => Delivery::ReliableOrdered,
            _ => Delivery::Latest,
        };
        let mut config = StreamConfig::new(delivery).weight(1 + self.choices.below(1000) as u16);
        if self.choices.below(3) == 0 {
            config = config.fairness(Fairness::Quality);
        }
        if self.choices.below(4) > 0 {
            config = config.number(self.choices.below(STREAMS) as u16);
        }
        let opened = self.with_side(pair, side, |endpoint, session, _| {
            endpoint.open_stream(session, config)
        });
        let model = &mut self.pairs[pair].sides[side];
        match opened {
            Some(Ok(stream)) => {
                let verdict = model.on_opened(stream.0, config);
                self.verdict(verdict)
            }
            Some(Err(StreamError::AlreadyOpen { number })) if !model.is_free(number) => Ok(()),
            None | Some(Err(StreamError::Closed)) => Ok(()),
            Some(Err(error)) => self.broken(Rule::Streams, format!("{config:?}: {error}")),
        }
    }

    /// One of the streams of a side that were ever opened, or the default one.
    fn choose_stream(&mut self, pair: usize, side: usize) -> u16 {
        let streams: Vec<u16> = self.pairs[pair].sides[side].streams().collect();
        let index = self.choices.below(streams.len() as u64 + 1) as usize;
        streams.get(index).copied().unwrap_or(0)
    }

    pub(super) fn close_stream(&mut self) {
        let Some((pair, side)) = self.choose_side() else {
            return;
        };
        let stream = self.choose_stream(pair, side);
        self.with_side(pair, side, |endpoint, session, _| {
            endpoint.close_stream(session, StreamId(stream));
        });
        self.pairs[pair].sides[side].on_stream_closed(stream);
    }

    pub(super) fn change_stream(&mut self) {
        let Some((pair, side)) = self.choose_side() else {
            return;
        };
        let stream = StreamId(self.choose_stream(pair, side));
        let weight = self.choices.below(1200) as u16;
        self.with_side(pair, side, |endpoint, session, _| {
            endpoint.set_weight(session, stream, weight);
        });
    }

    /// Sends wait for each other, or not any more.
    pub(super) fn tick(&mut self) {
        let Some((pair, side)) = self.choose_side() else {
            return;
        };
        let max = match self.choices.below(3) {
            0 => None,
            _ => Some(Duration::from_millis(self.choices.below(100))),
        };
        let is_flush = self.choices.below(2) == 0;
        self.with_side(pair, side, |endpoint, session, _| {
            if is_flush {
                endpoint.flush(session);
            } else {
                endpoint.set_tick(session, max);
            }
        });
    }

    pub(super) fn stop_ticks(&mut self) {
        for pair in 0..self.pairs.len() {
            for side in 0..2 {
                if self.choices.below(2) == 0 {
                    self.with_side(pair, side, |endpoint, session, _| {
                        endpoint.set_tick(session, None);
                    });
                }
            }
        }
    }

    /// One message, or a burst of them.
    pub(super) fn send(&mut self) -> Result<(), Broken> {
        let Some((pair, side)) = self.choose_side() else {
            return Ok(());
        };
        let stream = self.choose_stream(pair, side);
        let burst = match self.choices.below(8) {
            0 => self.choices.below(30),
            _ => 0,
        };
        for _ in 0..=burst {
            self.send_on(pair, side, stream)?;
        }
        Ok(())
    }

    fn send_on(&mut self, pair: usize, side: usize, stream: u16) -> Result<(), Broken> {
        let delivery = self.pairs[pair].sides[side].delivery(stream);
        let mut len = self.choose_len();
        if matches!(
            delivery,
            Some(Delivery::Latest | Delivery::UnreliableSequenced)
        ) {
            // Whether it is newer than another is told by its number.
            len = len.max(model::NUMBER_LEN);
        }
        let hand = match self.choices.below(16) {
            0 => Hand::Shared,
            1 if len >= model::NUMBER_LEN => Hand::Later,
            _ => Hand::Bytes,
        };
        let options = self.options();
        let number = self.next_number;
        self.next_number += 1;
        model::fill(&mut self.payload, number, len);
        let payload = std::mem::take(&mut self.payload);
        let result = self.with_side(pair, side, |endpoint, session, now| {
            let id = StreamId(stream);
            match hand {
                Hand::Bytes => endpoint.send(now, session, id, &payload, options),
                Hand::Shared => {
                    let shared: SharedContent = Arc::new(payload.clone());
                    endpoint.send_shared(now, session, id, shared, options)
                }
                Hand::Later => endpoint.begin(now, session, id, len, options),
            }
        });
        self.payload = payload;
        let sent = Sent {
            number,
            stream,
            len,
            options,
        };
        match result {
            Some(Ok(message)) => {
                let verdict = self.pairs[pair].sides[side].on_accepted(message, &sent);
                self.verdict(verdict)?;
                if hand == Hand::Later {
                    self.begin_appending(pair, side, message);
                }
                Ok(())
            }
            Some(Err(SendError::TooLarge { .. } | SendError::Options { .. })) => self.broken(
                Rule::Limits,
                format!("a message of {len} bytes was refused: {options:?}"),
            ),
            Some(Err(SendError::NoStream { .. })) if delivery.is_some() => {
                self.broken(Rule::Streams, format!("stream {stream} does not accept"))
            }
            _ => Ok(()),
        }
    }

    fn choose_len(&mut self) -> usize {
        match self.choices.below(64) {
            0 => self.choices.below(3) as usize,
            1..=40 => self.choices.below(300) as usize,
            41..=59 => self.choices.below(5000) as usize,
            60..=62 => self.choices.below(100_000) as usize,
            _ if self.large_left > 0 => {
                self.large_left -= 1;
                limits::WHOLE_MAX - 100 + self.choices.below(100_000) as usize
            }
            _ => 20,
        }
    }

    fn options(&mut self) -> SendOptions {
        let mut options = match self.choices.below(3) {
            0 => SendOptions::default(),
            _ => SendOptions::within(Duration::from_millis(1 + self.choices.below(1500))),
        };
        options = options.on_time(TARGETS[self.choices.below(4) as usize]);
        if self.choices.below(3) == 0 {
            options.when_late = WhenLate::Drop;
        }
        if self.choices.below(8) == 0 {
            options = options.source_symbols(1 + self.choices.below(64) as u8);
        }
        options = match self.choices.below(8) {
            0 => options.key(self.choices.below(1 << 40)),
            _ => options.key(self.choices.below(3)),
        };
        if self.choices.below(3) == 0 {
            options = options.importance(self.choices.below(256) as u8);
        }
        if self.choices.below(4) == 0 {
            options = options.loss_tolerance(self.choices.below(101) as f32 / 100.0);
        }
        if self.choices.below(4) == 0 {
            options = options.quality(0.01 + self.choices.below(1000) as f32);
        }
        options
    }

    /// Takes a message back: a recent one, any one, or one that there never was.
    pub(super) fn cancel(&mut self) -> Result<(), Broken> {
        let Some((pair, side)) = self.choose_side() else {
            return Ok(());
        };
        let model = &self.pairs[pair].sides[side];
        let id = match self.choices.below(8) {
            0 => Some(MessageId(self.choices.below(1 << 30))),
            1 | 2 => {
                let accepted = model.accepted();
                model.recent_id(self.choices.below(accepted) as usize)
            }
            _ => model.recent_id(self.choices.below(8) as usize),
        };
        match id {
            Some(id) => self.cancel_message(pair, side, id),
            None => Ok(()),
        }
    }

    fn cancel_message(
        &mut self,
        pair: usize,
        side: usize,
        message: MessageId,
    ) -> Result<(), Broken> {
        let answer = self.with_side(pair, side, |endpoint, session, now| {
            endpoint.cancel(now, session, message)
        });
        match answer {
            Some(answer) => {
                let verdict = self.pairs[pair].sides[side].on_cancel(message, answer);
                self.verdict(verdict)
            }
            None => Ok(()),
        }
    }

    fn begin_appending(&mut self, pair: usize, side: usize, message: MessageId) {
        let is_left = self.choices.below(3) == 0;
        self.pairs[pair].appending.push(Appending {
            side,
            message,
            content: self.payload.clone(),
            at: 0,
            is_left,
        });
    }

    /// Hands in more of a content.
    pub(super) fn append(&mut self) -> Result<(), Broken> {
        let pair = self.choices.below(self.pairs.len() as u64) as usize;
        let count = self.pairs[pair].appending.len() as u64;
        if count == 0 {
            return Ok(());
        }
        let which = self.choices.below(count) as usize;
        let bytes = match self.choices.below(3) {
            0 => usize::MAX,
            1 => self.choices.below(100) as usize,
            _ => self.choices.below(20_000) as usize,
        };
        self.append_to(pair, which, bytes)
    }

    fn append_to(&mut self, pair: usize, which: usize, bytes: usize) -> Result<(), Broken> {
        let mut appending = self.pairs[pair].appending.swap_remove(which);
        let to = appending
            .at
            .saturating_add(bytes)
            .min(appending.content.len());
        let more = &appending.content[appending.at..to];
        let message = appending.message;
        let taken = self.with_side(pair, appending.side, |endpoint, session, _| {
            endpoint.append(session, message, more)
        });
        match taken {
            Some(Ok(taken)) if taken <= more.len() => {
                appending.at += taken;
                if appending.at < appending.content.len() {
                    self.pairs[pair].appending.push(appending);
                }
                Ok(())
            }
            Some(Err(SendError::Closed { .. })) | None => Ok(()),
            Some(Err(SendError::NoMessage)) if self.is_resolved(pair, &appending) => Ok(()),
            other => {
                let model = &self.pairs[pair].sides[appending.side];
                let entry = model
                    .number_of(message)
                    .and_then(|number| model.entry(number));
                self.broken(
                    Rule::Limits,
                    format!("{message:?} was given more: {other:?}, {entry:?}"),
                )
            }
        }
    }

    fn is_resolved(&self, pair: usize, appending: &Appending) -> bool {
        self.pairs[pair].sides[appending.side].has_outcome(appending.message)
    }

    /// The storm is over: contents are completed, or their messages cancelled.
    pub(super) fn complete_or_cancel(&mut self) -> Result<(), Broken> {
        for pair in 0..self.pairs.len() {
            for which in (0..self.pairs[pair].appending.len()).rev() {
                let appending = &self.pairs[pair].appending[which];
                if appending.is_left {
                    let (side, message) = (appending.side, appending.message);
                    self.pairs[pair].appending.swap_remove(which);
                    self.cancel_message(pair, side, message)?;
                } else {
                    self.append_to(pair, which, usize::MAX)?;
                }
            }
        }
        Ok(())
    }

    /// The counts of every open stream are what the application saw.
    pub(super) fn check_statistics(&self) -> Result<(), Broken> {
        for pair in self.pairs.iter().filter(|pair| !pair.is_over) {
            for (side, model) in pair.sides.iter().enumerate() {
                let Some((host, session)) = pair.at(side, self.server) else {
                    continue;
                };
                for stream in model.streams() {
                    let Some(stats) = self.stats(host, session, stream) else {
                        return self.broken(Rule::Statistics, format!("stream {stream} has none"));
                    };
                    self.verdict(model.check_statistics(stream, &stats))?;
                }
            }
        }
        Ok(())
    }

    fn stats(
        &self,
        host: HostId,
        session: punctual_proto::SessionId,
        stream: u16,
    ) -> Option<punctual_proto::StreamStats> {
        self.world
            .endpoint(host)
            .stream_stats(session, StreamId(stream))
    }

    /// Sends what the model does not hear of, so that a client is never quiet.
    pub(super) fn send_unnoticed(&mut self) {
        debug_assert!(self.mutator.as_ref().is_some_and(Mutator::is_busy));
        for pair in 0..self.pairs.len() {
            self.with_side(pair, 0, |endpoint, session, now| {
                endpoint
                    .send(
                        now,
                        session,
                        StreamId::DEFAULT,
                        &[0; 8],
                        SendOptions::default(),
                    )
                    .is_ok()
            });
        }
    }
}
