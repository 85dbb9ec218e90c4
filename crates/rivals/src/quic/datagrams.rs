//! Messages in datagrams, which are not repaired: a message of which one is lost never arrives.
//!
//! Each begins with the message's number, its own place in the message and how many there are. QUIC itself hands on no datagram
//! twice.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use punctual_lab::arm::Refused;
use quinn_proto::{Connection, Event};

use super::flow::Carrier;

/// Number of the message (4), place (2), how many (2).
const HEADER_BYTES: usize = 8;
/// Messages that are waited for at a time; the oldest is given up for a new one.
const PARTIAL_MAX: usize = 256;

#[derive(Default)]
pub(super) struct DatagramCarrier {
    next_number: u32,
    partial: BTreeMap<u32, Partial>,
}

struct Partial {
    pieces: Vec<Option<Bytes>>,
    missing: usize,
}

impl DatagramCarrier {
    fn take(&mut self, mut datagram: Bytes, arrived: &mut Vec<Vec<u8>>) {
        let Some(header) = datagram.first_chunk::<HEADER_BYTES>() else {
            return;
        };
        let [n0, n1, n2, n3, p0, p1, c0, c1] = *header;
        let number = u32::from_be_bytes([n0, n1, n2, n3]);
        let place = usize::from(u16::from_be_bytes([p0, p1]));
        let count = usize::from(u16::from_be_bytes([c0, c1]));
        let piece = datagram.split_off(HEADER_BYTES);
        if count == 1 {
            arrived.push(piece.to_vec());
            return;
        }
        let partial = self.partial.entry(number).or_insert_with(|| Partial {
            pieces: vec![None; count],
            missing: count,
        });
        if let Some(empty @ None) = partial.pieces.get_mut(place) {
            *empty = Some(piece);
            partial.missing -= 1;
        }
        if partial.missing == 0 {
            let whole = self.partial.remove(&number);
            let pieces = whole.into_iter().flat_map(|partial| partial.pieces);
            arrived.push(pieces.flatten().flatten().collect());
        }
        if self.partial.len() > PARTIAL_MAX {
            self.partial.pop_first();
        }
    }
}

impl Carrier for DatagramCarrier {
    fn send(&mut self, connection: &mut Connection, message: &[u8]) -> Result<(), Refused> {
        let mut datagrams = connection.datagrams();
        let room = datagrams.max_size().ok_or(Refused)?;
        let room = room.checked_sub(HEADER_BYTES).filter(|&room| room > 0);
        let piece_bytes = room.ok_or(Refused)?;
        let count = message.len().div_ceil(piece_bytes).max(1);
        let count_sent = u16::try_from(count).map_err(|_| Refused)?;
        // All or nothing. What quinn keeps with a datagram counts too, less than 64 bytes each.
        let needed = message.len() + count * (HEADER_BYTES + 64);
        if datagrams.send_buffer_space() < needed {
            return Err(Refused);
        }
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        for place in 0..count_sent {
            let from = usize::from(place) * piece_bytes;
            let piece = &message[from..message.len().min(from + piece_bytes)];
            let mut datagram = BytesMut::with_capacity(HEADER_BYTES + piece.len());
            datagram.put_u32(number);
            datagram.put_u16(place);
            datagram.put_u16(count_sent);
            datagram.put_slice(piece);
            datagrams
                .send(datagram.freeze(), false)
                .map_err(|_| Refused)?;
        }
        Ok(())
    }

    fn handle_event(
        &mut self,
        connection: &mut Connection,
        event: &Event,
        arrived: &mut Vec<Vec<u8>>,
    ) {
        if matches!(event, Event::DatagramReceived) {
            while let Some(datagram) = connection.datagrams().recv() {
                self.take(datagram, arrived);
            }
        }
    }
}
