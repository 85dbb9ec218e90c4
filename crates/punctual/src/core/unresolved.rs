//! Which stream each message without an outcome was sent on: the protocol names messages by session alone.

use std::collections::VecDeque;

use punctual_proto::MessageId;

/// Streams of messages, from the oldest without an outcome. Its length is bounded by the protocol, which never has two
/// messages further apart than its block window under way.
#[derive(Debug, Default)]
pub(crate) struct Unresolved {
    first: u64,
    /// `None` when the message has its outcome.
    streams: VecDeque<Option<u64>>,
}

impl Unresolved {
    /// Message `id` was accepted; ids follow each other.
    pub(crate) fn push(&mut self, id: MessageId, stream: u64) {
        if self.streams.is_empty() {
            self.first = id.0;
        }
        self.streams.push_back(Some(stream));
    }

    /// Message `id` has its outcome: its stream.
    pub(crate) fn take(&mut self, id: MessageId) -> Option<u64> {
        let at = usize::try_from(id.0.checked_sub(self.first)?).ok()?;
        let stream = self.streams.get_mut(at)?.take();
        while self.streams.front() == Some(&None) {
            self.streams.pop_front();
            self.first += 1;
        }
        if self.streams.is_empty() && self.streams.capacity() > 64 {
            self.streams = VecDeque::new();
        }
        stream
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_finds_its_stream_once() {
        let mut unresolved = Unresolved::default();
        for id in 0..5 {
            unresolved.push(MessageId(id), id % 2);
        }
        for id in [3, 0, 1, 4, 2] {
            assert_eq!(unresolved.take(MessageId(id)), Some(id % 2));
            assert_eq!(unresolved.take(MessageId(id)), None);
        }
        unresolved.push(MessageId(5), 9);
        assert_eq!(unresolved.take(MessageId(5)), Some(9));
        assert!(unresolved.streams.is_empty());
    }
}
