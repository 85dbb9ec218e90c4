//! Large messages, as they come piece by piece.

use std::collections::BTreeMap;

use punctual_proto::{Piece, limits};

use super::{Model, Rule, Verdict, broken, read_number};

#[derive(Debug)]
enum Course {
    /// Its bytes so far, its length, and its number once that has come.
    Going(Vec<u8>, usize, Option<u64>),
    Complete,
    Aborted,
}

/// Messages that came in pieces, by the receiver's name for them.
#[derive(Debug, Default)]
pub(super) struct Pieces(BTreeMap<u64, Course>);

impl Pieces {
    pub(super) fn check_settled(&self) -> Verdict {
        let going = self
            .0
            .iter()
            .find(|(_, course)| matches!(course, Course::Going(..)));
        match going {
            Some((message, Course::Going(bytes, len, number))) => broken(
                Rule::Pieces,
                format!(
                    "{message} (message {number:?}) stays at {} of {len} bytes",
                    bytes.len()
                ),
            ),
            _ => Ok(()),
        }
    }
}

impl Model {
    /// A piece was handed on, or no more follow.
    ///
    /// # Errors
    /// When it does not follow the one before, or its message must not come.
    pub fn on_piece(&mut self, piece: &Piece) -> Verdict {
        let (stream, message, offset, message_len, data) = match piece {
            Piece::Data {
                stream,
                message,
                offset,
                message_len,
                data,
            } => (stream.0, *message, *offset, *message_len, data),
            Piece::Aborted { message, .. } => return self.on_aborted(*message),
        };
        if message_len <= limits::WHOLE_MAX {
            return broken(
                Rule::Pieces,
                format!("{message} has {message_len} bytes, and comes in pieces"),
            );
        }
        let course =
            self.pieces
                .0
                .entry(message)
                .or_insert(Course::Going(Vec::new(), message_len, None));
        let Course::Going(bytes, len, number) = course else {
            return broken(
                Rule::Pieces,
                format!("{message} goes on, and was {course:?}"),
            );
        };
        if *len != message_len || bytes.len() != offset || offset + data.len() > message_len {
            return broken(
                Rule::Pieces,
                format!(
                    "{message}: {offset} of {message_len} after {} of {len}",
                    bytes.len()
                ),
            );
        }
        bytes.extend_from_slice(data);
        let (known, is_complete) = (*number, bytes.len() == message_len);
        if known.is_none() {
            *number = read_number(bytes);
        }
        if let (None, Some(number)) = (known, *number) {
            let Some(entry) = self.messages.get(&number) else {
                return broken(Rule::Genuine, format!("message {number} was never sent"));
            };
            if entry.received != super::Received::Nothing {
                return broken(Rule::AtMostOnce, format!("message {number} began twice"));
            }
            self.on_begun(number)?;
        }
        if !is_complete {
            return Ok(());
        }
        match self.pieces.0.insert(message, Course::Complete) {
            Some(Course::Going(bytes, _, Some(number))) => {
                self.check_genuine(number, stream, &bytes)?;
                self.on_whole(number)
            }
            _ => Ok(()),
        }
    }

    /// No more pieces of a message follow: none having come, or all, would be wrong.
    fn on_aborted(&mut self, message: u64) -> Verdict {
        match self.pieces.0.insert(message, Course::Aborted) {
            Some(Course::Going(_, _, number)) => {
                if let Some(number) = number {
                    self.on_piece_aborted(number);
                }
                Ok(())
            }
            other => broken(
                Rule::Pieces,
                format!("{message} was aborted, and was {other:?}"),
            ),
        }
    }
}
