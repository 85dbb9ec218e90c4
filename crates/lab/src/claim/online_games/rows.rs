//! The numbers of sections 5 and 6.2, and of table 3.

use super::seen::{Number, Of, Seen, Traced};
use super::{THEN, TODAY};
use crate::arena::ArmRun;
use crate::arm::{Exchange, MESSAGE_MIN, NEVER, Script, Sender};
use crate::claim::{count, quantile, row, sum};
use crate::report::Unit;
use crate::reproduce::Row;
use crate::tcp_trace::{Cause, Delivery, FastFailure, TrafficShares};

/// Weight of the standard deviation of round trips, in seconds, in the paper's model of departures (section 6.2).
const DEPARTURE_WEIGHT: f64 = 4.54;
/// A wait that is one: less than a frame of any game is the machine's.
const WAITED_NS: u64 = 5_000_000;
impl Seen<'_> {
    /// Section 5.1.
    pub(super) fn overhead_rows(&self) -> Vec<Row> {
        let [server, client] = [0, 1];
        let both = |traced: &Traced| traced.shares[server].plus(&traced.shares[client]);
        let headers = |shares: &TrafficShares| (shares.header_bytes as f64, shares.ip_bytes as f64);
        let options = if self.is_then() {
            "IP and TCP without options, as then"
        } else {
            "today's timestamps add 12 bytes to every packet"
        };
        vec![
            self.row(
                "pure acknowledgements among all packets",
                Unit::Share,
                Some(0.38),
                self.over(|traced| {
                    let both = both(traced);
                    (both.pure_acks as f64, both.packets as f64)
                }),
            )
            .with_reason("each end acknowledges after 40 ms at the latest here, not after 200 ms as then: fewer acknowledgements find content to go with"),
            self.row(
                "headers among all bytes",
                Unit::Share,
                Some(0.46),
                self.over(|traced| headers(&both(traced))),
            )
            .with_reason(options),
            self.row(
                "headers in client traffic, times its content",
                Unit::Number,
                Some(4.0),
                self.over(|traced| {
                    let shares = &traced.shares[client];
                    (shares.header_bytes as f64, shares.payload_bytes() as f64)
                }),
            )
            .with_reason(options),
            self.row(
                "headers in server traffic",
                Unit::Share,
                Some(0.5),
                self.over(|traced| headers(&traced.shares[server])),
            )
            .with_reason(
                "114 bytes of content and 40 of headers are no half: it takes as many pure acknowledgements as packets with content",
            ),
        ]
    }

    /// Section 5.2.2, and the latencies of 5.4.
    pub(super) fn latency_rows(&self) -> Vec<Row> {
        let latency = |of: Of| self.over(|traced| sum(traced.latencies_ms(of)));
        let why = if self.is_then() {
            "the least timeout is 200 ms here, and round trips vary less than those of the paper's players: timeouts are shorter"
        } else {
            "with SACK most losses are found before the timeout"
        };
        let ms = |what, paper, of| self.row(what, Unit::Millis, Some(paper), latency(of));
        let mut rows = vec![
            ms(
                "mean latency of packets that were sent once",
                186.0,
                Of::Once,
            ),
            ms(
                "mean latency of packets that were sent again",
                576.0,
                Of::Again,
            )
            .with_reason(why),
            ms("mean latency of all packets", 199.0, Of::All),
        ];
        let jitter =
            |of: Of| self.over(|traced| traced.sd_ms(of).map_or((0.0, 0.0), |sd| (sd, 1.0)));
        let (once, all) = (jitter(Of::Once), jitter(Of::All));
        let reason = "the paths here vary by a constant share of their delay, and all in the same way; the paper's surely do not";
        for (what, paper, here) in [
            (
                "mean jitter (sd of latency) of packets that were sent once",
                77.0,
                once,
            ),
            ("mean jitter of all packets", 123.0, all),
        ] {
            let row = self.row(what, Unit::Millis, Some(paper), here);
            rows.push(row.with_reason(reason));
        }
        let (mean, sd): (Number, Number) = (Traced::mean_ms, Traced::sd_ms);
        for (what, paper, number, least) in [
            ("mean latency rises by more than 10 %", 0.33, mean, 0.1),
            ("mean latency rises by more than 20 %", 0.07, mean, 0.2),
            ("jitter more than doubles", 0.22, sd, 1.0),
            ("jitter more than triples", 0.06, sd, 2.0),
        ] {
            let what = format!("connections with loss whose {what}");
            let here = self.share_of(|traced| {
                let expands = traced.expands(number, least);
                expands.map_or((0.0, 0.0), |does| (does, 1.0))
            });
            let row = self.row(&what, Unit::Share, Some(paper), here);
            rows.push(row.with_reason(
                "depends on how loss is spread over connections, and here it is independent from packet to packet; a repair takes longer here (above)",
            ));
        }
        let factor = libm::exp(DEPARTURE_WEIGHT * (all.0 - once.0) / 1e3);
        let what = "departures, times those without the jitter of losses";
        rows.push(
            self.row(what, Unit::Number, Some(1.24), (factor, None))
                .with_note("the paper's formula with the two jitters above"),
        );
        rows
    }

    /// What waits behind a loss, which the paper could only estimate from one end.
    pub(super) fn waiting_rows(&self) -> Vec<Row> {
        let waits = self.share_of(|traced| {
            let all = traced.deliveries.iter().filter_map(Delivery::waited_ns);
            count(all.map(|waited| waited > WAITED_NS))
        });
        let waited = self.over(|traced| {
            let all = traced.deliveries.iter().filter_map(Delivery::waited_ns);
            let waited = all.filter(|&waited| waited > WAITED_NS);
            sum(waited.map(|waited| waited as f64 / 1e6))
        });
        let share = self.row(
            "server packets that wait for an earlier one",
            Unit::Share,
            None,
            waits,
        );
        let mean = self.row("how long these wait, mean", Unit::Millis, None, waited);
        vec![
            share,
            mean.with_note("seen at both ends; the paper has 140 ms behind packets out of order, and no number behind lost ones"),
        ]
    }

    /// Section 5.3: exposed is what the paper counts, harmed is what had to wait for it.
    pub(super) fn restart_rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (from, paper) in [(Sender::Server, 0.18), (Sender::Client, 0.12)] {
            let exposed = self.share_of(|traced| {
                let segments = traced.side(from).segments.iter();
                count(segments.map(|segment| segment.is_restart))
            });
            if self.restarts() {
                let what = format!(
                    "{} packets after a pause longer than the timeout",
                    from.name()
                );
                let row = self.row(&what, Unit::Share, Some(paper), exposed);
                rows.push(row.with_reason(
                    "how often somebody pauses is a matter of the traffic, of which the paper gives only part",
                ));
            }
            let harmed = self.share_of(|traced| {
                let half_ns = traced.side(from).rtt_min_ns.unwrap_or(u64::MAX) / 2;
                let messages = traced.held[from as usize].iter();
                count(messages.map(|held| held.is_in_restarted_train && held.held_ns > half_ns))
            });
            let what = format!(
                "{} messages after a pause that wait half a round trip or more",
                from.name()
            );
            rows.push(self.row(&what, Unit::Share, None, harmed));
        }
        rows
    }

    /// Whether its windows shrink over pauses.
    fn restarts(&self) -> bool {
        [THEN, TODAY].contains(&&*self.run.name)
    }

    /// Section 5.4.
    pub(super) fn recovery_rows(&self) -> Vec<Row> {
        let by_timer = self.share_of(|traced| {
            let again = traced.server.retransmissions.iter();
            let causes = again
                .filter(|again| again.copy == 1)
                .map(|again| again.cause);
            let found = causes.filter(|cause| cause.is_fast() || cause.is_timer());
            count(found.map(Cause::is_timer))
        });
        let kernel = |name: &str| self.run.kernel.get(&format!("TcpExt.{name}"));
        let counted = format!(
            "the server's kernel counted {} fast retransmits, {} probes, {} timeouts",
            kernel("TCPFastRetrans"),
            kernel("TCPLossProbes"),
            kernel("TCPTimeouts"),
        );
        if self.is_then() {
            let what = "losses that a timer found";
            let timers = self.row(what, Unit::Share, Some(0.9992), by_timer);
            let mut rows = vec![timers.with_note(counted)];
            rows.extend(self.failure_rows());
            return rows;
        }
        let what =
            "SACK finds more than half of the losses before a timer does (recommended in 5.4)";
        let what = format!("{}: {what}", self.run.name);
        let needless = self.share_of(|traced| {
            let again = traced.server.retransmissions.iter();
            count(again.map(|again| again.is_spurious))
        });
        let reports = kernel("TCPDSACKRecvSegs");
        let found = match by_timer.0.is_nan() {
            // Nothing was sent again: nothing is said of how.
            true => Row::shown(what, Unit::Share, None, None),
            false => Row::said(what, Unit::Share, 1.0 - by_timer.0, by_timer.0 < 0.5),
        };
        vec![
            found.with_note(counted),
            self.row("retransmissions that were needless", Unit::Share, None, needless)
                .with_note(format!(
                    "as the receivers reported them (DSACK; the kernel counted {reports}); without SACK nobody can know"
                )),
        ]
    }

    /// Table 3.
    fn failure_rows(&self) -> [Row; 2] {
        let failures = |which: FastFailure| {
            self.share_of(|traced| {
                let again = traced.server.retransmissions.iter();
                let failed = again.filter_map(|again| again.fast_failure);
                let failed = failed.filter(|&failure| failure != FastFailure::None);
                count(failed.map(|failure| failure == which))
            })
        };
        let causes = [
            (
                "too few duplicate acknowledgements",
                0.5096,
                FastFailure::TooFew,
            ),
            (
                "duplicates interrupted by content of the player",
                0.489,
                FastFailure::InterruptedByData,
            ),
        ];
        causes.map(|(what, paper, which)| {
            self.row(what, Unit::Share, Some(paper), failures(which)).with_reason(
                "by the rules of 4.4BSD, of all losses in which fast retransmit was not there first; only where three duplicates come \
                 can they be interrupted, and the server here sends too little within a timeout for that",
            )
        })
    }
}

/// What keeping the window over pauses changes.
pub(super) fn restart_comparisons(seen: &[Seen<'_>]) -> Vec<Row> {
    let held = |seen: &Seen<'_>| {
        seen.over(|traced| {
            let trains = traced.held.iter().flatten();
            let trains = trains.filter(|held| held.is_in_restarted_train);
            sum(trains.map(|held| held.held_ns as f64 / 1e6))
        })
    };
    let what = "how long messages after a pause wait at the sender, mean";
    seen.iter()
        .map(|seen| row(&seen.run.name, what, Unit::Millis, None, held(seen)))
        .collect()
}

/// One-way latency of the server's messages.
pub(super) fn message_rows(arm: &ArmRun<Exchange>) -> [Row; 2] {
    let way = &arm.played.ways[Sender::Server as usize];
    let ms = |&us: &u32| match us {
        NEVER => f64::INFINITY,
        us => f64::from(us) / 1e3,
    };
    let mut all: Vec<f64> = way.latencies_us.iter().flatten().map(ms).collect();
    [("p50", 0.5), ("p99", 0.99)].map(|(name, share)| {
        let here = quantile(&mut all, share).unwrap_or(f64::NAN);
        let what = format!("server messages, one way, {name}");
        row(&arm.name, &what, Unit::Millis, None, (here, None))
    })
}

/// What of the server's traffic is no content, of arms over UDP too.
pub(super) fn content_row(script: &Script, arm: &ArmRun<Exchange>) -> Row {
    let planned = script.messages[Sender::Server as usize].iter().flatten();
    // (No message is smaller.)
    let sent = planned.map(|message| u64::from(message.bytes).max(MESSAGE_MIN as u64));
    let content: u64 = sent.sum();
    let bytes: u64 = arm.forward.iter().map(|path| path.bytes).sum();
    let share = 1.0 - content as f64 / bytes.max(1) as f64;
    let what = "all but messages in server traffic";
    row(&arm.name, what, Unit::Share, None, (share, None))
        .with_note("headers, lengths, acknowledgements, seals, and whatever makes up for losses")
}
