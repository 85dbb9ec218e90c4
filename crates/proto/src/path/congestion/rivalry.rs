//! Do others fill the queue? Copa's flows empty it every five round trips, so when it was not nearly empty for that long,
//! something else keeps it full (Copa, section 2.2).
//!
//! With three additions, for Copa's oscillation is not always that regular, and flows that compete with each other fill the queue
//! themselves and would do so for ever. Before a flow competes it makes room: it sends less than what the path carries
//! without a queue, for some round trips, and if the queue empties, nobody else is there. While it competes it does so
//! again from time to time. And when the least round trip was not seen for some seconds, it looks for it (as BBR does; thin sessions do not), since a
//! flow that came late, or all of them together after a while, would take a standing queue for a part of the path.
//!
//! Room before a competition that changes nothing was made in no queue: the path is longer than it was (`drain.rs`). And losses that a full queue does not
//! explain show that nobody is there (`overflow.rs`).
//!
//! It helps when all make room at once. So the flows of an endpoint do so when its clock shows a multiple of [`BEAT`], and others
//! join when they see the queue fall.

use core::time::Duration;

use super::PACKET;
use super::delays::Delays;
use super::drain::{Depth, Drain, FIRST, LATER, LOOK};
use super::overflow::Overflow;
use crate::time::{Instant, nanos};

/// Round trips without an empty queue after which room is made.
const PATIENCE: u32 = 5;
/// A queue below this share of the largest is as good as empty.
const EMPTY: f64 = 0.3;
/// A queue of so many packets at the window's own rate is as good as none.
const SLACK: f64 = 0.25;
/// When the sessions of an endpoint make room together.
const BEAT: Duration = Duration::from_secs(5);
/// How long after a beat a session still joins.
const BEAT_LENGTH: Duration = Duration::from_millis(300);
/// A window that is so many times as large as before competing ..
const GROWN: f64 = 2.0;
/// .. gets more than so many times as much, if others get less for it. Else room is made at once: perhaps the queue was ours, and of so few packets that no part of
/// one empties it. (Alone at 1 Mbit/s and 30 ms a download filled half a second of queue, until the next beat found that nobody was there.)
const GETS_MORE: f64 = 1.1;
/// How long a flow competes, at least, before it makes room.
const INTERVAL: Duration = Duration::from_millis(7500);
/// A queue below this share of its largest falls: others make room.
const FALLING: f64 = 0.75;
/// Cuts in one competition that show that it is one.
const CUTS: u8 = 3;
/// How long others are then taken to be there: what came back without them is remembered for as long.
const MET: Duration = Duration::from_secs(20);

/// A window, and what it gets.
#[derive(Clone, Copy)]
pub(super) struct Turnover {
    /// In bytes.
    pub(super) window: f64,
    /// Bytes a second that came back in the last period.
    pub(super) rate: f64,
    /// The most that came back within about ten seconds, in bytes a second.
    pub(super) rate_max: f64,
}

/// What a round trip has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Nothing new.
    Nothing,
    /// A competition, or the making of room, began or ended.
    Turn,
    /// The path is longer than it was, and what stood in its queue was none.
    LongerPath,
}

impl Seen {
    const fn turn(is_one: bool) -> Self {
        if is_one { Self::Turn } else { Self::Nothing }
    }
}

#[derive(Clone, Copy, Default)]
pub(super) struct Rivalry {
    is_on: bool,
    /// When the queue was last nearly empty.
    empty_at: Instant,
    /// When room was last made, or the competition began.
    drained_at: Instant,
    drain: Option<Drain>,
    overflow: Overflow,
    /// The window before room was made to see whether to compete, and what came back then: bytes, and bytes a second. No window has [grown](GROWN) from an
    /// infinite one: once in a competition is enough.
    before: (f32, f32),
    /// Room is made to see the least round trip.
    is_look: bool,
    /// Cuts in this competition, up to [`CUTS`], and when there were last so many.
    cuts: u8,
    met_at: Instant,
}

impl Rivalry {
    pub(super) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// The window while room is made.
    pub(super) fn drained(&self) -> Option<f64> {
        self.drain.map(|drain| drain.window())
    }

    /// Since when room is made.
    pub(super) fn drains_since(&self) -> Option<Instant> {
        self.drain.map(|_| self.drained_at)
    }

    /// The window was cut. Cuts while competing are the proof that a path's own noise does not give.
    pub(super) fn on_cut(&mut self, now: Instant) {
        self.cuts += u8::from(self.is_on && self.cuts < CUTS);
        if self.is_on && self.cuts == CUTS {
            self.met_at = now;
        }
    }

    /// Something was lost, and not with what was lost before.
    pub(super) fn on_loss(&mut self, now: Instant, delays: &Delays) {
        self.overflow.on_loss(now, delays);
    }

    /// Whether what is lost is a full queue's, whoever fills it.
    pub(super) fn is_queue_full(&self, now: Instant) -> bool {
        self.overflow.is_shown(now)
    }

    /// Something was lost while competing, and not with what was lost before. Whether it shows that nobody competes.
    pub(super) fn on_loss_to_rivals(&mut self, now: Instant, delays: &Delays) -> bool {
        let is_refuted = self.overflow.on_loss_to_rivals(now, delays);
        if is_refuted {
            self.end(now);
            self.met_at = Instant::ZERO;
        }
        is_refuted
    }

    /// Whether what seems to be others' queue was found to be none.
    pub(super) fn is_refuted(&self, now: Instant, delays: &Delays) -> bool {
        self.overflow.is_refuted(now, delays)
    }

    /// Whether others have been there lately.
    pub(super) fn was_met(&self, now: Instant) -> bool {
        self.met_at != Instant::ZERO && now.since(self.met_at) < MET
    }

    /// Whether the queue has been nearly empty since then. What is lost while it is not may be lost by others' doing, however little is sent here.
    pub(super) fn was_empty_since(&self, at: Instant) -> bool {
        self.empty_at >= at
    }

    /// A round trip was seen.
    ///
    /// A thin session has its share, and fills no queue. It makes no room to find out why the path is slow or whether it has become another (ten packets for
    /// three round trips left a live stream late for seconds where a satellite had handed over to a farther one), and what the path itself varies by is no
    /// rival's queue to it. (To a download it may be: what it takes for the path's own can be its rivals'.)
    pub(super) fn on_rtt(
        &mut self,
        now: Instant,
        full: Turnover,
        delays: &Delays,
        is_thin: bool,
    ) -> Seen {
        let range = delays.longest_queue_us();
        let slack_us = SLACK * delays.least_us() * PACKET / full.window;
        let varies_us = if is_thin {
            delays.clear_queue_us()
        } else {
            0.0
        };
        let is_empty = delays.queue_us() <= (EMPTY * range).max(slack_us).max(varies_us);
        if is_empty || self.empty_at == Instant::ZERO {
            self.empty_at = now;
            if self.is_look && self.drain.is_some_and(|drain| !drain.is_over(now)) {
                // What seems empty may still fall.
                return Seen::Nothing;
            }
            let changes = self.is_on || self.drain.is_some();
            self.end(now);
            return Seen::turn(changes);
        }
        if let Some(drain) = &mut self.drain {
            drain.record(delays);
            if !drain.is_over(now) {
                return Seen::Nothing;
            }
            return self.end_drain(now);
        }
        let is_beat = now.as_nanos() % nanos(BEAT) < nanos(BEAT_LENGTH);
        if self.is_on {
            let falls = delays.queue_us() < FALLING * range;
            let is_due = now.since(self.drained_at) >= INTERVAL && (is_beat || falls);
            if is_due || self.grows_for_nothing(&full) {
                self.before = (f32::INFINITY, 0.0);
                self.begin_drain(now, &LATER, full, delays);
            }
        } else if !is_thin {
            self.before = (full.window as f32, full.rate as f32);
            self.look_for_others(now, is_beat, full, delays);
        }
        Seen::Nothing
    }

    /// Room was made, and the queue is not empty.
    fn end_drain(&mut self, now: Instant) -> Seen {
        let drain = self.drain.take();
        // (While others compete 1 of 100 changes nothing by chance.)
        let is_first = !self.is_on && !self.is_look;
        if is_first && drain.is_some_and(|drain| drain.was_for_nothing()) {
            self.end(now);
            return Seen::LongerPath;
        }
        // A look for the least round trip says nothing of others.
        let changes = !self.is_on;
        self.is_on |= !self.is_look;
        Seen::turn(changes)
    }

    /// Whether the window has grown by [`GROWN`] since it competes, with nothing lost, and gets no more for it.
    fn grows_for_nothing(&self, full: &Turnover) -> bool {
        let (window_then, rate_then) = self.before;
        let has_grown = self.cuts == 0 && full.window > GROWN * f64::from(window_then);
        has_grown && full.rate < GETS_MORE * f64::from(rate_then)
    }

    /// Makes room for the least round trip to be seen again, or to see whether it is others who keep the queue from emptying, if it is time.
    fn look_for_others(&mut self, now: Instant, is_beat: bool, full: Turnover, delays: &Delays) {
        let is_patient = now.since(self.empty_at) <= delays.smoothed() * PATIENCE;
        if is_beat && delays.is_least_stale(now) && now.since(self.drained_at) > BEAT / 2 {
            self.begin_drain(now, &LOOK, full, delays);
            self.is_look = true;
        } else if !is_patient && !self.is_refuted(now, delays) {
            self.begin_drain(now, &FIRST, full, delays);
        }
    }

    /// A round trip was seen that tells nothing of the queue: small packets, which are not compared with the large ones of before.
    /// Room is not made for longer because of that. (A stream of small messages once had to live with one packet a round trip until
    /// the large ones were forgotten: tests/regressions.rs.)
    pub(super) fn on_unmeasured(&mut self, now: Instant) {
        if self.drain.is_some_and(|drain| drain.is_over(now)) {
            self.drain = None;
            self.empty_at = now;
        }
    }

    fn begin_drain(&mut self, now: Instant, depth: &Depth, full: Turnover, delays: &Delays) {
        self.is_look = false;
        self.drained_at = now;
        self.drain = Some(Drain::begin(now, depth, full, delays));
    }

    /// Nobody competes, and no room is made.
    fn end(&mut self, now: Instant) {
        self.is_on = false;
        self.empty_at = now;
        self.cuts = 0;
        self.drain = None;
    }
}
