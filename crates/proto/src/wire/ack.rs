//! The ACK frame: which packets have arrived (ranges, so that a lost acknowledgement is repaired by the next), and when.

use super::DecodeError;
use super::bytes::{Reader, Writer};
use crate::limits::ACK_RANGES_MAX;

/// Up to [`ACK_RANGES_MAX`] runs of packet numbers, newest first, each `first..=last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRanges {
    runs: [(u64, u64); ACK_RANGES_MAX],
    len: usize,
}

impl Default for AckRanges {
    fn default() -> Self {
        Self {
            runs: [(0, 0); ACK_RANGES_MAX],
            len: 0,
        }
    }
}

impl AckRanges {
    /// Adds an older run; `false` when there is no room for it.
    pub const fn push(&mut self, first: u64, last: u64) -> bool {
        if self.len == ACK_RANGES_MAX {
            return false;
        }
        self.runs[self.len] = (first, last);
        self.len += 1;
        true
    }

    /// The runs, newest first.
    #[must_use]
    pub fn runs(&self) -> &[(u64, u64)] {
        &self.runs[..self.len]
    }

    /// The largest number acknowledged.
    #[must_use]
    pub fn largest(&self) -> Option<u64> {
        self.runs().first().map(|run| run.1)
    }
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// What has arrived. Truncated numbers are already expanded; never empty.
    pub ranges: AckRanges,
    /// When the largest one arrived: the lowest 32 bits of the receiver's clock in microseconds.
    pub received_at: u32,
    /// Time between that arrival and the sending of this frame, in microseconds.
    pub delay_us: u32,
    /// Packets that arrived with the ECN mark CE, in all; sent only once there was one.
    pub ce_count: u64,
}

impl Ack {
    /// Writes the frame, its type byte included.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        let [newest, older @ ..] = self.ranges.runs() else {
            return;
        };
        writer.u8(if self.ce_count > 0 {
            super::frame::ACK_ECN
        } else {
            super::frame::ACK
        });
        writer.u32(newest.1 as u32);
        writer.u32(self.received_at);
        writer.varint(u64::from(self.delay_us));
        writer.u8(older.len() as u8);
        writer.varint(newest.1 - newest.0);
        let mut floor = newest.0;
        for run in older {
            // The gap to the run above is at least one missing number, and so is sent less one; likewise the length.
            writer.varint(floor - run.1 - 2);
            writer.varint(run.1 - run.0);
            floor = run.0;
        }
        if self.ce_count > 0 {
            writer.varint(self.ce_count);
        }
    }

    /// Reads the frame after its type byte. `next_number` is the number that the reader of this frame would send next:
    /// acknowledgements of anything not yet sent are invalid.
    pub(super) fn decode(
        reader: &mut Reader<'_>,
        next_number: u64,
        ecn: bool,
    ) -> Result<Self, DecodeError> {
        let invalid = DecodeError::Invalid { field: "ack range" };
        let largest = super::expand(u64::from(reader.u32()?), 32, next_number);
        if largest >= next_number {
            return Err(DecodeError::Invalid {
                field: "ack largest",
            });
        }
        let received_at = reader.u32()?;
        let delay_us = u32::try_from(reader.varint()?)
            .map_err(|_| DecodeError::Invalid { field: "ack delay" })?;
        let older = usize::from(reader.u8()?);
        if older >= ACK_RANGES_MAX {
            return Err(DecodeError::Invalid {
                field: "ack range count",
            });
        }
        let mut ranges = AckRanges::default();
        let mut first = largest.checked_sub(reader.varint()?).ok_or(invalid)?;
        ranges.push(first, largest);
        for _ in 0..older {
            let gap = reader.varint()?;
            let length = reader.varint()?;
            let last = first
                .checked_sub(gap)
                .and_then(|above| above.checked_sub(2))
                .ok_or(invalid)?;
            first = last.checked_sub(length).ok_or(invalid)?;
            ranges.push(first, last);
        }
        let ce_count = if ecn { reader.varint()? } else { 0 };
        Ok(Self {
            ranges,
            received_at,
            delay_us,
            ce_count,
        })
    }
}
