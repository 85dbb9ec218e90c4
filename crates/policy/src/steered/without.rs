//! The steered policy with one of its parts taken away, for measuring what the part buys.

use core::fmt;

use crate::{Action, Answers, Burst, Hurries, Policy, Situation, Steered};

/// A part of [`Steered`] that can be taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// One price for the whole stream, steered by what was achieved; without it each message by itself just meets the target.
    Steering,
    /// The present loss as a state that lasts; without it the upper bound of the estimate, as the older policies have it.
    Level,
    /// Bursts, and the last flight spread over the time that is left; without it losses are taken to be independent.
    Spacing,
    /// The probability that a symbol sent in the last round is in time; without it a round is in time or is none.
    Arrival,
    /// The belief about symbols that nobody has answered for; without it silence is loss.
    Silence,
    /// The choice of how many rounds to use and how long each waits; without it there are as many as fit.
    Waiting,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Steering,
        Self::Level,
        Self::Spacing,
        Self::Arrival,
        Self::Silence,
        Self::Waiting,
    ];

    /// Its name, as in `steered-without(spacing)`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Steering => "steering",
            Self::Level => "level",
            Self::Spacing => "spacing",
            Self::Arrival => "arrival",
            Self::Silence => "silence",
            Self::Waiting => "waiting",
        }
    }

    /// The part of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }

    /// The situation as it looks without it.
    fn hidden(self, situation: &Situation) -> Situation {
        let mut seen = *situation;
        match self {
            Self::Steering => seen.price = None,
            Self::Level => (seen.loss_mean, seen.burst.tells) = (seen.loss, 0.0),
            Self::Spacing => {
                seen.burst = Burst {
                    correlation: 0.0,
                    surely: 0.0,
                    again: 0.0,
                    uneven: 0.0,
                    ..seen.burst
                };
            }
            Self::Arrival => {
                (seen.on_time, seen.last_chance) = (1.0, 0.0);
                seen.hurries = seen.hurries.sure();
            }
            Self::Silence => {
                seen.answers = Answers::default();
            }
            // That rounds are patient is the policy's: see `Without::whole`.
            Self::Waiting => seen.hurries = Hurries::NONE,
        }
        seen
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// [`Steered`] without one of its parts: what the others are worth together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Without {
    /// The whole policy.
    pub policy: Steered,
    /// What it does not see.
    pub part: Part,
}

impl Without {
    /// The policy that sees what is not hidden.
    const fn whole(&self) -> Steered {
        match self.part {
            Part::Waiting => self.policy.without_patience(),
            _ => self.policy,
        }
    }
}

impl Policy for Without {
    fn name(&self) -> &'static str {
        match self.part {
            Part::Steering => "steered-without(steering)",
            Part::Level => "steered-without(level)",
            Part::Spacing => "steered-without(spacing)",
            Part::Arrival => "steered-without(arrival)",
            Part::Silence => "steered-without(silence)",
            Part::Waiting => "steered-without(waiting)",
        }
    }

    fn decide(&self, situation: &Situation) -> Action {
        self.whole().decide(&self.part.hidden(situation))
    }

    fn expected_symbols(&self, source_symbols: u8, rounds: u16, loss: f32) -> f32 {
        self.policy.expected_symbols(source_symbols, rounds, loss)
    }

    fn miss_at_price(&self, situation: &Situation) -> Option<f32> {
        if self.part == Part::Steering {
            return None;
        }
        self.whole().miss_at_price(&self.part.hidden(situation))
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::Timing;

    #[test]
    fn parts_are_read_as_they_are_written() {
        for part in Part::ALL {
            assert_eq!(Part::by_name(part.name()), Some(part));
        }
        assert_eq!(Part::by_name("luck"), None);
    }

    #[test]
    fn what_is_hidden_changes_nothing() {
        let policy = Steered::new(0.001).unwrap();
        let plain = Situation::first(4, 1, 0.1);
        let bursty = Situation {
            burst: Burst {
                correlation: 0.9,
                surely: 0.8,
                lasts: Duration::from_millis(20),
                again: 0.0,
                tells: 0.0,
                uneven: 0.0,
                was_lost: true,
                age: Duration::from_millis(3),
            },
            timing: Timing {
                slack: Duration::from_millis(300),
                ..Timing::default()
            },
            ..plain
        };
        policy.build_all();
        let blind = Without {
            policy,
            part: Part::Spacing,
        };
        assert_ne!(policy.decide(&bursty), policy.decide(&plain));
        assert_eq!(blind.decide(&bursty), policy.decide(&plain));
        let alone = Without {
            policy,
            part: Part::Steering,
        };
        assert_eq!(alone.miss_at_price(&plain), None);
    }
}
