//! How much may be under way, and how fast it leaves: Copa while the queue is ours, CUBIC while others fill it.
//!
//! **Default mode** (`copa.rs`): the window follows the queueing delay, so that about a packet stands in the bottleneck's queue, and what a
//! game sends does not wait behind what it downloads. Sparse losses say nothing of the queue and change nothing. Losses
//! that chance does not explain (a policer, a tiny buffer) shrink the window, and sooner once they have shown a full queue (`overflow.rs`).
//! **Competing** (`cubic.rs`): when the queue was not nearly empty for five round trips (`rivalry.rs`), flows that know only loss fill it;
//! then the window is CUBIC's, and every loss counts, until losses show that nobody is there (`overflow.rs`).
//!
//! An ECN mark is a congestion event in both modes, at most once a round trip (RFC 3168). Persistent congestion is RFC 9002 section 7.6,
//! but for what goes meanwhile and what is left afterwards (`silence.rs`). A window that is not filled neither grows nor shrinks
//! (section 7.8). While little waits to be sent it is never below ten packets (decision 0003). Repair symbols count like all
//! else. Why these: decision 0007.

mod carried;
mod copa;
mod cubic;
mod delays;
mod demand;
mod drain;
mod gap;
mod hindsight;
mod overflow;
mod recovery;
mod rivalry;
mod room;
mod silence;
mod waits;
mod yields;

#[cfg(test)]
mod tests;

use core::time::Duration;

use carried::{CLEAR_SHARE, Carried, Losses, RATE_MEMORY};
use copa::Copa;
use cubic::Cubic;
use delays::{Delays, Sample, WANDER_MAX_US};
use demand::Demand;
use gap::Gap;
use recovery::Recovery;
use rivalry::{Rivalry, Seen, Turnover};
use silence::Silence;
use waits::Waits;

use super::RoundTrip;
use crate::limits::{LARGE_BYTES_MAX, MTU_MIN};
use crate::time::Instant;

/// The unit of growth, in bytes.
const PACKET: f64 = MTU_MIN as f64;
/// RFC 9002 section 7.2: ten packets.
const INITIAL: f64 = 10.0 * PACKET;
/// RFC 9002 section 7.2: kMinimumWindow.
const MINIMUM: f64 = 2.0 * PACKET;
/// While nothing comes back: a packet each quarter of a round trip, of what is to be sent anyway. So the end of a silence is noticed an eighth
/// of one later than it could be; with kMinimumWindow, two packets at once, it was half of one.
const PROBES: f64 = 4.0 * PACKET;
/// While room is made, at least one packet of the largest size is under way.
const ONE: f64 = 1500.0;
/// Windows a round trip at which packets leave: enough to double, as Copa has it where the application limits what leaves, enough to rise,
/// and as RFC 9002 section 7.7 has it.
const START_GAIN: f64 = 2.0;
const THIN_GAIN: f64 = 2.0;
const COPA_GAIN: f64 = 1.1;
const COMPETING_GAIN: f64 = 1.25;
/// What may leave back to back while the window is in use: two packets.
const BURST_MIN: f64 = 2.0 * 1472.0;
/// Packets among which the least round trip is taken at the start.
const START_PACKETS: f64 = 4.0;
/// What is left of the window at the first sign of a queue, besides the share that stands in it: the window has grown by half while the
/// news came back.
const START_LEFT: f64 = 0.8;
/// RFC 9406 section 4.3: CSS_GROWTH_DIVISOR.
const CONSERVATIVE_GROWTH_DIVISOR: f64 = 4.0;
/// The least window that is looked back on: 16 packets.
const HINDSIGHT_LEAST: f64 = 16.0 * PACKET;

pub(crate) struct Congestion {
    window: f64,
    in_flight: u64,
    /// Until the first sign of a queue the window doubles each round trip.
    is_starting: bool,
    /// Nothing was held back for two round trips: the application sends less than the window allows.
    is_idle: bool,
    demand: Demand,
    /// Since persistent congestion; while it lasts the floor of [`INITIAL`] is not given.
    silence: Silence,
    /// The latest cut.
    recovery: Recovery,
    gap: Gap,
    /// When the window or the pacer last held something back. Packets sent later prove nothing of the window.
    filled_at: Option<Instant>,
    carried: Carried,
    /// The window before losses first cut it, while it is not known whether they were chance.
    uncut: f32,
    delays: Delays,
    copa: Copa,
    cubic: Cubic,
    rivalry: Rivalry,
}

impl Default for Congestion {
    fn default() -> Self {
        Self {
            window: INITIAL,
            in_flight: 0,
            is_starting: true,
            is_idle: true,
            demand: Demand::default(),
            silence: Silence::default(),
            recovery: Recovery::default(),
            gap: Gap::default(),
            filled_at: None,
            carried: Carried::default(),
            uncut: 0.0,
            delays: Delays::default(),
            copa: Copa::default(),
            cubic: Cubic::default(),
            rivalry: Rivalry::default(),
        }
    }
}

impl Congestion {
    /// What stands in our queue: what leaves now waits there for so long. Nothing where nothing of ours is under way that could, or it was not measured for two round trips.
    pub(crate) fn queue(&self, now: Instant) -> Duration {
        if self.in_flight == 0 || now.since(self.delays.measured_at()) > self.delays.smoothed() * 2
        {
            return Duration::ZERO;
        }
        Duration::from_micros(self.delays.own_queue_us(0.0) as u64)
    }

    /// A round trip as long as a path's own delay makes it.
    fn longest_without_queue(&self) -> Duration {
        Duration::from_micros((self.delays.least_us() + WANDER_MAX_US) as u64)
    }

    fn is_thin(&self) -> bool {
        self.demand.waits.is_thin()
    }

    /// Whether a queue may grow faster than the round time learns: a download's own.
    pub(crate) fn outgrows_round_time(&self) -> bool {
        !self.is_thin() && !self.rivalry.is_on()
    }

    /// Bytes that are under way.
    #[cfg(test)]
    pub(crate) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Whether only probes leave. A thin session goes on through a short gap.
    fn is_silent(&self) -> bool {
        let goes_on = self.is_thin() && self.delays.is_known() && self.gap.is_short();
        self.silence.is_on() && !goes_on
    }

    /// Round trips before the last of so many bytes may leave, if what is under way does not hold them up. At the start the window doubles
    /// in each, and by what is under way, until it is as large as what a receiver has room for.
    pub(crate) fn round_trips_for(&self, bytes: u64) -> u32 {
        let most = LARGE_BYTES_MAX as f64;
        let window = (self.window() as f64).clamp(INITIAL, most);
        let bytes = bytes as f64;
        let trips = if self.is_starting {
            let first = (window + self.in_flight as f64).min(most);
            let while_growing = bytes.min(most - first);
            libm::log2(while_growing / first + 1.0) + (bytes - while_growing) / most
        } else {
            bytes / window
        };
        (libm::ceil(trips) - 1.0).clamp(0.0, 1e6) as u32
    }

    /// The longest that what left in the last round trips waited in a queue.
    pub(crate) fn longest_queue(&self) -> Duration {
        Duration::from_micros(self.delays.longest_queue_us() as u64)
    }

    /// Bytes a second at which packets leave; `smoothed` round trip.
    pub(crate) fn pacing_rate(&self, smoothed: Duration) -> f64 {
        let rtt = if self.delays.is_known() {
            self.delays.turn_us() / 1e6
        } else {
            smoothed.as_secs_f64()
        };
        let gain = if self.is_silent() {
            1.0
        } else if self.is_starting {
            START_GAIN
        } else if self.rivalry.is_on() {
            COMPETING_GAIN
        } else if self.is_thin() {
            THIN_GAIN
        } else {
            COPA_GAIN
        };
        gain * self.window() as f64 / rtt.max(1e-6)
    }

    /// Bytes that may leave back to back: ten packets after a pause (RFC 9002 section 7.7) or while little waits, few while the window
    /// is in use.
    pub(crate) fn burst(&self, rate: f64) -> u64 {
        if self.is_silent() {
            // Apart from each other, they find out sooner that something arrives again.
            ONE as u64
        } else if self.is_idle || self.is_thin() {
            INITIAL as u64
        } else {
            // A millisecond's worth, since timers are no finer.
            (rate * 1e-3).clamp(BURST_MIN, INITIAL) as u64
        }
    }

    /// So many bytes are to be sent, `of_live` of them of messages with a deadline. As long as that is little it is the application that limits
    /// the session, and not the window.
    pub(crate) fn set_waiting(&mut self, now: Instant, bytes: u64, of_live: u64) {
        let is_awaited = self.in_flight > 0 && self.delays.is_known();
        self.gap
            .look(now, is_awaited.then(|| self.longest_without_queue()));
        let waits = Waits::of(
            bytes,
            of_live,
            self.carried.rate_max(),
            self.gap.leaves(now),
        );
        self.demand.set_waiting(now, waits, self.delays.smoothed());
    }

    /// So many bytes leave that are only needed if others are lost.
    pub(crate) fn on_redundancy(&mut self, now: Instant, bytes: usize) {
        let round_trip = self.delays.smoothed();
        self.demand.on_redundancy(now, bytes as u32, round_trip);
    }

    /// Something waits to be sent and may not go yet.
    pub(crate) fn on_held_back(&mut self, now: Instant) {
        // A thin session is held back by its pacer, mostly.
        let counts = if self.is_thin() { 1.0 } else { 2.0 };
        let is_held = self.in_flight as f64 * counts >= self.filled_from();
        self.demand.is_held = is_held;
        if is_held {
            self.filled_at = Some(now);
            self.is_idle = false;
        }
    }

    pub(crate) fn on_sent(&mut self, now: Instant, bytes: usize) {
        // However long it was not asked for.
        if core::mem::take(&mut self.demand.is_held) {
            self.filled_at = Some(now);
        }
        self.is_idle = self
            .filled_at
            .is_none_or(|at| now.since(at) > self.delays.smoothed() * 2);
        if self.is_idle && !self.silence.is_on() {
            self.window = self.window.max(INITIAL);
        }
        if self.in_flight == 0 && !self.silence.is_on() {
            self.gap.begin_anew(now);
        }
        self.in_flight += bytes as u64;
        if self.in_flight as f64 + PACKET > self.filled_from() {
            self.filled_at = Some(now);
        }
    }

    /// A packet is no longer under way, without a verdict.
    pub(crate) const fn on_forgotten(&mut self, bytes: usize) {
        self.in_flight = self.in_flight.saturating_sub(bytes as u64);
    }

    /// A packet was acknowledged.
    pub(crate) fn on_rtt(&mut self, now: Instant, round_trip: &RoundTrip) {
        let &RoundTrip {
            took,
            waited,
            smoothed,
            bytes,
            gathered,
        } = round_trip;
        let sample = Sample {
            took,
            waited,
            smoothed,
            bytes,
            gathered,
            rate: self.carried.rate_max() as f32,
            span: self.standing_span(smoothed).max(gathered),
            is_steady: !self.is_starting && self.rivalry.drained().is_none(),
            is_clear: self.is_clear(now, smoothed),
            varies: self.rivalry.is_refuted(now, &self.delays),
            rate_max: self.rate_for_hindsight(now),
        };
        if !self.delays.record(now, &sample) {
            self.rivalry.on_unmeasured(now);
            return;
        }
        let was_draining = self.rivalry.drained().is_some();
        let full = Turnover {
            window: self.window,
            rate: self.carried.rate(),
            rate_max: self.carried.rate_max(),
        };
        let is_thin = self.is_thin();
        let seen = self.rivalry.on_rtt(now, full, &self.delays, is_thin);
        match seen {
            Seen::Nothing => return,
            Seen::LongerPath => {
                self.delays.forget_path();
                self.is_starting = true;
            }
            Seen::Turn => {
                // Room that was made for nobody ends no start.
                self.is_starting &= !self.rivalry.is_on();
                if was_draining && !self.rivalry.is_on() {
                    self.window *= self.share_without_queue(now);
                    self.window = self.window.max(MINIMUM);
                }
            }
        }
        self.uncut = 0.0;
        self.copa.restart(now, self.window);
        self.cubic.restart(self.window);
    }

    /// What is left of the window without a queue. After rivals were met, what the path seems to vary by may be their queue.
    fn share_without_queue(&self, now: Instant) -> f64 {
        let largest = self.delays.largest_us();
        let varies = if self.rivalry.was_met(now) {
            0.0
        } else {
            self.delays.spread_us()
        };
        1.0 - (largest - self.delays.least_us() - varies).max(0.0) / largest
    }

    /// A quarter of a round trip; at the start, when the window doubles in one, that of a few packets.
    fn standing_span(&self, smoothed: Duration) -> Duration {
        if self.is_starting {
            smoothed.mul_f64((START_PACKETS * PACKET / self.window).clamp(1.0 / 32.0, 0.25))
        } else {
            smoothed / 4
        }
    }

    /// Whether what comes back now has found nothing of ours in the queue: we sent little, made room, or got back clearly less than the
    /// path has carried, and still send less. Among rivals that tells nothing.
    fn is_clear(&self, now: Instant, smoothed: Duration) -> bool {
        if self.rivalry.is_on() || self.rivalry.was_met(now) {
            return false;
        }
        if let Some(since) = self.rivalry.drains_since() {
            return now.since(since) > smoothed + smoothed / 2;
        }
        if self.is_starting {
            return false;
        }
        let little = self.carried.rate_max() * CLEAR_SHARE;
        self.is_idle
            || self.carried.rate() < little
                && self.delays.is_known()
                && self.window / self.delays.standing_us() * 1e6 < little
    }

    /// The most that has come back lately, where later growth tells that it did not fill the path. Among rivals it does not, and the queue of
    /// a small window is a packet, not a jitter.
    fn rate_for_hindsight(&self, now: Instant) -> Option<f32> {
        let is_alone = !self.rivalry.is_on() && !self.rivalry.was_met(now);
        let tells = is_alone && self.window >= HINDSIGHT_LEAST;
        tells.then(|| self.carried.rate_max() as f32)
    }

    pub(crate) fn on_acked(&mut self, now: Instant, sent_at: Instant, bytes: usize) {
        self.on_forgotten(bytes);
        self.on_answer(now);
        self.carried.on_acked(bytes);
        // RFC 9002 section 7.8: a window that was not filled proves nothing.
        let was_filled = self.filled_at.is_some_and(|at| sent_at <= at);
        let is_recovering = self.recovery.on_acked(sent_at);
        if was_filled && self.delays.is_known() && !is_recovering {
            self.move_window(now, bytes as f64);
        }
        if self.carried.is_over(sent_at) {
            self.end_period(now);
        }
        self.silence.on_acked(self.window);
    }

    /// Something has arrived, which ends a gap or a silence. What a silence took says nothing of what is sent now, nor do round trips from before it:
    /// a path that was down may have come back by another way.
    fn on_answer(&mut self, now: Instant) {
        self.gap.on_answer(now, self.delays.smoothed());
        if !self.silence.is_on() {
            return;
        }
        self.recovery.begin(now);
        self.carried.begin_anew(now);
        self.delays.forget_path();
        let window = self.silence.end(now);
        if let Some(window) = window.filter(|window| *window > self.window) {
            self.window = window;
            self.is_starting = false;
            self.copa.restart(now, self.window);
            self.cubic.restart(self.window);
        }
    }

    fn move_window(&mut self, now: Instant, bytes: f64) {
        let window = if self.rivalry.drained().is_some() {
            return;
        } else if self.rivalry.is_on() {
            let rtt = self.delays.smoothed().as_secs_f64();
            self.cubic.on_acked(now, self.window, bytes, rtt)
        } else if self.is_starting {
            self.go_on_starting(now, bytes)
        } else {
            self.copa.on_acked(now, self.window, bytes, &self.delays)
        };
        self.window = window.max(self.least());
    }

    /// The least window. Among rivals one packet: there TCP has timeouts, after which it begins with one; where each flow's share is
    /// two or three packets, two that never wait are more than a share.
    const fn least(&self) -> f64 {
        if self.rivalry.is_on() { ONE } else { MINIMUM }
    }

    /// The window doubles in a round trip until a queue shows. One that may be a path's jitter, below which a long path's window would stop at a fifth of
    /// what it carries, only slows the growth down: conservative slow start (RFC 9406 section 4.2), which ends when the jitter does.
    fn go_on_starting(&mut self, now: Instant, bytes: f64) -> f64 {
        if Copa::is_below_target(self.window, &self.delays) {
            self.window + bytes
        } else if self.delays.own_queue_us(0.0) <= self.delays.start_queue_us() {
            self.window + bytes / CONSERVATIVE_GROWTH_DIVISOR
        } else {
            self.leave_start(now)
        }
    }

    /// The first sign of a queue that is no jitter.
    fn leave_start(&mut self, now: Instant) -> f64 {
        self.is_starting = false;
        // What is lost of the packets under way belongs to this.
        self.recovery.begin(now);
        let carried = START_LEFT * self.window * self.delays.least_us() / self.delays.standing_us();
        self.copa.begin_at(now, carried);
        carried
    }

    fn end_period(&mut self, now: Instant) {
        let losses = self.losses_of_period(now);
        let ended = self.carried.end(now, losses);
        self.keep_what_came_back();
        if ended.tells_chance {
            self.take_back_cuts(now);
        }
        if ended.is_too_much {
            self.uncut = self.uncut.max(self.window as f32);
            self.cut(now);
            if ended.is_congestion {
                self.carried.give_way();
            }
        }
    }

    fn losses_of_period(&self, now: Instant) -> Losses {
        if self.rivalry.is_queue_full(now) {
            return Losses::OfFullQueue;
        }
        // After a cut, packets sent before it count if they arrive, and not if they are lost.
        let recovers = self.recovery.since().map(|at| at + self.delays.smoothed());
        let is_whole = recovers.is_none_or(|until| self.carried.began() >= until)
            && !self.rivalry.is_on()
            && !self.rivalry.was_met(now)
            && self.rivalry.was_empty_since(self.carried.began());
        if is_whole {
            Losses::Whole
        } else {
            Losses::InPart
        }
    }

    /// What a thin session got back in a round trip it may have under way when more waits: the window is not what it last was when it counted (as
    /// RFC 7661 keeps it, by what the pipe has held). A queue that stands beyond what a path wanders by is not part of it.
    fn keep_what_came_back(&mut self) {
        let counts = self.is_thin() && self.delays.is_known();
        if counts && !self.rivalry.is_on() && self.rivalry.drained().is_none() {
            let standing = Duration::from_micros(self.delays.standing_us() as u64);
            let round_trip = standing.min(self.longest_without_queue());
            let held = self.carried.rate() * round_trip.as_secs_f64();
            self.window = self.window.max(held);
        }
    }

    /// What was lost is lost when less is sent as well: to have sent less for it was wrong.
    fn take_back_cuts(&mut self, now: Instant) {
        let uncut = f64::from(core::mem::take(&mut self.uncut));
        let is_recent = (self.recovery.since()).is_some_and(|at| now.since(at) < RATE_MEMORY);
        if is_recent && self.carried.is_lossy() && uncut > self.window {
            self.window = uncut;
            self.copa.restart(now, uncut);
        }
    }

    pub(crate) fn on_lost(&mut self, now: Instant, sent_at: Instant, bytes: usize) {
        self.on_forgotten(bytes);
        self.carried.on_missing();
        if self.recovery.covers(sent_at) {
            self.silence.on_lost(bytes);
            return;
        }
        self.rivalry.on_loss(now, &self.delays);
        // A thin session does not cause what a burst takes of it, however much that is: it counts once.
        let together = self.is_thin().then(|| self.burst_span());
        self.carried.on_lost(sent_at, together.unwrap_or_default());
        // A small window is lost whole by a full queue, too.
        let is_gap = self.recovery.is_unanswered() && self.window >= INITIAL;
        if self.rivalry.is_on() && !is_gap {
            self.lose_to_rivals(now);
        }
    }

    /// A loss counts, if it is one that rivals' queue explains. Where losses show that there is none, what they took is given back.
    fn lose_to_rivals(&mut self, now: Instant) {
        self.uncut = self.uncut.max(self.window as f32);
        if self.rivalry.on_loss_to_rivals(now, &self.delays) {
            self.window = f64::from(core::mem::take(&mut self.uncut));
            self.copa.restart(now, self.window);
        } else {
            self.cut(now);
        }
    }

    /// Losses closer together than this are one burst: a quarter of a round trip, as with what stands in the queue.
    fn burst_span(&self) -> Duration {
        self.delays.smoothed() / 4
    }

    /// A packet that was taken for lost arrived after all.
    pub(crate) fn on_spurious_loss(&mut self, now: Instant) {
        self.on_answer(now);
        self.carried.on_spurious_loss();
    }

    /// A sign of congestion on a packet sent at `sent_at`: an ECN mark, or a loss while competing.
    pub(crate) fn on_congestion(&mut self, now: Instant, sent_at: Instant) {
        if !self.recovery.covers(sent_at) {
            self.cut(now);
            self.carried.give_way();
        }
    }

    fn cut(&mut self, now: Instant) {
        self.recovery.begin(now);
        self.rivalry.on_cut(now);
        let was_starting = core::mem::take(&mut self.is_starting);
        let left = self.cubic.on_congestion(self.window);
        let left = if was_starting {
            self.window / 2.0
        } else {
            left
        };
        // A window that was not filled keeps its floor.
        self.window = left.max(self.least());
        self.copa.restart(now, self.window);
    }

    /// RFC 9002 section 7.6: everything was lost for long. What is still lost of the packets under way belongs to this.
    pub(crate) fn on_persistent_congestion(&mut self, now: Instant) {
        self.silence.begin(now, self.in_flight);
        self.window = PROBES.min(self.window).max(MINIMUM);
        self.uncut = 0.0;
        self.is_starting = true;
        self.recovery.begin(now);
        self.cubic.restart(INITIAL);
    }
}
