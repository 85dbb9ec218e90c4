//! Gaps: nothing comes back that should have, and what they leave waiting.
//!
//! A radio or a satellite is dark for some hundred milliseconds several times a minute. A session that its application limits has no part in that: it
//! goes on meanwhile, and what waits afterwards does not make a download of it.

use core::time::Duration;

use crate::time::Instant;

/// A longer gap is persistent congestion to a thin session, too. (A media stream sends for longer without an answer: RFC 8083, section 4.)
const MAX: Duration = Duration::from_secs(1);
/// What a thin session may have under way grows in a gap by so many times what has come back lately: a game makes what it makes, and that leaves more
/// than once, so that it is there when the gap ends.
const GAIN: f64 = 2.0;
/// For how long a gap has something left: with a tenth of the rate to spare, what half a second has left takes as long.
const LEAVES: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Default)]
pub(super) struct Gap {
    /// When something last came back, or was sent while nothing was under way.
    answered_at: Instant,
    /// For how long nothing has come back that should have, at the last look.
    lasts: Duration,
    /// When the latest gap ended, and how long nothing had come back then, up to [`MAX`].
    ended_at: Option<Instant>,
    lasted: Duration,
}

impl Gap {
    /// The first of what is under way is sent.
    pub(super) const fn begin_anew(&mut self, now: Instant) {
        self.answered_at = now;
    }

    /// A look, while something is under way for which an answer may take `round_trip`; `None` while nothing is, or that is not known.
    pub(super) fn look(&mut self, now: Instant, round_trip: Option<Duration>) {
        self.lasts = round_trip.map_or(Duration::ZERO, |round_trip| {
            now.since(self.answered_at).saturating_sub(round_trip)
        });
    }

    /// Something came back; a gap is one if it lasted for half a `round_trip`.
    pub(super) fn on_answer(&mut self, now: Instant, round_trip: Duration) {
        if self.lasts > round_trip / 2 {
            self.ended_at = Some(now);
            // What a longer one has left is mostly too late.
            self.lasted = now.since(self.answered_at).min(MAX);
        }
        self.answered_at = now;
        self.lasts = Duration::ZERO;
    }

    /// Whether it is too short to be anything else than a radio's.
    pub(super) fn is_short(&self) -> bool {
        self.lasts < MAX
    }

    /// What may be under way in addition, as a time at the rate that came back.
    pub(super) fn allowance(&self) -> Duration {
        self.lasts.mul_f64(GAIN)
    }

    /// How long the latest gap was, as long as something of it may wait.
    pub(super) fn leaves(&self, now: Instant) -> Duration {
        let is_recent = self.ended_at.is_some_and(|at| now.since(at) < LEAVES);
        if is_recent {
            self.lasted
        } else {
            Duration::ZERO
        }
    }
}
