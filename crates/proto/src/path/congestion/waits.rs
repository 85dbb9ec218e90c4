//! Is it the application that limits a session, or the window? What waits to be sent says so.

use core::time::Duration;

use super::INITIAL;

/// A session for which no more bytes wait than this is limited by its application: a game's, behind what an outage left. A download has more.
pub(super) const THIN: f64 = 2.0 * INITIAL;
/// The same of what has or had a deadline, in seconds at the most that has come back lately, and beyond what a gap has left. A live stream makes
/// what it makes, and a radio's jump of some tens of milliseconds leaves more than twenty packets of a fast one waiting.
const THIN_LIVE: f64 = 0.05;

/// What waits to be sent, redundancy aside.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Waits {
    Nothing,
    /// The application limits the session, which is thin, as while nothing waits.
    Little,
    /// What a live stream makes, and something holds up.
    Live,
    Download,
}

impl Waits {
    /// So many bytes wait, `of_live` of them of messages with a deadline; `rate_max` bytes a second have come back lately, and a gap that lasted `gap` has left what was made in it.
    pub(super) fn of(bytes: u64, of_live: u64, rate_max: f64, gap: Duration) -> Self {
        let live_max = THIN.max(rate_max * (THIN_LIVE + gap.as_secs_f64()));
        if bytes == 0 {
            Self::Nothing
        } else if bytes.saturating_sub(of_live) as f64 > THIN {
            Self::Download
        } else if bytes as f64 > live_max {
            Self::Live
        } else {
            Self::Little
        }
    }

    pub(super) const fn is_thin(self) -> bool {
        matches!(self, Self::Nothing | Self::Little)
    }
}
