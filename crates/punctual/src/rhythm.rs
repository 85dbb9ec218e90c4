//! When a game's loop sends what it has made of a look at its network: acknowledgements can wait for that.

use std::time::Duration;

use punctual_proto::Instant;

/// Of a loop that polls and flushes once a frame.
#[derive(Debug, Default)]
pub(crate) struct Rhythm {
    looked_at: Option<Instant>,
    /// From a look to the flush after it: the longest lately.
    work: Duration,
    is_flushed: bool,
}

impl Rhythm {
    /// A frame begins: in what time its flush is to be expected. `None` if the one before had none.
    pub(crate) fn look(&mut self, now: Instant) -> Option<Duration> {
        self.looked_at = Some(now);
        std::mem::take(&mut self.is_flushed).then_some(self.work)
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

    #[test]
    fn a_flush_is_expected_where_there_was_one_and_no_sooner_than_it_was_lately() {
        let mut rhythm = Rhythm::default();
        let mut frame = |number: u64, flushes_after_us: Option<u64>| {
            let at = Instant::from_micros(1_000_000 + number * 16_667);
            let expected = rhythm.look(at);
            if let Some(after) = flushes_after_us {
                rhythm.flush(at + Duration::from_micros(after));
            }
            expected.map(|within| within.as_micros())
        };
        assert_eq!(frame(0, None), None);
        assert_eq!(frame(1, Some(2_000)), None, "the one before had none");
        assert_eq!(frame(2, Some(2_000)), Some(2_000));
        assert_eq!(frame(3, Some(9_000)), Some(2_000));
        assert_eq!(frame(4, Some(1_000)), Some(9_000), "a hitch");
        assert!((4..80).all(|number| frame(number + 1, Some(1_000)) > Some(999)));
        assert_eq!(frame(81, None), Some(1_000), "is forgotten");
        assert_eq!(frame(82, None), None);
    }
}
