//! When a game's loop looks at its network, and when it sends what it has made of it: whether acknowledgements can wait for that.

use std::time::Duration;

use punctual_proto::Instant;

/// Acknowledgements wait if that takes no longer than such a part of a frame. What comes waits half of one on average for being seen at all.
const WORK_PART: u32 = 4;

/// Of a loop that polls and flushes once a frame.
#[derive(Debug, Default)]
pub(crate) struct Rhythm {
    looked_at: Option<Instant>,
    /// From one look to the next, on average.
    frame: Duration,
    /// From a look to the flush after it: the longest lately.
    work: Duration,
    is_flushed: bool,
}

impl Rhythm {
    /// A frame begins: whether acknowledgements may wait for its end. Not if the one before had none.
    pub(crate) fn look(&mut self, now: Instant) -> bool {
        if let Some(last) = self.looked_at.replace(now) {
            let since = now.since(last);
            self.frame = match self.frame {
                Duration::ZERO => since,
                frame => (frame * 7 + since) / 8,
            };
        }
        std::mem::take(&mut self.is_flushed) && self.work * WORK_PART <= self.frame
    }

    /// It ends.
    pub(crate) fn flush(&mut self, now: Instant) {
        let Some(looked_at) = self.looked_at.filter(|_| !self.is_flushed) else {
            return;
        };
        self.is_flushed = true;
        self.work = now.since(looked_at).max(self.work / 16 * 15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of the last hundred of frames may keep acknowledgements, which last so long and flush (if they do) so long after their looks, in microseconds.
    fn kept(frame: u64, flushes_after: impl Fn(u64) -> Option<u64>) -> usize {
        let mut rhythm = Rhythm::default();
        let frames = (0..200).filter(|number| {
            let at = Instant::from_micros(1_000_000 + number * frame);
            let may = rhythm.look(at);
            if let Some(after) = flushes_after(*number) {
                rhythm.flush(at + Duration::from_micros(after));
            }
            may && *number >= 100
        });
        frames.count()
    }

    #[test]
    fn answers_wait_for_a_flush_that_comes_soon() {
        assert_eq!(kept(16_667, |_| Some(2_000)), 100);
        assert_eq!(kept(33_333, |_| Some(8_000)), 100);
        assert_eq!(kept(16_667, |_| Some(5_000)), 0, "too long");
        assert_eq!(kept(16_667, |_| None), 0, "never");
        let every_second = |number: u64| number.is_multiple_of(2).then_some(1_000);
        assert_eq!(kept(16_667, every_second), 50);
        let hitches = |number: u64| Some(if number == 150 { 9_000 } else { 1_000 });
        assert_eq!(kept(16_667, hitches), 88, "until it is forgotten");
    }
}
