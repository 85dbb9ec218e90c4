//! Large messages are put together from their pieces, in one buffer each.

use punctual_proto::StreamId;

use crate::{Message, Piece};

/// The large messages of one session that have begun to arrive. Their number is bounded by the protocol.
#[derive(Debug, Default)]
pub(crate) struct Assemblies {
    running: Vec<Assembly>,
    /// Bytes of them that are here.
    bytes: usize,
}

#[derive(Debug)]
struct Assembly {
    stream: StreamId,
    message: u64,
    message_len: usize,
    data: Vec<u8>,
}

/// What a piece has led to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Assembled {
    /// More is to come.
    Going,
    /// The last one was there.
    Whole(Message),
    /// The session takes no message of so many bytes, or not together with the others.
    TooLarge {
        /// Its bytes.
        message_len: usize,
    },
}

/// A piece that is to be added.
struct Part<'a> {
    stream: StreamId,
    message: u64,
    offset: usize,
    message_len: usize,
    data: &'a [u8],
}

impl Assembly {
    /// The buffer grows with what has come: a peer's word for a length reserves nothing. It is never longer than the message.
    fn add(&mut self, data: &[u8]) {
        let len = self.data.len() + data.len();
        if len > self.data.capacity() {
            let capacity = (2 * len).min(self.message_len).max(len);
            self.data.reserve_exact(capacity - self.data.len());
        }
        self.data.extend_from_slice(data);
    }
}

impl Assemblies {
    /// Bytes of them that are here.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes in what has come, and hands the buffer that it came in back. All messages together hold at most `bytes_max` bytes.
    pub(crate) fn take(&mut self, piece: Piece, bytes_max: usize) -> (Assembled, Vec<u8>) {
        match piece {
            Piece::Data {
                stream,
                message,
                offset,
                message_len,
                data,
            } => {
                let part = Part {
                    stream,
                    message,
                    offset,
                    message_len,
                    data: &data,
                };
                (self.push(&part, bytes_max), data)
            }
            Piece::Aborted { message, .. } => {
                self.abort(message);
                (Assembled::Going, Vec::new())
            }
        }
    }

    fn push(&mut self, part: &Part<'_>, bytes_max: usize) -> Assembled {
        let too_large = Assembled::TooLarge {
            message_len: part.message_len,
        };
        if part.message_len > bytes_max || self.bytes + part.data.len() > bytes_max {
            return too_large;
        }
        if part.offset == 0 {
            self.running.push(Assembly {
                stream: part.stream,
                message: part.message,
                message_len: part.message_len,
                data: Vec::new(),
            });
        }
        let is_it = |it: &Assembly| it.message == part.message;
        let Some(at) = self.running.iter().position(is_it) else {
            return Assembled::Going;
        };
        self.bytes += part.data.len();
        let assembly = &mut self.running[at];
        assembly.add(part.data);
        if assembly.data.len() < assembly.message_len {
            return Assembled::Going;
        }
        let Assembly { stream, data, .. } = self.remove(at);
        Assembled::Whole(Message { stream, data })
    }

    /// No more of it follows.
    fn abort(&mut self, message: u64) {
        if let Some(at) = self.running.iter().position(|it| it.message == message) {
            self.remove(at);
        }
    }

    fn remove(&mut self, at: usize) -> Assembly {
        let assembly = self.running.swap_remove(at);
        self.bytes -= assembly.data.len();
        if self.running.is_empty() {
            self.running = Vec::new();
        }
        assembly
    }
}

/// What the peer reads when a message is too large for this side.
pub(crate) fn refusal(message_len: usize, bytes_max: usize) -> String {
    format!(
        "a message of {message_len} bytes is more than this side puts together ({bytes_max} bytes at once): \
         send less, or raise Receive::Whole there"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(
        to: &mut Assemblies,
        message: u64,
        len: usize,
        offset: usize,
        data: &[u8],
    ) -> Assembled {
        let part = Part {
            stream: StreamId(message as u16),
            message,
            offset,
            message_len: len,
            data,
        };
        to.push(&part, 10)
    }

    #[test]
    fn messages_that_come_at_the_same_time_are_kept_apart() {
        let mut all = Assemblies::default();
        assert_eq!(push(&mut all, 1, 4, 0, b"ab"), Assembled::Going);
        assert_eq!(push(&mut all, 2, 6, 0, b"ABC"), Assembled::Going);
        let Assembled::Whole(first) = push(&mut all, 1, 4, 2, b"cd") else {
            panic!("it is whole");
        };
        assert_eq!((first.stream, &*first), (StreamId(1), &b"abcd"[..]));
        // One buffer, of the size that it needed.
        assert_eq!(first.data.capacity(), 4);
        all.abort(2);
        assert_eq!(push(&mut all, 2, 6, 3, b"DEF"), Assembled::Going);
        assert_eq!((all.bytes, all.running.len()), (0, 0));
    }

    #[test]
    fn what_is_held_is_bounded() {
        let mut all = Assemblies::default();
        assert_eq!(
            push(&mut all, 1, 11, 0, b"a"),
            Assembled::TooLarge { message_len: 11 }
        );
        // Announced together they are too large; by what is here they are not, until it is too much.
        assert_eq!(push(&mut all, 1, 8, 0, b"abcdef"), Assembled::Going);
        assert_eq!(push(&mut all, 2, 8, 0, b"ABCD"), Assembled::Going);
        let more = push(&mut all, 2, 8, 4, b"E");
        assert_eq!(more, Assembled::TooLarge { message_len: 8 });
        all.abort(1);
        assert!(matches!(
            push(&mut all, 2, 8, 4, b"EFGH"),
            Assembled::Whole(_)
        ));
        assert_eq!(all.bytes, 0);
    }

    /// A regression: one byte of a message that was said to have 64 MiB had them reserved, for each session.
    #[test]
    fn a_word_for_a_length_reserves_nothing() {
        const MIB: usize = 1 << 20;
        let mut all = Assemblies::default();
        let mut part = Part {
            stream: StreamId(0),
            message: 0,
            offset: 0,
            message_len: 64 * MIB,
            data: &[1; 1000],
        };
        assert_eq!(all.push(&part, 64 * MIB), Assembled::Going);
        assert!(all.running[0].data.capacity() <= 2000);
        // And never more than twice what is there, nor than the message has.
        while part.offset < MIB {
            part.offset += 1000;
            all.push(&part, 64 * MIB);
            let data = &all.running[0].data;
            assert!(data.capacity() <= 2 * data.len());
        }
    }
}
