//! In what spells packets are lost: what of a population is adjusted until kernel TCP behaves on it as in the Pangolin paper.

use std::fmt;
use std::time::Duration;

use crate::channel::{LossModel, Outages};

/// How a client's losses, whatever their share, are distributed in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Structure {
    /// Share of a client's lost packets that are lost in outages: times of `outage_min` to `outage_max` in which nothing gets
    /// through, either way.
    pub outage_share: f64,
    /// The shortest outage.
    pub outage_min: Duration,
    /// The longest; a client's outages all take the same time, and clients' logarithms of it are spread evenly.
    pub outage_max: Duration,
    /// Mean length of the bad spells in which the other losses are.
    pub spell: Duration,
    /// Share of packets lost in a bad spell.
    pub loss_in_spell: f64,
}

/// A period has an outage or has none: rare enough that TCP has recovered before the next.
const OUTAGE_PERIOD: Duration = Duration::from_secs(30);

impl Structure {
    /// North America's and Europe's, fitted to the Pangolin paper's Table 1 with the kernel's TCP (CUBIC, Linux 6.18, all else
    /// as it comes) in the emulator: 3,000 and 1,500 clients, 60 messages each, latencies as round trips. What sets what: the 99 % quantile is one
    /// timeout, so it follows from round trips and the share of loss; spells of 50 to 100 ms end before the repair comes; the 99.5 % and 99.9 %
    /// quantiles are outages: their share of the loss and their length.
    ///
    /// | ms | 95 % | 99 % | 99.5 % | 99.9 % |
    /// |---|---|---|---|---|
    /// | North America, paper | 156 | 500 | 765 | 3284 |
    /// | here, mean of seeds 1 to 3 (with 0.17 for 0.16) | 148 | 503 | 769 | 3555 |
    /// | least and greatest of the seeds | 148-149 | 495-509 | 745-810 | 3055-4067 |
    /// | Europe, paper | 264 | 864 | 1429 | 4141 |
    /// | here, mean of seeds 1 to 3 | 263 | 849 | 1447 | 4151 |
    /// | least and greatest of the seeds | 262-264 | 839-855 | 1435-1454 | 3773-4393 |
    ///
    /// The 95 % interval of a single run's 99.9 % quantile is some 25 % either way: it rests on the outages of a hundred clients.
    pub const FITTED: [Self; 2] = [
        Self {
            outage_share: 0.16,
            outage_min: Duration::from_millis(2500),
            outage_max: Duration::from_millis(6500),
            spell: Duration::from_millis(50),
            loss_in_spell: 0.6,
        },
        Self {
            outage_share: 0.4,
            outage_min: Duration::from_millis(500),
            outage_max: Duration::from_millis(5500),
            spell: Duration::from_millis(100),
            loss_in_spell: 0.6,
        },
    ];

    /// The same share of loss, none of it in outages.
    #[must_use]
    pub const fn without_outages(mut self) -> Self {
        self.outage_share = 0.0;
        self
    }

    /// The outages of a client with so much loss; `rank` says how long they are.
    pub(super) fn dark(&self, loss: f64, rank: f64) -> Option<Outages> {
        let share_of_time = loss * self.outage_share;
        if share_of_time <= 0.0 {
            return None;
        }
        let (min, max) = (self.outage_min.as_secs_f64(), self.outage_max.as_secs_f64());
        let length = min * libm::pow(max / min, rank);
        let share = share_of_time * OUTAGE_PERIOD.as_secs_f64() / length;
        Some(Outages {
            period: OUTAGE_PERIOD,
            length: Duration::from_secs_f64(length),
            share: share.min(1.0),
        })
    }

    /// Losses of a share, in spells.
    pub(super) fn bursts(&self, share: f64) -> LossModel {
        if share >= self.loss_in_spell {
            return LossModel::Uniform(share);
        }
        LossModel::Gilbert {
            loss_share: share,
            mean_burst: self.spell,
            loss_in_good: 0.0,
            loss_in_bad: self.loss_in_spell,
        }
    }
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Losses come in bad spells of {:?} on average with {:.0} % lost in them; ",
            self.spell,
            self.loss_in_spell * 100.0
        )?;
        if self.outage_share > 0.0 {
            write!(
                f,
                "{:.0} % of the lost packets are lost in outages of {:?} to {:?} that take both directions.",
                self.outage_share * 100.0,
                self.outage_min,
                self.outage_max
            )
        } else {
            write!(f, "there are no outages.")
        }
    }
}
