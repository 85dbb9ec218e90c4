//! Who arrived when, and what it cost: from counts to a summary. Everything counts from the first message; nothing is left out as
//! warm-up.

use punctual_lab::stats::{Cluster, Latencies, Summary, Turns, share_interval};
use punctual_policy::PolicyKind;
use punctual_proto::SessionStats;

use super::settings::Settings;
use super::stamp;

/// Arrivals of one policy.
#[derive(Debug)]
pub(super) struct Arrivals {
    deadline_nanos: u64,
    message_bytes: usize,
    messages: u64,
    /// A bit a message.
    arrived: Vec<u64>,
    /// What can be taken as independent, and of each cluster of it:
    turns: Turns,
    late_of: Vec<u32>,
    arrived_of: Vec<u32>,
    latencies: Latencies,
    /// Messages that came more than once, or damaged: a broken promise.
    wrong: u64,
}

/// What an arrival was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    OnTime,
    Late,
    /// No message of ours, or one that was here before.
    Wrong,
}

impl Arrivals {
    pub(super) fn new(settings: &Settings) -> Self {
        let turns = settings.turns();
        Self {
            deadline_nanos: settings.deadline.as_nanos() as u64,
            message_bytes: settings.message_bytes,
            messages: settings.messages(),
            arrived: vec![0; settings.messages().div_ceil(64) as usize],
            turns,
            late_of: vec![0; turns.count()],
            arrived_of: vec![0; turns.count()],
            latencies: Latencies::default(),
            wrong: 0,
        }
    }

    /// A message was delivered at `now_nanos`.
    pub(super) fn on_message(&mut self, now_nanos: u64, message: &[u8]) -> Arrival {
        let stamp = stamp::read(message)
            .filter(|&(number, _)| message.len() == self.message_bytes && number < self.messages);
        let place = stamp.and_then(|(number, sent_nanos)| {
            let word = &mut self.arrived[(number / 64) as usize];
            let is_new = *word & (1 << (number % 64)) == 0;
            *word |= 1 << (number % 64);
            is_new.then_some((number, sent_nanos))
        });
        let Some((number, sent_nanos)) = place else {
            self.wrong += 1;
            return Arrival::Wrong;
        };
        let cluster = self.turns.cluster_of(number);
        let latency_nanos = now_nanos.saturating_sub(sent_nanos);
        self.arrived_of[cluster] += 1;
        self.latencies.record(latency_nanos.div_ceil(1000));
        if latency_nanos > self.deadline_nanos {
            self.late_of[cluster] += 1;
            Arrival::Late
        } else {
            Arrival::OnTime
        }
    }

    /// Messages that came twice or damaged. Never, unless there is a bug.
    pub(super) const fn wrong(&self) -> u64 {
        self.wrong
    }

    /// The summary of a run in which `sent_of` messages of each cluster were sent.
    pub(super) fn summary(
        mut self,
        kind: PolicyKind,
        sent_of: &[u32],
        totals: &Totals,
        seed: u64,
    ) -> (Summary, Latencies) {
        let sent: u64 = sent_of.iter().map(|&sent| u64::from(sent)).sum();
        let arrived: u64 = self.arrived_of.iter().map(|&n| u64::from(n)).sum();
        let lost = sent.saturating_sub(arrived);
        for _ in 0..lost {
            self.latencies.record_lost();
        }
        let clusters: Vec<Cluster> = sent_of
            .iter()
            .zip(self.late_of.iter().zip(&self.arrived_of))
            .map(|(&sent, (&late, &arrived))| Cluster {
                hits: u64::from(late) + u64::from(sent.saturating_sub(arrived)),
                of: u64::from(sent),
            })
            .filter(|cluster| cluster.of > 0)
            .collect();
        let late: u64 = clusters.iter().map(|cluster| cluster.hits).sum();
        let summary = Summary {
            policy: kind.to_string(),
            messages: sent,
            latency_ms: self.latencies.quantiles(),
            late_share: late as f64 / sent.max(1) as f64,
            late_share_95: share_interval(&clusters, seed),
            predicted_late_share: totals.predicted_late_share(),
            recovery_overhead: totals.recovery_overhead(),
            encapsulation_overhead: totals.encapsulation_overhead(),
            lost_messages: lost,
            seed,
        };
        (summary, self.latencies)
    }
}

/// Counts of sessions, added up.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    predicted_misses: f64,
    promised: f64,
    symbols: f64,
    source_symbols: f64,
    encapsulation_bytes: f64,
    message_bytes: f64,
}

impl Totals {
    /// Adds a session's counts.
    pub(crate) fn add(&mut self, stats: &SessionStats) {
        self.predicted_misses += stats.predicted_misses;
        self.promised += stats.messages_promised as f64;
        self.symbols += stats.symbols_sent as f64;
        self.source_symbols += stats.source_symbols as f64;
        self.encapsulation_bytes += stats.encapsulation_bytes as f64;
        self.message_bytes += stats.message_bytes_sent as f64;
    }

    /// The late share that the policy itself predicted; `None` when nothing was promised.
    pub(crate) fn predicted_late_share(&self) -> Option<f64> {
        (self.promised > 0.0).then(|| self.predicted_misses / self.promised)
    }

    /// Symbols beyond those needed, as a share of those.
    pub(crate) fn recovery_overhead(&self) -> f64 {
        if self.source_symbols > 0.0 {
            self.symbols / self.source_symbols - 1.0
        } else {
            0.0
        }
    }

    /// Bytes of headers and tags, as a share of the messages' bytes; `None` when those had none.
    pub(crate) fn encapsulation_overhead(&self) -> Option<f64> {
        (self.message_bytes > 0.0).then(|| self.encapsulation_bytes / self.message_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: super::super::Args,
    }

    fn settings(line: &str) -> Settings {
        let words = std::iter::once("demo").chain(line.split_whitespace());
        Settings::of(&Line::parse_from(words).args).unwrap()
    }

    /// Goal: late, lost and repeated messages are told apart.   Method: three messages to two clients, one each of these.
    #[test]
    fn arrivals_are_told_apart() {
        let settings = settings("--clients 2 --seconds 2 --bytes 16 --deadline-ms 100");
        let mut arrivals = Arrivals::new(&settings);
        let message = |number, sent_nanos| {
            let mut bytes = [0; 16];
            stamp::write(&mut bytes, number, sent_nanos);
            bytes
        };
        assert_eq!(
            arrivals.on_message(100_000_000, &message(0, 0)),
            Arrival::OnTime
        );
        assert_eq!(
            arrivals.on_message(100_000_001, &message(1, 0)),
            Arrival::Late
        );
        assert_eq!(
            arrivals.on_message(1, &message(1, 0)),
            Arrival::Wrong,
            "again"
        );
        assert_eq!(
            arrivals.on_message(1, &message(4, 0)),
            Arrival::Wrong,
            "none of ours"
        );
        assert_eq!(
            arrivals.on_message(1, &[0; 15]),
            Arrival::Wrong,
            "cut short"
        );
        assert_eq!(arrivals.wrong(), 3);
        let (summary, latencies) =
            arrivals.summary(PolicyKind::Exact, &[1, 1, 1, 0], &Totals::default(), 1);
        assert_eq!((summary.messages, summary.lost_messages), (3, 1));
        assert!((summary.late_share - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(
            (summary.latency_ms.max, summary.latency_ms.p99),
            (Some(100.001), None)
        );
        assert_eq!((summary.predicted_late_share, latencies.lost()), (None, 1));
    }

    #[test]
    fn turns_are_evenly_spread_and_the_deadline_fits_the_path() {
        let settings = settings("--profile clean --clients 4 --seconds 3");
        assert_eq!(settings.messages(), 12);
        let due: Vec<u64> = (0..6)
            .map(|number| settings.due_nanos(number) / 1_000_000)
            .collect();
        assert_eq!(due, [0, 250, 500, 750, 1000, 1250]);
        assert_eq!(
            settings.deadline_ms(),
            50.0,
            "2.2 round trips of 20 ms, to the next 10"
        );
    }

    #[test]
    fn bad_paths_are_told() {
        for line in ["--profile wifi", "--trace /nonexistent"] {
            let words = std::iter::once("demo").chain(line.split_whitespace());
            let error = Settings::of(&Line::parse_from(words).args).unwrap_err();
            assert!(
                matches!(error, crate::failure::Failure::BadInput(_)),
                "{line}"
            );
        }
    }
}
