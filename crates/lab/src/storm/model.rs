//! What must hold of the messages of one direction, whatever the network does.

use std::collections::BTreeMap;

use punctual_proto::{MessageId, Outcome, WhenLate};

/// The promises that a storm checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// What is handed on was sent, byte for byte.
    Genuine,
    /// No message is handed on twice.
    AtMostOnce,
    /// A message that is reported delivered was handed on at the other end.
    TrueOutcome,
    /// Every message has one outcome.
    OneOutcome,
    /// A message that is to be delivered is, once the network lets it.
    AtLeastOnce,
    /// Sizes are accepted up to the limit, and not beyond.
    Limits,
    /// Time goes on.
    NoSpinning,
}

#[derive(Debug)]
struct Entry {
    len: usize,
    when_late: WhenLate,
    is_delivered: bool,
    has_outcome: bool,
}

/// Messages of one direction of one session.
#[derive(Debug, Default)]
pub struct Model {
    /// By the number inside the payload.
    messages: BTreeMap<u64, Entry>,
    by_id: BTreeMap<MessageId, u64>,
    /// Empty messages cannot carry a number: they are counted.
    empty_waiting: Vec<u64>,
    open_outcomes: u64,
    undelivered: u64,
}

type Verdict = Result<(), (Rule, String)>;

impl Model {
    /// A message was accepted.
    pub fn on_accepted(&mut self, id: MessageId, number: u64, len: usize, when_late: WhenLate) {
        self.messages.insert(
            number,
            Entry {
                len,
                when_late,
                is_delivered: false,
                has_outcome: false,
            },
        );
        self.by_id.insert(id, number);
        if len < NUMBER_LEN {
            self.empty_waiting.push(number);
        }
        self.open_outcomes += 1;
        self.undelivered += 1;
    }

    /// A message was handed on at the other end.
    ///
    /// # Errors
    /// When it was not sent, was changed, or was handed on before.
    pub fn on_delivered(&mut self, data: &[u8]) -> Verdict {
        let number = match read_number(data) {
            Some(number) => number,
            // Too short for a number: any one of that length that still waits.
            None => {
                let waiting = self
                    .empty_waiting
                    .iter()
                    .position(|number| self.messages[number].len == data.len());
                let Some(position) = waiting else {
                    return Err((Rule::AtMostOnce, format!("{} bytes too often", data.len())));
                };
                self.empty_waiting.swap_remove(position)
            }
        };
        let Some(entry) = self.messages.get_mut(&number) else {
            return Err((Rule::Genuine, format!("message {number} was never sent")));
        };
        let mut expected = Vec::new();
        fill(&mut expected, number, entry.len);
        if data.len() >= NUMBER_LEN && data != expected {
            return Err((Rule::Genuine, format!("message {number} was changed")));
        }
        if std::mem::replace(&mut entry.is_delivered, true) {
            return Err((Rule::AtMostOnce, format!("message {number} came twice")));
        }
        self.undelivered -= 1;
        Ok(())
    }

    /// A message got its outcome.
    ///
    /// # Errors
    /// When it had one, or when the outcome is not true.
    pub fn on_outcome(&mut self, id: MessageId, outcome: &Outcome) -> Verdict {
        let Some(number) = self.by_id.get(&id) else {
            return Err((Rule::OneOutcome, format!("{id:?} was never accepted")));
        };
        let entry = self
            .messages
            .get_mut(number)
            .ok_or((Rule::Genuine, String::new()))?;
        if std::mem::replace(&mut entry.has_outcome, true) {
            return Err((Rule::OneOutcome, format!("{id:?} has two: {outcome:?}")));
        }
        self.open_outcomes -= 1;
        let is_short = entry.len < NUMBER_LEN;
        match outcome {
            Outcome::OnTime { .. } | Outcome::Late { .. } if !entry.is_delivered && !is_short => {
                Err((
                    Rule::TrueOutcome,
                    format!(
                        "message {number} of {} bytes is reported delivered, and was not",
                        entry.len
                    ),
                ))
            }
            _ => Ok(()),
        }
    }

    /// The session is over: everything must have its outcome.
    ///
    /// # Errors
    /// When something has none.
    pub fn on_closed(&self) -> Verdict {
        if self.open_outcomes == 0 {
            Ok(())
        } else {
            Err((
                Rule::OneOutcome,
                format!("{} messages have none at the end", self.open_outcomes),
            ))
        }
    }

    /// Whether nothing is left to wait for.
    pub fn is_settled(&self) -> bool {
        self.check_settled().is_ok()
    }

    /// Checks what must be true once the network was calm for long.
    ///
    /// # Errors
    /// When a message has no outcome, or one that was to be delivered was not.
    pub fn check_settled(&self) -> Verdict {
        self.on_closed()?;
        let missing = self
            .messages
            .iter()
            .find(|(_, entry)| !entry.is_delivered && entry.when_late == WhenLate::Deliver);
        match missing {
            // Which of two short ones of equal length came is not known.
            Some((number, entry)) if entry.len >= NUMBER_LEN => {
                Err((Rule::AtLeastOnce, format!("message {number} never came")))
            }
            _ => Ok(()),
        }
    }

    /// Messages accepted.
    pub fn accepted(&self) -> u64 {
        self.messages.len() as u64
    }

    /// Messages delivered.
    pub fn delivered(&self) -> u64 {
        self.messages.len() as u64 - self.undelivered
    }
}

const NUMBER_LEN: usize = 8;

/// The content of message `number`: the number, then bytes that follow from it.
pub(super) fn fill(payload: &mut Vec<u8>, number: u64, len: usize) {
    payload.clear();
    payload.extend_from_slice(&number.to_le_bytes()[..len.min(NUMBER_LEN)]);
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while payload.len() < len {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let word = (state >> 8).to_le_bytes();
        let more = (len - payload.len()).min(7);
        payload.extend_from_slice(&word[..more]);
    }
}

fn read_number(data: &[u8]) -> Option<u64> {
    data.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(model: &mut Model, number: u64) -> Vec<u8> {
        model.on_accepted(MessageId(number), number, 100, WhenLate::Deliver);
        let mut data = Vec::new();
        fill(&mut data, number, 100);
        data
    }

    fn on_time() -> Outcome {
        Outcome::OnTime {
            latency: std::time::Duration::ZERO,
            bound: std::time::Duration::ZERO,
        }
    }

    /// Each rule is seen to fail when it is broken: a checker that cannot fail checks nothing.
    #[test]
    fn every_broken_promise_is_noticed() {
        let mut model = Model::default();
        let data = accepted(&mut model, 7);
        assert_eq!(
            model.on_outcome(MessageId(7), &on_time()).unwrap_err().0,
            Rule::TrueOutcome
        );

        let mut model = Model::default();
        let data_again = accepted(&mut model, 7);
        assert_eq!(data, data_again);
        assert_eq!(model.check_settled().unwrap_err().0, Rule::OneOutcome);
        model.on_delivered(&data).unwrap();
        assert_eq!(model.on_delivered(&data).unwrap_err().0, Rule::AtMostOnce);
        model.on_outcome(MessageId(7), &on_time()).unwrap();
        assert_eq!(
            model.on_outcome(MessageId(7), &on_time()).unwrap_err().0,
            Rule::OneOutcome
        );
        model.check_settled().unwrap();

        let mut model = Model::default();
        let mut changed = accepted(&mut model, 8);
        changed[50] ^= 1;
        assert_eq!(model.on_delivered(&changed).unwrap_err().0, Rule::Genuine);
        let mut foreign = Vec::new();
        fill(&mut foreign, 9, 100);
        assert_eq!(model.on_delivered(&foreign).unwrap_err().0, Rule::Genuine);
        assert_eq!(model.on_delivered(&[]).unwrap_err().0, Rule::AtMostOnce);
        let dropped = Outcome::Dropped {
            why: punctual_proto::MissReason::Loss,
        };
        model.on_outcome(MessageId(8), &dropped).unwrap();
        assert_eq!(model.check_settled().unwrap_err().0, Rule::AtLeastOnce);
    }
}
