//! Large messages, as they come piece by piece.

use std::collections::BTreeMap;

use punctual_proto::limits;

use super::{Model, Rule, Verdict, broken, read_number};

#[derive(Debug)]
enum Piece {
    /// Its bytes so far, its length, and its number once that has come.
    Going(Vec<u8>, usize, Option<u64>),
    Complete,
    Aborted,
}

/// Messages that came in pieces, by the receiver's name for them.
#[derive(Debug, Default)]
pub(super) struct Pieces(BTreeMap<u64, Piece>);

impl Pieces {
    pub(super) fn check_settled(&self) -> Verdict {
        let going = self
            .0
            .iter()
            .find(|(_, piece)| matches!(piece, Piece::Going(..)));
        match going {
            Some((message, Piece::Going(bytes, len, number))) => broken(
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

/// A piece as it was handed on.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// The receiver's name for the message.
    pub message: u64,
    /// Where it belongs.
    pub offset: usize,
    /// Bytes of the message.
    pub message_len: usize,
    /// Its bytes.
    pub data: &'a [u8],
}

impl Model {
    /// A piece was handed on.
    ///
    /// # Errors
    /// When it does not follow the one before, or its message must not come.
    pub fn on_chunk(&mut self, stream: u16, chunk: &Chunk<'_>) -> Verdict {
        let Chunk {
            message,
            offset,
            message_len,
            data,
        } = *chunk;
        if message_len <= limits::WHOLE_MAX {
            return broken(
                Rule::Pieces,
                format!("{message} has {message_len} bytes, and comes in pieces"),
            );
        }
        let piece =
            self.pieces
                .0
                .entry(message)
                .or_insert(Piece::Going(Vec::new(), message_len, None));
        let Piece::Going(bytes, len, number) = piece else {
            return broken(
                Rule::Pieces,
                format!("{message} goes on, and was {piece:?}"),
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
        match self.pieces.0.insert(message, Piece::Complete) {
            Some(Piece::Going(bytes, _, Some(number))) => {
                self.check_genuine(number, stream, &bytes)?;
                self.on_whole(number)
            }
            _ => Ok(()),
        }
    }

    /// No more pieces of a message follow.
    ///
    /// # Errors
    /// When none had come, or all had.
    pub fn on_aborted(&mut self, message: u64) -> Verdict {
        match self.pieces.0.insert(message, Piece::Aborted) {
            Some(Piece::Going(_, _, number)) => {
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
