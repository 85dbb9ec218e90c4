//! When messages are sent, and how large they are: in virtual time, from a seed.
//!
//! [`Traffic`] says how, as a scenario file does; [`Source`] is that made ready, once for all sessions; a [`Generator`] is the traffic
//! of one stream in one session. Each random number
//! is addressed by the message's number, so the traffic is the same whatever the network does to it. (Of a saturating stream
//! only the sizes are: how many messages there are is up to the network.)

use std::sync::Arc;
use std::time::Duration;

use super::shape::Shape;
use super::sizes::Sizes;
use crate::chance::{Chance, Purpose};

/// The traffic of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    /// When messages are sent.
    pub pattern: Pattern,
    /// How large they are.
    pub sizes: Sizes,
    /// None is sent before this.
    pub start: Duration,
    /// None is sent from here on; None: until the end of the scenario.
    pub stop: Option<Duration>,
    /// Of a saturating stream: none is sent from here until there.
    pub pause: Option<(Duration, Duration)>,
    /// Messages of the same instant do not share packets.
    pub has_own_packets: bool,
}

/// When messages are sent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Pattern {
    /// One each interval.
    Periodic {
        /// The interval.
        every: Duration,
        /// Each message is held back by up to this, evenly; at most `every`.
        jitter: Duration,
        /// Whether all sessions send at the same instants, as a server does that broadcasts; otherwise each has its own phase.
        is_together: bool,
    },
    /// At random, so many a second on average, independently of each other.
    Poisson {
        /// Messages a second.
        rate_per_s: f64,
    },
    /// As a game does.
    Shape(Shape),
    /// One message, when the stream starts. Its size is `bytes`, not `Traffic::sizes`.
    Bulk {
        /// Its size.
        bytes: u64,
    },
    /// A message whenever the stream takes one.
    Saturate,
}

/// When the next message is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// So long after the scenario's start.
    At(Duration),
    /// As soon as the stream takes one, but not before (`start`) and not after (`stop`) these.
    WhenRoom {
        /// Not before.
        start: Duration,
        /// Not from here on.
        stop: Option<Duration>,
        /// Not between these.
        pause: Option<(Duration, Duration)>,
    },
    /// There is none.
    Never,
}

/// A message to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Its number within stream and session, from 0. (Its stamp's number is another when some were refused: that of
    /// [`StreamTally::next_number`](super::StreamTally::next_number).)
    pub number: u64,
    /// Its size.
    pub bytes: u64,
}

/// Traffic that is ready to be drawn, for all sessions: cheap to clone.
#[derive(Debug, Clone)]
pub struct Source {
    prepared: Arc<(Traffic, Gaps)>,
}

/// The traffic of one stream in one session.
#[derive(Debug, Clone)]
pub struct Generator {
    source: Source,
    chance: Chance,
    number: u64,
    /// When message `number` is sent, but for its jitter.
    at_ns: u64,
}

#[derive(Debug, Clone)]
enum Gaps {
    Fixed(u64),
    Exponential {
        mean_ns: f64,
    },
    Curve(super::curve::QuantileCurve),
    /// No second message, or no time of its own.
    None,
}

/// Indices of the random numbers; `sizes.rs` has those from 8.
const GAP: u64 = 0;
const JITTER: u64 = 1;
const PHASE: u64 = 2;
/// Keeps the numbers apart from those of paths and hosts.
const STREAM: u64 = 0x7aff_1c00_0000_0000;

impl Source {
    /// Makes traffic ready.
    pub fn new(traffic: &Traffic) -> Self {
        let gaps = match &traffic.pattern {
            Pattern::Periodic { every, .. } => Gaps::Fixed(nanos(*every).max(1)),
            Pattern::Poisson { rate_per_s } => Gaps::Exponential {
                mean_ns: 1e9 / rate_per_s,
            },
            Pattern::Shape(shape) => Gaps::Curve(shape.gaps_ms()),
            Pattern::Bulk { .. } | Pattern::Saturate => Gaps::None,
        };
        Self {
            prepared: Arc::new((traffic.clone(), gaps)),
        }
    }

    /// The traffic of stream `stream` (its place in the file) of session `session`.
    pub fn generator(&self, seed: u64, session: u32, stream: u8) -> Generator {
        Generator::new(self.clone(), seed, session, stream)
    }

    fn traffic(&self) -> &Traffic {
        &self.prepared.0
    }

    fn gaps(&self) -> &Gaps {
        &self.prepared.1
    }
}

impl Generator {
    fn new(source: Source, seed: u64, session: u32, stream: u8) -> Self {
        let chance = Chance::new(seed, STREAM + u64::from(session) * 256 + u64::from(stream));
        let traffic = source.traffic();
        let at_ns = nanos(traffic.start);
        // The stream is met in the middle of a gap.
        let is_in_step = matches!(
            traffic.pattern,
            Pattern::Periodic {
                is_together: true,
                ..
            } | Pattern::Bulk { .. }
                | Pattern::Saturate
        );
        let mut generator = Self {
            source,
            chance,
            number: 0,
            at_ns,
        };
        if !is_in_step {
            let part = chance.share(Purpose::Workload, 0, PHASE);
            generator.at_ns += (part * generator.gap_ns() as f64) as u64;
        }
        generator
    }

    /// When the next message is to be sent. Never falls.
    pub fn next(&self) -> Next {
        let &Traffic {
            start, stop, pause, ..
        } = self.source.traffic();
        if self.source.traffic().pattern == Pattern::Saturate {
            return Next::WhenRoom { start, stop, pause };
        }
        if matches!(self.source.gaps(), Gaps::None) && self.number > 0 {
            return Next::Never;
        }
        let at = Duration::from_nanos(self.at_ns.saturating_add(self.jitter_ns()));
        if stop.is_some_and(|stop| at >= stop) {
            Next::Never
        } else {
            Next::At(at)
        }
    }

    /// The next message, whatever the time.
    pub fn peek(&self) -> Due {
        let traffic = self.source.traffic();
        Due {
            number: self.number,
            bytes: match traffic.pattern {
                Pattern::Bulk { bytes } => bytes,
                _ => u64::from(traffic.sizes.draw(&self.chance, self.number)),
            },
        }
    }

    /// Takes the next message, whatever the time: the caller has waited for it.
    pub fn take(&mut self) -> Due {
        let due = self.peek();
        // The gap after message n is gap n + 1: gap 0 came before the first.
        self.number += 1;
        self.at_ns = self.at_ns.saturating_add(self.gap_ns());
        due
    }

    /// The gap before message `number`.
    fn gap_ns(&self) -> u64 {
        match self.source.gaps() {
            Gaps::Fixed(ns) => *ns,
            Gaps::Exponential { mean_ns } => {
                (mean_ns * self.chance.exponential(Purpose::Workload, self.number, GAP)) as u64
            }
            Gaps::Curve(curve) => {
                let ms = curve.value(self.chance.share(Purpose::Workload, self.number, GAP));
                (ms * 1e6) as u64
            }
            Gaps::None => 0,
        }
    }

    fn jitter_ns(&self) -> u64 {
        match self.source.traffic().pattern {
            Pattern::Periodic { jitter, .. } => {
                let ns = nanos(jitter);
                self.chance
                    .below(ns, Purpose::Workload, self.number, JITTER)
            }
            _ => 0,
        }
    }
}

impl Traffic {
    /// Messages a second on average; None of a bulk message, and where the network decides.
    pub fn messages_per_s(&self) -> Option<f64> {
        match &self.pattern {
            Pattern::Periodic { every, .. } => Some(1.0 / every.as_secs_f64()),
            Pattern::Poisson { rate_per_s } => Some(*rate_per_s),
            Pattern::Shape(shape) => Some(1e3 / shape.gaps_ms().mean()),
            Pattern::Bulk { .. } | Pattern::Saturate => None,
        }
    }
}

/// Up to 584 years.
const fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn traffic(pattern: Pattern) -> Traffic {
        Traffic {
            pattern,
            sizes: Sizes::Fixed(100),
            start: ms(500),
            stop: Some(Duration::from_secs(100)),
            pause: None,
            has_own_packets: false,
        }
    }

    /// Times of all messages until the stream stops.
    fn times(traffic: &Traffic, seed: u64, session: u32) -> Vec<Duration> {
        let mut generator = Source::new(traffic).generator(seed, session, 0);
        let mut times = Vec::new();
        while let Next::At(at) = generator.next() {
            assert_eq!(generator.take().number, times.len() as u64);
            times.push(at);
        }
        times
    }

    #[test]
    fn periodic_is_periodic() {
        let together = traffic(Pattern::Periodic {
            every: ms(40),
            jitter: Duration::ZERO,
            is_together: true,
        });
        let expected: Vec<_> = (0..2488).map(|i| ms(500 + 40 * i)).collect();
        assert_eq!(times(&together, 1, 0), expected);
        assert_eq!(times(&together, 2, 5), expected);
        let apart = traffic(Pattern::Periodic {
            every: ms(40),
            jitter: Duration::ZERO,
            is_together: false,
        });
        let (first, second) = (times(&apart, 1, 0), times(&apart, 1, 1));
        assert!(first[0] != second[0] && first[0] >= ms(500) && first[0] < ms(540));
        assert!(first.windows(2).all(|pair| pair[1] - pair[0] == ms(40)));
    }

    #[test]
    fn jitter_keeps_order_and_rate() {
        let jittered = traffic(Pattern::Periodic {
            every: ms(40),
            jitter: ms(40),
            is_together: false,
        });
        let times = times(&jittered, 1, 0);
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!((2484..=2489).contains(&times.len()), "{}", times.len());
        assert!(times.windows(2).any(|pair| pair[1] - pair[0] < ms(20)));
    }

    #[test]
    fn poisson_has_its_rate_and_spread() {
        let poisson = traffic(Pattern::Poisson { rate_per_s: 50.0 });
        let times = times(&poisson, 4, 0);
        // 4975 expected, standard deviation 71.
        assert!(times.len().abs_diff(4975) < 280, "{}", times.len());
        let gaps: Vec<_> = times
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).as_secs_f64())
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let above = gaps.iter().filter(|&&gap| gap > mean).count() as f64 / gaps.len() as f64;
        // e^-1 of the gaps are longer than the mean.
        assert!((above - 0.368).abs() < 0.03, "{above}");
    }

    #[test]
    fn shapes_have_their_rate() {
        let mut bzflag = traffic(Pattern::Shape(Shape::BzFlag));
        bzflag.sizes = Shape::BzFlag.sizes();
        let sent: usize = (0..20)
            .map(|session| times(&bzflag, 1, session).len())
            .sum();
        // 20 sessions of 99.5 s at 24 ms: 82,900.
        assert!((sent as f64 / 82_917.0 - 1.0).abs() < 0.03, "{sent}");
        assert!((bzflag.messages_per_s().unwrap() - 41.667).abs() < 0.01);
    }

    #[test]
    fn bulk_is_one_message() {
        let bulk = traffic(Pattern::Bulk { bytes: 5_000_000 });
        let mut generator = Source::new(&bulk).generator(1, 0, 0);
        assert_eq!(generator.next(), Next::At(ms(500)));
        let due = generator.take();
        assert_eq!((due.number, due.bytes), (0, 5_000_000));
        assert_eq!(generator.next(), Next::Never);
    }

    #[test]
    fn saturating_waits_for_room() {
        let mut generator = Source::new(&traffic(Pattern::Saturate)).generator(1, 0, 0);
        for number in 0..10 {
            let room = Next::WhenRoom {
                start: ms(500),
                stop: Some(Duration::from_secs(100)),
                pause: None,
            };
            assert_eq!(generator.next(), room);
            assert_eq!(generator.take(), Due { number, bytes: 100 });
        }
    }

    #[test]
    fn the_seed_decides() {
        let poisson = traffic(Pattern::Poisson { rate_per_s: 5.0 });
        assert_eq!(times(&poisson, 1, 0), times(&poisson, 1, 0));
        assert_ne!(times(&poisson, 1, 0), times(&poisson, 2, 0));
        assert_ne!(times(&poisson, 1, 0), times(&poisson, 1, 1));
    }
}
