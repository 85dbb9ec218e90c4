//! The ACK frame: which packets have arrived (ranges, so that a lost acknowledgement is repaired by the next), and when.

use super::DecodeError;
use super::bytes::{Reader, Writer};
use crate::limits::{ACK_RANGES_MAX, REPLAY_WINDOW};

/// Up to [`ACK_RANGES_MAX`] runs of packet numbers, newest first, each `first..=last`; all among the [`REPLAY_WINDOW`] numbers up to the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRanges {
    largest: u64,
    /// The first and the last of each run, by how far they are below the largest.
    runs: [(u16, u16); ACK_RANGES_MAX],
    len: usize,
}

impl Default for AckRanges {
    fn default() -> Self {
        Self {
            largest: 0,
            runs: [(0, 0); ACK_RANGES_MAX],
            len: 0,
        }
    }
}

impl AckRanges {
    /// Adds an older run; `false` when there is no room for it, or it is too old.
    pub const fn push(&mut self, first: u64, last: u64) -> bool {
        if self.len == 0 {
            self.largest = last;
        }
        let below = self.largest.saturating_sub(first);
        if self.len == ACK_RANGES_MAX || below >= REPLAY_WINDOW {
            return false;
        }
        self.runs[self.len] = (below as u16, self.largest.saturating_sub(last) as u16);
        self.len += 1;
        true
    }

    /// The runs, newest first.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + ExactSizeIterator {
        let runs = self.runs[..self.len].iter();
        runs.map(|run| {
            (
                self.largest - u64::from(run.0),
                self.largest - u64::from(run.1),
            )
        })
    }

    /// The largest number acknowledged.
    #[must_use]
    pub const fn largest(&self) -> Option<u64> {
        if self.len == 0 {
            None
        } else {
            Some(self.largest)
        }
    }
}

/// Beside the number of further runs.
const KEPT: u8 = 0x80;
const LOOKS: u8 = 0x40;

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// What has arrived. Truncated numbers are already expanded; never empty.
    pub ranges: AckRanges,
    /// When the largest one arrived: the lowest 32 bits of the receiver's clock in microseconds.
    pub received_at: u32,
    /// Time between that arrival and the sending of this frame, in microseconds.
    pub delay_us: u32,
    /// It did not leave as soon as the first packet that it is the first to name had come.
    pub is_kept: bool,
    /// From one look of its receiver at the network to the next, in microseconds, where a loop looks once a frame; 0 where whatever comes is seen at once.
    pub frame_us: u32,
    /// Packets that arrived with the ECN mark CE, in all; sent only once there was one.
    pub ce_count: u64,
}

impl Ack {
    /// Writes the frame, its type byte included.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        let mut runs = self.ranges.runs();
        let Some(newest) = runs.next() else {
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
        let kept = if self.is_kept { KEPT } else { 0 };
        let looks = if self.frame_us > 0 { LOOKS } else { 0 };
        writer.u8(runs.len() as u8 | kept | looks);
        writer.varint(newest.1 - newest.0);
        let mut floor = newest.0;
        for run in runs {
            // The gap to the run above is at least one missing number, and so is sent less one; likewise the length.
            writer.varint(floor - run.1 - 2);
            writer.varint(run.1 - run.0);
            floor = run.0;
        }
        if self.frame_us > 0 {
            writer.varint(u64::from(self.frame_us));
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
        let more = reader.u8()?;
        let older = usize::from(more & !(KEPT | LOOKS));
        let mut ranges = AckRanges::default();
        let mut first = largest.checked_sub(reader.varint()?).ok_or(invalid)?;
        if !ranges.push(first, largest) {
            return Err(invalid);
        }
        for _ in 0..older {
            let gap = reader.varint()?;
            let length = reader.varint()?;
            let last = first
                .checked_sub(gap)
                .and_then(|above| above.checked_sub(2))
                .ok_or(invalid)?;
            first = last.checked_sub(length).ok_or(invalid)?;
            if !ranges.push(first, last) {
                return Err(invalid);
            }
        }
        let frame_us = if more & LOOKS != 0 {
            let frame = u32::try_from(reader.varint()?).ok().filter(|us| *us > 0);
            frame.ok_or(DecodeError::Invalid { field: "ack frame" })?
        } else {
            0
        };
        let ce_count = if ecn { reader.varint()? } else { 0 };
        Ok(Self {
            ranges,
            received_at,
            delay_us,
            is_kept: more & KEPT != 0,
            frame_us,
            ce_count,
        })
    }
}
