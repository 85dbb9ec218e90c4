//! What a receiver is handed, and when it must not be.

use punctual_proto::{Cancel, Delivery, MissReason, Outcome, limits};

use super::{Entry, Model, NUMBER_LEN, Received, Rule, Verdict, broken, fill, read_number};

impl Model {
    /// A message was handed on at the other end.
    ///
    /// # Errors
    /// When it was not sent, was changed, was handed on before, or is not to be handed on now.
    pub fn on_delivered(&mut self, stream: u16, data: &[u8]) -> Verdict {
        let Some(number) = read_number(data) else {
            return self.on_short(stream, data.len());
        };
        if data.len() > limits::WHOLE_MAX {
            return broken(
                Rule::Pieces,
                format!("message {number} came whole: {} bytes", data.len()),
            );
        }
        self.check_genuine(number, stream, data)?;
        if self.messages[&number].received != Received::Nothing {
            return broken(Rule::AtMostOnce, format!("message {number} came twice"));
        }
        self.on_begun(number)?;
        self.on_whole(number)
    }

    /// Too short for a number: any one of that length that still waits.
    fn on_short(&mut self, stream: u16, len: usize) -> Verdict {
        let waiting = self.short_waiting.iter().position(|number| {
            let entry = &self.messages[number];
            entry.len == len && entry.stream == stream
        });
        let Some(position) = waiting else {
            return broken(
                Rule::AtMostOnce,
                format!("{len} bytes too often on stream {stream}"),
            );
        };
        self.short_waiting.swap_remove(position);
        self.delivered += 1;
        Ok(())
    }

    pub(super) fn check_genuine(&self, number: u64, stream: u16, data: &[u8]) -> Verdict {
        let Some(entry) = self.messages.get(&number) else {
            return broken(Rule::Genuine, format!("message {number} was never sent"));
        };
        if entry.stream != stream {
            return broken(
                Rule::Genuine,
                format!("message {number} came on stream {stream}: {entry:?}"),
            );
        }
        let mut expected = Vec::new();
        fill(&mut expected, number, entry.len);
        if data != expected {
            return broken(Rule::Genuine, format!("message {number} was changed"));
        }
        Ok(())
    }

    /// A message, or its first piece, was handed on.
    pub(super) fn on_begun(&mut self, number: u64) -> Verdict {
        let entry = &self.messages[&number];
        if never_left(entry) {
            return broken(
                Rule::AfterCancel,
                format!("message {number} came, and had never left: {entry:?}"),
            );
        }
        if entry.delivery == Delivery::ReliableOrdered {
            self.check_order(number)?;
        }
        let entry = &self.messages[&number];
        if entry.supersedes() {
            let newest = self.handed_newest.entry(entry.lane()).or_insert(number);
            if *newest > number {
                return broken(
                    Rule::Newest,
                    format!("message {number} came after {newest}: {entry:?}"),
                );
            }
            *newest = number;
        }
        if let Some(entry) = self.messages.get_mut(&number) {
            entry.received = Received::Begun;
        }
        Ok(())
    }

    /// Those before it have come, or were given up; and it was not passed over itself.
    fn check_order(&mut self, number: u64) -> Verdict {
        let stream = self.messages[&number].stream;
        let waiting = self.ordered.entry(stream).or_default();
        let Ok(position) = waiting.binary_search(&number) else {
            return broken(
                Rule::Ordered,
                format!("message {number} came after a newer one"),
            );
        };
        let passed: Vec<u64> = waiting.drain(..=position).collect();
        for older in passed.into_iter().filter(|older| *older != number) {
            let entry = &self.messages[&older];
            let is_given_up = entry.outcome.is_some() && !entry.is_reported();
            if !is_given_up && !matches!(entry.received, Received::Aborted | Received::Whole) {
                return broken(
                    Rule::Ordered,
                    format!("message {number} came before {older}: {entry:?}"),
                );
            }
        }
        Ok(())
    }

    /// All of a message was handed on.
    pub(super) fn on_whole(&mut self, number: u64) -> Verdict {
        let Some(entry) = self.messages.get_mut(&number) else {
            return Ok(());
        };
        entry.received = Received::Whole;
        if entry.cancel == Some(Cancel::Dropped) {
            return broken(
                Rule::AfterCancel,
                format!("message {number} came after its cancel: {entry:?}"),
            );
        }
        self.delivered += 1;
        Ok(())
    }

    /// No more of a message that came in pieces is handed on.
    pub(super) fn on_piece_aborted(&mut self, number: u64) {
        if let Some(entry) = self.messages.get_mut(&number) {
            entry.received = Received::Aborted;
        }
    }
}

/// What never left cannot arrive.
const fn never_left(entry: &Entry) -> bool {
    matches!(
        entry.outcome,
        Some(
            Outcome::Cancelled { sent: false }
                | Outcome::Dropped {
                    why: MissReason::Thinned
                }
        )
    )
}

const _: () = assert!(NUMBER_LEN == 2, "numbers are read as u16");
