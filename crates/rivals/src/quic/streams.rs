//! A unidirectional stream a message.

use std::collections::BTreeMap;

use punctual_lab::arm::Refused;
use quinn_proto::{Connection, Dir, Event, ReadError, StreamEvent, StreamId, VarInt};

use super::flow::Carrier;
use crate::MESSAGE_BYTES_MAX;

/// What has arrived of messages that are not whole yet: as many as streams may be open, each at most a message long.
#[derive(Default)]
pub(super) struct StreamCarrier {
    begun: BTreeMap<StreamId, Vec<u8>>,
}

impl StreamCarrier {
    fn read(&mut self, connection: &mut Connection, id: StreamId, arrived: &mut Vec<Vec<u8>>) {
        let message = self.begun.entry(id).or_default();
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            self.begun.remove(&id);
            return;
        };
        let ended = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) if message.len() + chunk.bytes.len() <= MESSAGE_BYTES_MAX => {
                    message.extend_from_slice(&chunk.bytes);
                }
                Ok(Some(_)) => break Some(false),
                Ok(None) => break Some(true),
                Err(ReadError::Blocked) => break None,
                Err(ReadError::Reset(_)) => break Some(false),
            }
        };
        // The caller asks for datagrams after every event.
        _ = chunks.finalize();
        let Some(is_whole) = ended else {
            return;
        };
        let message = self.begun.remove(&id).unwrap_or_default();
        if is_whole {
            arrived.push(message);
        } else {
            // Says "closed" when the sender has reset it, which is as good.
            _ = stream.stop(VarInt::from_u32(0));
        }
    }
}

impl Carrier for StreamCarrier {
    fn send(&mut self, connection: &mut Connection, message: &[u8]) -> Result<(), Refused> {
        let id = connection.streams().open(Dir::Uni).ok_or(Refused)?;
        let mut stream = connection.send_stream(id);
        if stream.write(message) == Ok(message.len()) && stream.finish().is_ok() {
            return Ok(());
        }
        // The window of unacknowledged bytes is full: better nothing than a part.
        _ = stream.reset(VarInt::from_u32(0));
        Err(Refused)
    }

    fn handle_event(
        &mut self,
        connection: &mut Connection,
        event: &Event,
        arrived: &mut Vec<Vec<u8>>,
    ) {
        match *event {
            Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                while let Some(id) = connection.streams().accept(Dir::Uni) {
                    self.read(connection, id, arrived);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(connection, id, arrived),
            _ => {}
        }
    }
}
