//! What became of each message, and what the protocol says was the cause.

use std::collections::HashMap;

use punctual_proto::{MessageId, MissReason, Outcome, SessionId};

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageFate {
    /// It arrived within its deadline.
    OnTime,
    /// It was late, or never arrived.
    Late(LateCause),
}

/// Why a message was late. Only of [`LateCause::Hopeless`] the network is asked; the others are what the protocol said of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LateCause {
    /// It would have been late whatever had been sent from its instant to its deadline ([`genie`](crate::genie)).
    Hopeless,
    /// It waited too long before enough of its symbols had left, or was refused because too many others waited.
    Queue,
    /// The path was slower than usual: too few symbols arrived in time, the lost ones taken for in time.
    Delay,
    /// Nothing at all came back while it was under way.
    PathDown,
    /// Too many of its symbols were lost that would have been in time.
    Loss,
    /// The protocol took it for on time, or said nothing of it before the run ended.
    Unexplained,
}

impl LateCause {
    /// Whether more symbols could have prevented it, as far as anybody can say: in doubt they could.
    pub const fn is_preventable(self) -> bool {
        matches!(self, Self::Loss | Self::Unexplained)
    }

    fn of(why: Option<MissReason>) -> Self {
        match why {
            Some(MissReason::Queue) => Self::Queue,
            Some(MissReason::Delay) => Self::Delay,
            Some(MissReason::PathDown) => Self::PathDown,
            Some(MissReason::Loss) => Self::Loss,
            _ => Self::Unexplained,
        }
    }
}

/// Collects what the sender is told, by number of the message.
#[derive(Debug)]
pub(super) struct Fates {
    stories: Vec<Story>,
    /// Messages without an outcome. A session bounds how many it holds.
    waiting: HashMap<(SessionId, MessageId), u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Story {
    is_on_time: bool,
    why: Option<MissReason>,
}

impl Fates {
    pub(super) fn new(messages: u64) -> Self {
        Self {
            stories: vec![Story::default(); messages as usize],
            waiting: HashMap::new(),
        }
    }

    pub(super) fn on_sent(&mut self, number: u64, session: SessionId, message: MessageId) {
        self.waiting.insert((session, message), number);
    }

    pub(super) fn on_refused(&mut self, number: u64) {
        self.stories[number as usize].why = Some(MissReason::Queue);
    }

    pub(super) fn on_arrival_in_time(&mut self, number: u64) {
        self.stories[number as usize].is_on_time = true;
    }

    pub(super) fn on_outcome(&mut self, session: SessionId, message: MessageId, outcome: Outcome) {
        let Some(number) = self.waiting.remove(&(session, message)) else {
            return;
        };
        if let Outcome::Late { why, .. } | Outcome::Dropped { why } = outcome {
            self.stories[number as usize].why = Some(why);
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// By number; `is_hopeless` says of a number whether any sender could have brought it through.
    pub(super) fn finish(&self, is_hopeless: impl Fn(usize) -> bool) -> Vec<MessageFate> {
        let fate = |(number, story): (usize, &Story)| {
            if story.is_on_time {
                MessageFate::OnTime
            } else if is_hopeless(number) {
                MessageFate::Late(LateCause::Hopeless)
            } else {
                MessageFate::Late(LateCause::of(story.why))
            }
        };
        self.stories.iter().enumerate().map(fate).collect()
    }
}
