//! What the path carries and loses, period by period, and how much of the loss is chance.

use core::time::Duration;

use super::cubic::BETA;
use super::delays::Least;
use super::yields::Yields;
use crate::time::Instant;

/// Below this share of the most that came back within ten seconds the path is not full. Jitter makes the most too large by up to a third.
pub(super) const CLEAR_SHARE: f64 = 0.75;
/// How long the most is remembered: a bucket's length.
pub(super) const RATE_MEMORY: Duration = Duration::from_secs(10);
/// Losses of a period that chance explains, whatever their share.
const LOSSES_EXPLAINED: u16 = 3;
/// Losses of a period that are too much where a full queue takes them. (One: at half a BDP beside CUBIC three quarters of a share.)
const LOSSES_OF_FULL_QUEUE: u16 = 2;
/// The share of a period's packets that chance may lose, whatever is known of the path.
const LOSS_SHARE_EXPLAINED: f32 = 0.1;
/// No path loses more by chance.
const CHANCE_LOSS_MAX: f32 = 0.4;
/// Weight of a period that tells what chance loses, and of a full one, which only shows when it is less.
const CHANCE_WEIGHT: f32 = 0.25;
const CHANCE_WEIGHT_FULL: f32 = 1.0 / 32.0;
/// What is still given up a period later.
const KEPT_BACK: f32 = 0.85;
/// Packets that a period has at least, so that a share of them means something.
const PERIOD_PACKETS: u16 = 20;

/// What came back since a point in time.
#[derive(Clone, Copy, Default)]
struct Period {
    began: Instant,
    acked_bytes: u64,
    acked: u16,
    lost: u16,
    /// Packets that did not come, whatever of them counts.
    missing: u16,
}

/// What the losses of a period are.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Losses {
    /// All that there were.
    Whole,
    /// Some did not count, or may be others' doing.
    InPart,
    /// A full queue's, whoever fills it.
    OfFullQueue,
}

/// What a period has told of losses.
#[derive(Clone, Copy, Default)]
struct Told {
    /// Bytes a second that came back.
    rate: u32,
    /// Share of packets lost.
    lost: f32,
    /// They were all that there were.
    is_whole: bool,
}

/// What the end of a period says.
#[derive(Clone, Copy)]
pub(super) struct Ended {
    /// The path was not full in the period before, which told what chance loses.
    pub(super) tells_chance: bool,
    /// More was lost than chance explains.
    pub(super) is_too_much: bool,
    /// What was lost was lost for what was sent.
    pub(super) is_congestion: bool,
}

#[derive(Default)]
pub(super) struct Carried {
    period: Period,
    /// Bytes a second that came back in the last period, and the most over ten seconds, negated.
    rate: u32,
    rate_max: Least,
    /// Share of packets that is lost while we send clearly less than the path has carried: that is not our doing.
    chance_loss: f32,
    told: Told,
    yields: Yields,
    /// The share of the most that is given up, since congestion was seen lately.
    given_up: f32,
    /// When the first packet of the latest burst of losses was sent.
    burst_began: Instant,
}

impl Carried {
    /// When the present period began.
    pub(super) const fn began(&self) -> Instant {
        self.period.began
    }

    /// Bytes a second that came back in the last period.
    pub(super) fn rate(&self) -> f64 {
        f64::from(self.rate)
    }

    /// The most that came back within about ten seconds, in bytes a second.
    pub(super) fn rate_max(&self) -> f64 {
        f64::from(u32::MAX - self.rate_max.get_us())
    }

    /// What a session that its application limits may go on with: the most that came back, but less for a while after congestion (RFC 7661 section 4.4).
    pub(super) fn rate_due(&self) -> f64 {
        self.rate_max() * f64::from(1.0 - self.given_up)
    }

    /// Congestion was seen, and not only losses that may be chance.
    pub(super) fn give_way(&mut self) {
        self.given_up = 1.0 - BETA as f32 * (1.0 - self.given_up);
    }

    /// Whether chance loses more than is put up with on any path.
    pub(super) fn is_lossy(&self) -> bool {
        self.chance_loss > LOSS_SHARE_EXPLAINED
    }

    /// What the present period has seen does not count.
    pub(super) fn begin_anew(&mut self, now: Instant) {
        self.period = Period {
            began: now,
            ..Period::default()
        };
    }

    pub(super) const fn on_acked(&mut self, bytes: usize) {
        self.period.acked_bytes += bytes as u64;
        self.period.acked = self.period.acked.saturating_add(1);
    }

    /// A packet that was sent at `sent_at` is lost. Of those sent within `together` of the first of them one counts; all where it is zero.
    pub(super) fn on_lost(&mut self, sent_at: Instant, together: Duration) {
        let is_same_burst = !together.is_zero()
            && sent_at >= self.burst_began
            && sent_at.since(self.burst_began) <= together;
        if !is_same_burst {
            self.burst_began = sent_at;
            self.period.lost = self.period.lost.saturating_add(1);
        }
    }

    /// A packet did not come, whether it counts or not.
    pub(super) const fn on_missing(&mut self) {
        self.period.missing = self.period.missing.saturating_add(1);
    }

    /// A packet that was taken for lost arrived after all.
    pub(super) const fn on_spurious_loss(&mut self) {
        self.period.lost = self.period.lost.saturating_sub(1);
        self.period.missing = self.period.missing.saturating_sub(1);
    }

    /// Whether the answer for a packet sent at `sent_at` ends the period.
    pub(super) fn is_over(&self, sent_at: Instant) -> bool {
        sent_at >= self.period.began && self.period.acked + self.period.lost >= PERIOD_PACKETS
    }

    /// The period ends, and the next begins.
    pub(super) fn end(&mut self, now: Instant, losses: Losses) -> Ended {
        let period = self.period;
        self.begin_anew(now);
        let seconds = now.since(period.began).as_secs_f64().max(1e-4);
        self.rate = (period.acked_bytes as f64 / seconds) as u32;
        self.rate_max.record(now, u32::MAX - self.rate, RATE_MEMORY);
        self.given_up *= KEPT_BACK;
        let came = f64::from(period.acked.max(1)) / seconds;
        let missing = f64::from(period.missing) / seconds;
        self.yields.record(came + missing, came);
        let this = Told {
            rate: self.rate,
            lost: f32::from(period.lost) / f32::from((period.acked + period.lost).max(1)),
            is_whole: losses == Losses::Whole,
        };
        let before = core::mem::replace(&mut self.told, this);
        Ended {
            tells_chance: self.learn_chance_loss(before),
            is_congestion: losses == Losses::OfFullQueue || self.yields.is_policed(),
            is_too_much: if losses == Losses::OfFullQueue {
                period.lost >= LOSSES_OF_FULL_QUEUE
            } else {
                self.is_too_much(&period)
            },
        }
    }

    /// A path that loses as much when it is sent clearly less than it has carried, before or since, loses by chance. Whether `before` was such a
    /// period.
    fn learn_chance_loss(&mut self, before: Told) -> bool {
        if !before.is_whole {
            return false;
        }
        if f64::from(before.rate) >= self.rate_max() * CLEAR_SHARE {
            let less = (self.chance_loss - before.lost).max(0.0);
            self.chance_loss -= less * CHANCE_WEIGHT_FULL;
            return false;
        }
        if self.yields.is_policed() {
            self.chance_loss -= self.chance_loss * CHANCE_WEIGHT;
            return false;
        }
        let weight = match self.chance_loss {
            0.0 => 1.0,
            _ => CHANCE_WEIGHT,
        };
        self.chance_loss += (before.lost - self.chance_loss) * weight;
        self.chance_loss = self.chance_loss.min(CHANCE_LOSS_MAX);
        true
    }

    /// Beyond what chance loses on average, and 1.5 standard deviations: where nothing else was learned, 5 of 20 packets, 13 of 87. Where it
    /// was, nothing is spared beyond, and every cut by mistake costs: 2.
    fn is_too_much(&self, period: &Period) -> bool {
        let (share, deviations) = if self.is_lossy() {
            (self.chance_loss, 2.0)
        } else {
            (LOSS_SHARE_EXPLAINED, 1.5)
        };
        let expected = f64::from(share) * (f64::from(period.acked) + f64::from(period.lost));
        let most = expected + deviations * libm::sqrt(expected);
        period.lost > LOSSES_EXPLAINED && f64::from(period.lost) > most
    }
}
