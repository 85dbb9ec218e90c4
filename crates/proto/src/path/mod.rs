//! What is known of the way to the peer: delay, loss, reordering, how large packets may be, and how fast they may go.

mod answer;
mod burst;
mod congestion;
mod delay;
mod ecn;
mod fading;
mod feedback;
mod level;
mod loss;
mod mtu;
mod pacer;
mod reordering;
mod rtt;
mod timer_lag;
mod validation;
mod way_back;

pub(crate) use answer::{Answer, RoundTrip};
pub(crate) use burst::{Between, Bursts, Dependence, Pair};
pub(crate) use congestion::Congestion;
pub(crate) use delay::{Another, DelayHistogram};
pub(crate) use ecn::EcnTest;
pub(crate) use feedback::Feedback;
pub(crate) use level::{LossLevel, UsualLoss};
pub(crate) use loss::Loss;
pub(crate) use mtu::MtuSearch;
pub(crate) use pacer::Pacer;
pub(crate) use reordering::Reordering;
pub(crate) use rtt::Rtt;
pub(crate) use timer_lag::{Lag, TimerLag};
pub(crate) use validation::Validation;
use way_back::{PeerData, WayBack};

use core::time::Duration;

use punctual_policy::Delays;

use crate::endpoint::Route;
use crate::session::Experience;
use crate::time::{Instant, nanos};

/// One path. A change of address begins a new one: nothing measured on the old way holds on the new.
pub(crate) struct Path {
    pub(crate) route: Route,
    /// Packets sent before this went another way.
    pub(crate) began: Instant,
    pub(crate) rtt: Rtt,
    /// One-way delays of what we sent, by the clock offset; empty until the offset is known.
    pub(crate) owd: DelayHistogram,
    pub(crate) loss: Loss,
    /// The present loss of what we send.
    pub(crate) level: LossLevel,
    pub(crate) bursts: Bursts,
    pub(crate) incoming_loss: Loss,
    pub(crate) feedback: Feedback,
    pub(crate) reordering: Reordering,
    pub(crate) congestion: Congestion,
    pub(crate) pacer: Pacer,
    pub(crate) mtu: MtuSearch,
    /// Packets that the peer received with the ECN mark CE, as far as it told.
    pub(crate) congestion_marks: u64,
    /// Whether packets can be marked on the way.
    pub(crate) ecn: EcnTest,
    /// How late this host sees to what is due, as of when the session last looked.
    pub(crate) timer_lag: Lag,
    pub(crate) heard: PeerData,
    way_back: WayBack,
}

impl Path {
    pub(crate) fn new(
        now: Instant,
        route: Route,
        datagram_max: u16,
        experience: &Experience,
    ) -> Self {
        Self {
            route,
            began: now,
            rtt: Rtt::default(),
            owd: DelayHistogram::default(),
            loss: Loss::default(),
            level: LossLevel::among(&experience.loss),
            bursts: Bursts::default(),
            incoming_loss: Loss::default(),
            feedback: Feedback::default(),
            reordering: Reordering::default(),
            congestion: Congestion::default(),
            pacer: Pacer::default(),
            mtu: MtuSearch::new(datagram_max),
            congestion_marks: 0,
            ecn: EcnTest::default(),
            timer_lag: experience.timer_lag.get(),
            heard: PeerData::default(),
            way_back: WayBack::default(),
        }
    }

    /// The time after which missing feedback means loss, and has been seen to: due [`timer_lag`](Self::timer_lag) before.
    pub(crate) fn round_time(&self) -> Duration {
        self.rtt.round_time() + self.reordering.allowance() + self.timer_lag.of_round()
    }

    /// After what time to be due, for what is to have been done after `wait`.
    pub(crate) fn due_for(&self, wait: Duration) -> Duration {
        wait.saturating_sub(self.timer_lag.before_end())
    }

    /// A one-way delay that few packets exceed. Half the round trip with a margin until the clock is known.
    pub(crate) fn one_way_delay(&self) -> Duration {
        if self.owd.is_empty() {
            let half = self.rtt.min() / 2;
            half + half / 4
        } else {
            self.owd.high()
        }
    }

    /// Rounds whose symbols can still arrive within `time_left`, when a round is over after `round_time`
    /// (DESIGN: n = 1 + floor((T - OWD - margin) / round time)); 0 when even a symbol sent now comes too late.
    pub(crate) fn rounds_within(&self, time_left: Duration, clock_margin: Duration) -> u16 {
        let margin = clock_margin + self.timer_lag.after_rounds();
        let Some(slack) = time_left.checked_sub(self.one_way_delay()) else {
            // A packet that is a little faster than most may still make it: the cliff is the least delay, not the quantile.
            return u16::from(time_left > self.one_way_delay_min());
        };
        let rounds = nanos(slack.saturating_sub(margin)) / nanos(self.round_time()).max(1);
        1 + rounds.min(99) as u16
    }

    /// A packet sent at `sent_at` has arrived, or is taken for lost.
    pub(crate) fn record_fate(&mut self, now: Instant, sent_at: Instant, lost: bool) -> Dependence {
        self.loss.record(lost);
        let dependence = self.bursts.record(sent_at, lost, self.loss.mean() as f32);
        self.level.record(now, lost, dependence);
        dependence
    }

    /// A packet that was taken for lost, when its fate depended so on the one before, has arrived: it counts once.
    pub(crate) fn correct_fate(&mut self, dependence: Dependence) {
        self.loss.correct();
        self.level.correct(dependence);
    }

    /// A packet that was taken for lost has not arrived for so long that it never will.
    pub(crate) fn confirm_loss(&mut self, dependence: Dependence) {
        self.level.confirm(dependence);
    }

    /// Time left in which a symbol can be sent that arrives within `time_left`, unless it takes longer than most do.
    pub(crate) fn slack(&self, time_left: Duration, clock_margin: Duration) -> Duration {
        time_left.saturating_sub(self.one_way_delay() + clock_margin + self.timer_lag.most())
    }

    /// Probability that the answer to what was sent `age` ago is still to come, or lost, given that it arrived.
    pub(crate) fn feedback_missing(&self, age: Duration) -> f64 {
        let lost = self.incoming_loss.mean();
        1.0 - (1.0 - lost) * (1.0 - self.rtt.share_beyond(age))
    }

    /// How long it takes to send so many bytes at the present rate.
    pub(crate) fn time_to_send(&self, bytes: u64) -> Duration {
        let rate = self.congestion.pacing_rate(self.rtt.smoothed());
        let seconds = bytes as f64 / rate.max(1.0);
        Duration::from_secs_f64(seconds.min(3600.0))
    }

    /// How long the end of so many bytes waits for acknowledgements of their beginning, since all of them are more than may be under way.
    pub(crate) fn windows_time(&self, bytes: u64) -> Duration {
        let round_trips = self.congestion.round_trips_for(bytes);
        self.rtt.smoothed().saturating_mul(round_trips)
    }

    /// After what time it is known which packets of a flight were lost, if later ones of it arrived: each of these is as likely.
    pub(crate) fn losses_known_after(&self) -> [Duration; 3] {
        let allowance = self.reordering.allowance();
        let least = if allowance.is_zero() {
            Duration::ZERO
        } else {
            self.rtt.smoothed()
        };
        [1.0 / 6.0, 0.5, 5.0 / 6.0].map(|share| self.rtt.quantile(share).max(least) + allowance)
    }

    fn one_way_delay_min(&self) -> Duration {
        if self.owd.is_empty() {
            self.rtt.min() / 2
        } else {
            self.owd.min()
        }
    }

    /// Probability that a packet sent now arrives within `time_left`, loss aside.
    pub(crate) fn on_time(&self, time_left: Duration) -> f64 {
        if self.owd.is_empty() {
            return f64::from(u8::from(time_left >= self.rtt.min() / 2));
        }
        self.owd.share_within(time_left)
    }

    /// Whether a packet of `bytes` may leave now, and if not because of pacing, when.
    pub(crate) fn may_send(&mut self, now: Instant, bytes: usize) -> Result<(), Blocked> {
        if !self.congestion.may_send(bytes) {
            self.congestion.on_held_back(now);
            self.pacer.wait_is_over();
            return Err(Blocked::Window);
        }
        let rate = self.congestion.pacing_rate(self.rtt.smoothed());
        let burst = self.congestion.burst(rate);
        match self.pacer.may_send(now, bytes, rate, burst) {
            None => Ok(()),
            Some(at) => {
                self.congestion.on_held_back(now);
                Err(Blocked::Pacing { until: at })
            }
        }
    }
}

impl Delays for Path {
    fn late_answers(&self, wait: Duration) -> f32 {
        self.rtt
            .share_late(wait.saturating_sub(self.timer_lag.of_round())) as f32
    }

    fn on_time(&self, time_left: Duration) -> f32 {
        self.on_time(time_left) as f32
    }

    fn one_way(&self, share: f64) -> Duration {
        if self.owd.is_empty() {
            self.one_way_delay()
        } else {
            self.owd.quantile(share)
        }
    }
}

/// Why a packet has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// The congestion window is full: the next acknowledgement or loss opens it.
    Window,
    /// The pacer lets it go at this time.
    Pacing { until: Instant },
}
