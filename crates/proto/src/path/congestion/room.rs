//! How much may be under way: the window, or what a session that its application limits may have in any case.

use core::time::Duration;

use super::waits::{THIN, Waits};
use super::{Congestion, INITIAL, ONE};

impl Congestion {
    /// Bytes that may be under way.
    pub(crate) fn window(&self) -> u64 {
        if self.is_silent() {
            // Room that is being made is of no use to others then.
            return self.window as u64;
        }
        let window = self.rivalry.drained();
        let window = window.map_or(self.window, |drained| drained.max(ONE));
        let mut window = self.or_thin(window);
        if self.may_have_least() {
            window += self.demand.given_back();
        }
        window as u64
    }

    /// So many bytes, or what a thin session may have under way in any case, or a live stream that something has held up: a window that a jitter closes sends so
    /// little that nothing ever tells otherwise, and all of the stream was late from there on.
    fn or_thin(&self, window: f64) -> f64 {
        if self.is_thin() {
            window.max(self.least_when_thin())
        } else if self.demand.waits == Waits::Live && self.may_have_least() {
            window.max(self.carried_without_queue(Duration::ZERO).min(THIN))
        } else {
            window
        }
    }

    /// Whether nobody else fills the queue, no room is made, and the path is known.
    fn may_have_least(&self) -> bool {
        !self.rivalry.is_on() && self.rivalry.drained().is_none() && self.delays.is_known()
    }

    /// What has been sent lately and seen arrive, over a round trip as long as a path's own delay makes it, and so much longer.
    fn carried_without_queue(&self, longer: Duration) -> f64 {
        let spans = self.longest_without_queue() + longer;
        self.carried.rate_due() * spans.as_secs_f64()
    }

    /// What has to be under way for the window to be filled. (It was once the window by itself: a thin session that had more under way than that
    /// let it fall to nothing with the path's delay, and was held back for seconds when a gap left a backlog.)
    pub(super) fn filled_from(&self) -> f64 {
        self.or_thin(self.window)
    }

    /// What a session may always have under way while its application limits it: ten packets, and, unless others fill the queue or room is
    /// made, what it has sent lately and seen arrive, over a round trip as long as a path's own delay makes it. The application's bursts
    /// and a delay that wanders would else be taken for a queue. What is needed may take the present round trip, whatever makes it as long, up to
    /// [`THIN`]: so little is no download, and redundancy has to wait meanwhile.
    fn least_when_thin(&self) -> f64 {
        let least = self.least_with_redundancy();
        if self.demand.waits == Waits::Nothing || !self.may_have_least() {
            return least;
        }
        let stands = self.carried.rate_due() * self.delays.standing_us() / 1e6;
        least.max(stands.min(THIN))
    }

    /// The same for redundancy.
    fn least_with_redundancy(&self) -> f64 {
        if self.may_have_least() {
            let least = self.carried_without_queue(self.gap.allowance());
            least.max(INITIAL)
        } else {
            INITIAL
        }
    }

    pub(crate) fn may_send(&self, bytes: usize) -> bool {
        let before = if self.is_silent() {
            self.silence.before()
        } else {
            0
        };
        self.in_flight.saturating_sub(before) + bytes as u64 <= self.window()
    }

    /// Whether there is room for a packet of what is needed and not for redundancy. (As long as something late waited behind it redundancy took that room, and with it kept
    /// the queue standing for which there was room, for seconds.)
    pub(crate) fn has_room_for_needed_only(&self, bytes: usize) -> bool {
        let window = || self.window.max(self.least_with_redundancy()) as u64;
        self.demand.waits == Waits::Little
            && !self.is_silent()
            && self.in_flight + bytes as u64 > window()
    }
}
