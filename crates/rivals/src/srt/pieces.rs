//! Messages in datagrams: cut at the sender, put together at the receiver.
//!
//! Each piece begins with the message's number, its own place in the message and how many there are. SRT hands pieces on in order
//! and none twice, so that a piece that does not follow the one before it is one of a message that has lost another.

use punctual_lab::arm::Refused;

use crate::MESSAGE_BYTES_MAX;

/// The largest message of SRT in live mode, in bytes: what its documentation advises and the program's default.
const DATAGRAM_BYTES_MAX: usize = 1316;
/// Number of the message (4), place (2), how many (2).
const HEADER_BYTES: usize = 8;

/// How messages are cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// Bytes of a message in a piece, at most.
    piece_bytes: usize,
    /// Pieces of a message of the usual size.
    pub(super) pieces: usize,
}

impl Cut {
    /// Into as few pieces as such messages need, of the same size: what FEC sends is as long as the longest.
    pub(super) fn new(message_bytes: usize) -> Self {
        let message_bytes = message_bytes.max(1);
        let pieces = message_bytes.div_ceil(DATAGRAM_BYTES_MAX - HEADER_BYTES);
        Self {
            piece_bytes: message_bytes.div_ceil(pieces),
            pieces,
        }
    }

    /// The longest datagram.
    pub(super) const fn datagram_bytes(&self) -> usize {
        self.piece_bytes + HEADER_BYTES
    }

    /// Cuts the message of that number.
    ///
    /// # Errors
    /// When it is too long.
    pub(super) fn cut(
        &self,
        number: u32,
        message: &[u8],
        mut send: impl FnMut(&[u8]),
    ) -> Result<(), Refused> {
        let count = message.len().div_ceil(self.piece_bytes).max(1);
        let count = u16::try_from(count).map_err(|_| Refused)?;
        let mut datagram = Vec::with_capacity(self.datagram_bytes());
        for place in 0..count {
            let from = usize::from(place) * self.piece_bytes;
            let until = message.len().min(from + self.piece_bytes);
            datagram.clear();
            datagram.extend(number.to_be_bytes());
            datagram.extend(place.to_be_bytes());
            datagram.extend(count.to_be_bytes());
            datagram.extend(&message[from..until]);
            send(&datagram);
        }
        Ok(())
    }
}

/// The message of a flow that is not whole yet.
#[derive(Debug, Default)]
pub(super) struct Partial {
    number: u32,
    /// The place of the piece that is to come.
    next: u16,
    content: Vec<u8>,
}

impl Partial {
    /// Takes a datagram; the message when that makes it whole.
    pub(super) fn take(&mut self, datagram: &[u8]) -> Option<&[u8]> {
        let (&[n0, n1, n2, n3, p0, p1, c0, c1], piece) = datagram.split_first_chunk()?;
        let number = u32::from_be_bytes([n0, n1, n2, n3]);
        let place = u16::from_be_bytes([p0, p1]);
        let count = u16::from_be_bytes([c0, c1]);
        if place == 0 {
            self.number = number;
            self.next = 0;
            self.content.clear();
        }
        let is_next = (number, place) == (self.number, self.next) && place < count;
        if !is_next || self.content.len() + piece.len() > MESSAGE_BYTES_MAX {
            return None;
        }
        self.content.extend(piece);
        self.next = place + 1;
        (self.next == count).then_some(&self.content[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagrams(cut: Cut, number: u32, message: &[u8]) -> Vec<Vec<u8>> {
        let mut datagrams = Vec::new();
        let sent = cut.cut(number, message, |datagram| {
            datagrams.push(datagram.to_vec());
        });
        sent.unwrap();
        datagrams
    }

    #[test]
    fn messages_are_cut_evenly_and_become_whole_again() {
        let message: Vec<u8> = (0..5000u32).map(|at| at as u8).collect();
        let cut = Cut::new(2048);
        assert_eq!((cut.pieces, cut.datagram_bytes()), (2, 1032));
        assert_eq!(Cut::new(1308).datagram_bytes(), DATAGRAM_BYTES_MAX);
        assert_eq!(Cut::new(1309).pieces, 2);
        let mut partial = Partial::default();
        for (number, length) in [0, 1, 1024, 1025, 2048, 5000].into_iter().enumerate() {
            let message = &message[..length];
            let mut datagrams = datagrams(cut, number as u32, message);
            let last = datagrams.pop().unwrap();
            for datagram in datagrams {
                assert!(datagram.len() <= cut.datagram_bytes());
                assert_eq!(partial.take(&datagram), None);
            }
            assert_eq!(partial.take(&last), Some(message));
            // Not twice.
            if length > cut.piece_bytes {
                assert_eq!(partial.take(&last), None);
            }
        }
    }

    #[test]
    fn a_message_without_one_of_its_pieces_is_none() {
        let cut = Cut::new(30);
        let (first, second) = (datagrams(cut, 1, &[1; 90]), datagrams(cut, 2, &[2; 90]));
        for lost in 0..3 {
            let mut partial = Partial::default();
            let kept = (0..3).filter(|&place| place != lost);
            for place in kept {
                assert_eq!(partial.take(&first[place]), None, "{place} without {lost}");
            }
            assert_eq!(partial.take(&second[0]), None);
            assert_eq!(partial.take(&second[1]), None);
            assert_eq!(partial.take(&second[2]), Some(&[2; 90][..]));
        }
    }

    #[test]
    fn nothing_grows_and_nothing_panics_whatever_comes() {
        let mut partial = Partial::default();
        assert_eq!(partial.take(&[]), None);
        assert_eq!(partial.take(&[0; 7]), None);
        // The first of none.
        assert_eq!(partial.take(&[0; 8]), None);
        let piece = [0; 65_000];
        let header = |place: u16| [&[0; 4][..], &place.to_be_bytes(), &[0xff; 2], &piece].concat();
        for place in 0..5 {
            assert_eq!(partial.take(&header(place)), None);
            assert!(partial.content.len() <= MESSAGE_BYTES_MAX);
        }
        let long = vec![0; 1 << 20];
        assert!(Cut::new(1).cut(0, &long, |_| ()).is_err());
    }
}
