//! The optimum of a sender that knows the share and the length of bursts of losses: what policies that have to learn them are held
//! against (Gilbert's model; one multiplier, over deficit, time left and the fate of the last packet).

use std::time::Duration;

use punctual_lab::channel::{ChannelSpec, DelayModel, LossModel, PathSpec};
use punctual_lab::simulate::{PolicyResult, SimulateOptions, simulate};
use punctual_policy::PolicyKind;

const RTT: Duration = Duration::from_millis(60);
const OWD: Duration = Duration::from_millis(30);

/// One promise over one path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) path: Gilbert,
    /// Source symbols of a message.
    pub(crate) symbols: usize,
    pub(crate) deadline: Duration,
    /// Share of messages that may be late.
    pub(crate) target: f64,
    pub(crate) messages: u64,
}

/// What came of it.
pub(crate) struct Compared {
    /// Recovery overhead of the sender that knows; None when it cannot meet the target either. What misses its deadline is repeated until it arrives, as
    /// by any reliable sender.
    pub(crate) knows: Option<f64>,
    pub(crate) results: Vec<PolicyResult>,
}

impl Row {
    pub(crate) fn play(&self, policies: &[PolicyKind]) -> Compared {
        let Gilbert { loss, burst_ms } = self.path;
        let spec = |loss| ChannelSpec {
            delay: DelayModel::Fixed(OWD),
            loss,
            ..ChannelSpec::default()
        };
        let bursts = spec(LossModel::Gilbert {
            loss_share: loss,
            mean_burst: Duration::from_secs_f64(burst_ms / 1e3),
            loss_in_good: 0.0,
            loss_in_bad: 1.0,
        });
        let network = PathSpec::new("bursts", "a test", bursts, spec(LossModel::None));
        let options = SimulateOptions {
            symbols: Some(self.symbols as u8),
            message_bytes: 1000,
            sessions: 2,
            // No multiple of a millisecond, by which the emulator's fates change: a symbol 47.9 ms after the first would always have that of 47.
            interval: Duration::from_micros(50_037),
            messages: self.messages,
            on_time: 1.0 - self.target,
            policies: policies.to_vec(),
            ..SimulateOptions::new(network, self.deadline)
        };
        let knows = Knowing::new(self.path, self.symbols, self.deadline).overhead(self.target);
        Compared {
            knows,
            results: simulate(&options, |_| {}).expect("the path lets sessions begin"),
        }
    }
}

/// Bursts that take everything, and nothing between them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gilbert {
    /// Share of the time that they take.
    pub(crate) loss: f64,
    /// Their mean length.
    pub(crate) burst_ms: f64,
}

impl Gilbert {
    /// Probability that a packet is lost so long after one that was, or was not.
    fn lost_after(self, ms: f64, was_lost: bool) -> f64 {
        let kept = (-ms / (self.burst_ms * (1.0 - self.loss))).exp();
        self.loss + (f64::from(u8::from(was_lost)) - self.loss) * kept
    }
}

/// A sender that knows: it sends as many symbols as it likes, one by one or as many at once as are missing, as far apart as it likes, and hears of all
/// of them a round trip after the last.
struct Knowing {
    path: Gilbert,
    symbols: usize,
    /// Steps of time until the last symbol may leave.
    steps: usize,
    step_ms: f64,
    /// By steps left, then deficit, then whether the last packet was lost: (symbols, misses) from there.
    table: Vec<(f64, f64)>,
}

const MOST: usize = 40;

impl Knowing {
    fn new(path: Gilbert, symbols: usize, deadline: Duration) -> Self {
        let slack_ms = (deadline - OWD).as_secs_f64() * 1e3;
        let steps = 24;
        Self {
            path,
            symbols,
            steps,
            step_ms: slack_ms / steps as f64,
            table: vec![(0.0, 0.0); (steps + 1) * (symbols + 1) * 2],
        }
    }

    const fn at(&self, left: usize, deficit: usize, was_lost: usize) -> usize {
        (left * (self.symbols + 1) + deficit) * 2 + was_lost
    }

    /// (Symbols, misses) of a message at this price, sent at any time.
    fn solve(&mut self, price: f64) -> (f64, f64) {
        let rtt_steps = (RTT.as_secs_f64() * 1e3 / self.step_ms).ceil() as usize;
        let rtt_ms = RTT.as_secs_f64() * 1e3;
        for left in 0..=self.steps {
            for deficit in 1..=self.symbols {
                for was_lost in 0..2 {
                    let first = self.path.lost_after(rtt_ms, was_lost == 1);
                    let best = self.best(left, deficit, first, rtt_steps, price);
                    let place = self.at(left, deficit, was_lost);
                    self.table[place] = best;
                }
            }
        }
        self.best(self.steps, self.symbols, self.path.loss, rtt_steps, price)
    }

    /// The best flight whose first symbol is lost with probability `first`.
    fn best(&self, left: usize, deficit: usize, first: f64, rtt: usize, price: f64) -> (f64, f64) {
        let mut best = (f64::INFINITY, (0.0, 0.0));
        let ways: &[usize] = if deficit > 1 { &[1, deficit] } else { &[1] };
        for (lasts, &together) in
            (0..=left).flat_map(|lasts| ways.iter().map(move |way| (lasts, way)))
        {
            for sent in deficit..=MOST {
                if sent <= together && lasts > 0 {
                    continue;
                }
                let lasts_ms = lasts as f64 * self.step_ms;
                let fates = self.flight(deficit, first, sent, together, lasts_ms);
                let all = self.with_what_follows(&fates, sent, left.checked_sub(lasts + rtt));
                let value = all.0 + price * all.1;
                if value < best.0 {
                    best = (value, all);
                }
                if sent as f64 > best.0 {
                    break;
                }
            }
        }
        best.1
    }

    /// (Symbols, misses) of a flight of `sent` with these fates, where so many steps are left when its answers have come, if any.
    fn with_what_follows(
        &self,
        fates: &[[f64; 2]],
        sent: usize,
        left: Option<usize>,
    ) -> (f64, f64) {
        let deficit = fates.len() - 1;
        let mut all = (sent as f64, 0.0);
        for (arrived, [good, bad]) in fates.iter().enumerate().take(deficit) {
            for (was_lost, chance) in [(0, good), (1, bad)] {
                let missing = deficit - arrived;
                let (symbols, misses) = match left {
                    Some(left) => self.table[self.at(left, missing, was_lost)],
                    None => (missing as f64 * self.repeated(was_lost == 1), 1.0),
                };
                all.0 += chance * symbols;
                all.1 += chance * misses;
            }
        }
        all
    }

    /// How often what is missing at the deadline is sent until it arrives, a round trip after the last packet and after each that is lost.
    fn repeated(&self, was_lost: bool) -> f64 {
        let rtt_ms = RTT.as_secs_f64() * 1e3;
        let again = self.path.lost_after(rtt_ms, true);
        1.0 + self.path.lost_after(rtt_ms, was_lost) / (1.0 - again)
    }

    /// By arrivals (all that is needed counts as one more), then by whether the last one was lost. So many leave together.
    fn flight(
        &self,
        deficit: usize,
        first: f64,
        sent: usize,
        together: usize,
        lasts_ms: f64,
    ) -> Vec<[f64; 2]> {
        let moments = sent.div_ceil(together);
        let apart_ms = lasts_ms / (moments - 1).max(1) as f64;
        let mut fates = vec![[0.0; 2]; deficit + 1];
        fates[0][1] = first;
        fates[1.min(deficit)][0] = 1.0 - first;
        for symbol in 1..sent {
            let apart_ms = if symbol % together == 0 {
                apart_ms
            } else {
                0.0
            };
            let stays = self.path.lost_after(apart_ms, true);
            let turns = self.path.lost_after(apart_ms, false);
            let mut next = vec![[0.0; 2]; deficit + 1];
            for (arrived, [good, bad]) in fates.iter().enumerate() {
                let lost = good * turns + bad * stays;
                next[arrived][1] += lost;
                next[(arrived + 1).min(deficit)][0] += good + bad - lost;
            }
            fates = next;
        }
        fates
    }

    /// Recovery overhead of the best mixture that meets the target; None if nothing does.
    fn overhead(&mut self, target: f64) -> Option<f64> {
        let k = self.symbols as f64;
        let (mut cheap, mut low) = (self.solve(0.0), 0.0);
        if cheap.1 <= target {
            return Some(cheap.0 / k - 1.0);
        }
        let mut high = 20.0_f64;
        let mut dear = self.solve(high.exp2());
        if dear.1 > target {
            return None;
        }
        for _ in 0..18 {
            let middle = f64::midpoint(low, high);
            let tried = self.solve(middle.exp2());
            if tried.1 <= target {
                (dear, high) = (tried, middle);
            } else {
                (cheap, low) = (tried, middle);
            }
        }
        let weight = (cheap.1 - target) / (cheap.1 - dear.1);
        Some((weight * dear.0 + (1.0 - weight) * cheap.0) / k - 1.0)
    }
}
