//! Independent losses: what the protocol spends once it has learned them, beside the exact constrained optimum.

use std::time::Duration;

use punctual_lab::channel::{ChannelSpec, DelayModel, LossModel, PathSpec};
use punctual_lab::simulate::{MessageFate, SimulateOptions, simulate};
use punctual_lab::stats::{Cluster, Interval, share_interval};
use punctual_policy::PolicyKind;
use punctual_policy::solve::{Problem, solve};

/// A round trip is 60 ms: time for so many rounds, and part of one more.
const DEADLINE_MS: [u64; 3] = [78, 120, 180];
const OWD: Duration = Duration::from_millis(30);
/// Share of messages that may be late.
const TARGET: f64 = 1e-3;
/// Messages of each session that are not judged. What is learned from them differs from session to session, and with it the cost.
const LEARNING: u64 = 20_000;
const SESSIONS: u64 = 8;

/// One promise over one path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) loss: f64,
    pub(crate) rounds: u16,
    pub(crate) symbols: u8,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Achieved {
    pub(crate) late_95: Interval,
    pub(crate) recovery: f64,
}

impl Achieved {
    pub(crate) fn is_met(&self) -> bool {
        self.late_95.low <= TARGET
    }
}

impl Row {
    /// The least recovery overhead that keeps the target; and what is late is repeated until it arrives.
    pub(crate) fn optimum(&self) -> f64 {
        let problem = Problem {
            loss: self.loss,
            source_symbols: self.symbols,
            rounds: self.rounds,
            miss_target: TARGET,
        };
        let optimum = solve(PolicyKind::Exact, &problem).expect("in range");
        let symbols = f64::from(self.symbols);
        let afterwards = optimum.miss_probability / (1.0 - self.loss);
        (optimum.expected_symbols + afterwards) / symbols - 1.0
    }

    /// By how much more may be spent.
    pub(crate) const fn allowed(&self) -> f64 {
        if self.rounds == 1 { 0.02 } else { 0.001 }
    }

    /// So many messages in all, once the path is known.
    pub(crate) fn play(&self, messages: u64, seed: u64) -> Achieved {
        let learning = LEARNING * SESSIONS;
        // The shorter run is the beginning of the longer one.
        let before = self.simulate(learning, seed);
        let all = self.simulate(learning + messages, seed);
        let is_late = |fate: &MessageFate| *fate != MessageFate::OnTime;
        let fates = &all.fates[learning as usize..];
        let clusters: Vec<Cluster> = (0..SESSIONS as usize)
            .map(|session| {
                let own = fates.iter().skip(session).step_by(SESSIONS as usize);
                Cluster {
                    hits: own.clone().filter(|fate| is_late(fate)).count() as u64,
                    of: own.count() as u64,
                }
            })
            .collect();
        let sent = |overhead: f64, messages: u64| (1.0 + overhead) * messages as f64;
        let spent = sent(all.summary.recovery_overhead, learning + messages)
            - sent(before.summary.recovery_overhead, learning);
        Achieved {
            late_95: share_interval(&clusters, seed),
            recovery: spent / messages as f64 - 1.0,
        }
    }

    fn simulate(&self, messages: u64, seed: u64) -> punctual_lab::simulate::PolicyResult {
        let channel = |loss| ChannelSpec {
            delay: DelayModel::Fixed(OWD),
            loss,
            ..ChannelSpec::default()
        };
        let network = PathSpec::new(
            "uniform",
            "a test",
            channel(LossModel::Uniform(self.loss)),
            channel(LossModel::None),
        );
        let deadline = DEADLINE_MS[usize::from(self.rounds) - 1];
        let options = SimulateOptions {
            symbols: Some(self.symbols),
            message_bytes: 1000 * usize::from(self.symbols),
            sessions: SESSIONS as u32,
            interval: Duration::from_millis(50),
            messages,
            keeps_fates: true,
            seed,
            ..SimulateOptions::new(network, Duration::from_millis(deadline))
        };
        simulate(&options, |_| {})
            .expect("sessions begin")
            .remove(0)
    }
}
