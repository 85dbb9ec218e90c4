//! What the two sides tell each other inside the Noise messages.

use core::time::Duration;

use crate::limits::{MTU_MAX, MTU_MIN};
use crate::wire::{DecodeError, Reader, Writer};

/// One side's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// Largest UDP payload that this side receives, in bytes.
    pub(crate) datagram_max: u16,
    /// How long this side waits for a packet before it gives the session up.
    pub(crate) idle_timeout: Duration,
}

impl Parameters {
    pub(crate) fn encode(&self, writer: &mut Writer<'_>) {
        writer.u16(self.datagram_max);
        writer.varint(self.idle_timeout.as_millis().min(1 << 40) as u64);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let datagram_max = reader.u16()?;
        if datagram_max < MTU_MIN {
            return Err(DecodeError::Invalid {
                field: "datagram size",
            });
        }
        let idle_timeout = Duration::from_millis(reader.varint()?);
        Ok(Self {
            datagram_max: datagram_max.min(MTU_MAX),
            idle_timeout,
        })
    }
}
