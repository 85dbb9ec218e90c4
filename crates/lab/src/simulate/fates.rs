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

/// Why a message was late: what the protocol said of itself. The network is asked for what is [`LateCause::Hopeless`], and where the protocol has no cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LateCause {
    /// It would have been late whatever had been sent from its instant to its deadline ([`genie`](crate::genie)).
    Hopeless,
    /// It waited too long before enough of its symbols had left, or was refused because too many others waited.
    Queue,
    /// The path was slower than usual: too few symbols arrived in time, the lost ones taken for in time. So was one from whose sending to whose arrival, or outcome,
    /// the network lost nothing, whatever the protocol took for lost: later packets had overtaken it.
    Delay,
    /// Nothing at all came back while it was under way.
    PathDown,
    /// Too many of its symbols were lost that would have been in time.
    Loss,
    /// The protocol took it for on time, or said nothing of it before the run ended; and something was lost meanwhile.
    Unexplained,
}

impl LateCause {
    /// Whether more symbols could have prevented it, as far as anybody can say: in doubt they could.
    pub const fn is_preventable(self) -> bool {
        matches!(self, Self::Loss | Self::Unexplained)
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
    /// What its path had lost when it was sent.
    lost_before: u64,
    /// It was late, and nothing was lost until it arrived, or until its outcome.
    is_only_delayed: bool,
}

impl Story {
    fn cause(&self) -> LateCause {
        match self.why {
            Some(MissReason::Queue) => LateCause::Queue,
            Some(MissReason::Delay) => LateCause::Delay,
            Some(MissReason::PathDown) => LateCause::PathDown,
            _ if self.is_only_delayed => LateCause::Delay,
            Some(MissReason::Loss) => LateCause::Loss,
            _ => LateCause::Unexplained,
        }
    }
}

impl Fates {
    pub(super) fn new(messages: u64) -> Self {
        Self {
            stories: vec![Story::default(); messages as usize],
            waiting: HashMap::new(),
        }
    }

    /// `lost` counts what its path has lost so far.
    pub(super) fn on_sent(
        &mut self,
        number: u64,
        session: SessionId,
        message: MessageId,
        lost: u64,
    ) {
        self.stories[number as usize].lost_before = lost;
        self.waiting.insert((session, message), number);
    }

    pub(super) fn on_refused(&mut self, number: u64) {
        self.stories[number as usize].why = Some(MissReason::Queue);
    }

    pub(super) fn on_arrival_in_time(&mut self, number: u64) {
        self.stories[number as usize].is_on_time = true;
    }

    /// It arrived, too late, over a path that has lost so much so far.
    pub(super) fn on_late_arrival(&mut self, number: u64, lost: u64) {
        let story = &mut self.stories[number as usize];
        story.is_only_delayed = story.lost_before == lost;
    }

    /// `lost` says, by number of a message, what its path has lost so far.
    pub(super) fn on_outcome(
        &mut self,
        session: SessionId,
        message: MessageId,
        outcome: Outcome,
        lost: impl FnOnce(u64) -> u64,
    ) {
        let Some(number) = self.waiting.remove(&(session, message)) else {
            return;
        };
        if let Outcome::Late { why, .. } | Outcome::Dropped { why } = outcome {
            let story = &mut self.stories[number as usize];
            story.why = Some(why);
            story.is_only_delayed = story.lost_before == lost(number);
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
                MessageFate::Late(story.cause())
            }
        };
        self.stories.iter().enumerate().map(fate).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A regression: what the clock took for on time counted as the doing of losses over a path that loses nothing.
    #[test]
    fn without_a_loss_it_is_the_delay() {
        let mut fates = Fates::new(3);
        for (number, lost) in [(0, 7), (1, 7)] {
            fates.stories[number].lost_before = lost;
        }
        fates.on_late_arrival(0, 7);
        fates.on_late_arrival(1, 8);
        let late = |cause| MessageFate::Late(cause);
        let told = [
            late(LateCause::Delay),
            late(LateCause::Unexplained),
            late(LateCause::Unexplained),
        ];
        assert_eq!(fates.finish(|_| false), told);
        assert_eq!(
            fates.finish(|number| number == 0)[0],
            late(LateCause::Hopeless)
        );
    }
}
