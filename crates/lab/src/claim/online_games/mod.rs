//! The paper on TCP in online games (Chen, Huang, Huang and Lei, ACE 2006): what a live stack can show of section 5.
//!
//! The paper looked at captures of a server's TCP of 2004, without SACK. Here the same traffic, in numbers, goes over kernel TCP set
//! as then and as today, and over Punctual. Latency is as in the paper: from a server packet's departure to its acknowledgement.
//! `seen.rs` is what an arm did, `rows.rs` the numbers.

mod rows;
mod seen;

use std::time::Duration;

use super::mmorpg::Player;
use crate::arena::{Arena, ArenaRun};
use crate::arm::{Exchange, Script, Sender, Task};
use crate::reproduce::{Reproduced, Row};
use crate::tcp_trace::connections;
use rows::{content_row, message_rows, restart_comparisons};
use seen::Seen;

/// The study.
#[derive(Debug, Clone, PartialEq)]
pub struct OnlineGames {
    /// Players, each with a path of its own.
    pub players: u32,
    /// How long they play.
    pub length: Duration,
    /// Repeats it.
    pub seed: u64,
}

/// The paper's: TCP without SACK and timestamps, initial window 2.
const THEN: &str = "tcp-2006";
const THEN_NO_RESTART: &str = "tcp-2006-no-restart";
const TODAY: &str = "tcp-cubic";
const TODAY_NO_RESTART: &str = "tcp-cubic-no-restart";
impl OnlineGames {
    /// The arms that are compared, in the order of tables.
    pub const ARMS: [&str; 5] = [THEN, THEN_NO_RESTART, TODAY, TODAY_NO_RESTART, "punctual"];

    /// What comes of it.
    pub const NAMES: [&str; 4] = [
        "tcp-in-games-overhead",
        "tcp-in-games-order",
        "tcp-in-games-restart",
        "tcp-in-games-table-3",
    ];

    /// What is to be played over which network.
    pub fn arena(&self) -> Arena<Script> {
        let players: Vec<_> = (0..self.players)
            .map(|number| Player::new(self.seed, number))
            .collect();
        let updates = players.iter().map(|player| player.updates(self.length));
        let commands = players.iter().map(|player| player.commands(self.length));
        Arena {
            paths: players.iter().map(Player::path).collect(),
            link: None,
            mtu: 1500,
            seed: self.seed,
            contest: Script {
                task: Task {
                    sender: Sender::Server,
                    message_bytes: 800,
                    interval: Duration::from_millis(200),
                    // A role-playing game's: half a second, more than two round trips of most players.
                    deadline: Duration::from_millis(500),
                    on_time: 0.999,
                    rtt: Duration::from_millis(155),
                },
                messages: [updates.collect(), commands.collect()],
                is_relayed: false,
                connect_max: Duration::from_secs(20),
                drain: Duration::from_secs(3),
            },
            is_traced: true,
        }
    }

    /// What came of it, in the order of [`Self::NAMES`]. Arms that were not played have no rows.
    pub fn reproduced(&self, mut run: ArenaRun<Exchange>) -> Vec<Reproduced> {
        let script = self.arena().contest;
        let traces: Vec<_> = (run.arms.iter_mut())
            .map(|arm| connections(std::mem::take(&mut arm.packets)))
            .collect();
        let seen: Vec<Seen<'_>> = (run.arms.iter().zip(traces))
            .filter(|(_, connections)| !connections.is_empty())
            .map(|(arm, connections)| Seen::new(&script, run.began, arm, &connections))
            .collect();
        let old_and_new: Vec<_> = (seen.iter())
            .filter(|seen| [THEN, TODAY].contains(&&*seen.run.name))
            .collect();
        let rows = |of: fn(&Seen<'_>) -> Vec<Row>| -> Vec<Row> {
            old_and_new.iter().flat_map(|seen| of(seen)).collect()
        };
        let mut overhead = rows(|seen| seen.overhead_rows());
        overhead.extend(run.arms.iter().map(|arm| content_row(&script, arm)));
        let mut order = rows(|seen| seen.latency_rows());
        order.extend(rows(|seen| seen.waiting_rows()));
        order.extend(run.arms.iter().flat_map(message_rows));
        let mut restart: Vec<_> = seen.iter().flat_map(|seen| seen.restart_rows()).collect();
        restart.extend(restart_comparisons(&seen));
        let titles = [
            ("Protocol overhead (section 5.1)", overhead),
            (
                "In-order delivery and latency (sections 5.2 and 6.2)",
                order,
            ),
            (
                "Congestion control: windows after pauses (section 5.3)",
                restart,
            ),
            (
                "Loss recovery (section 5.4, table 3)",
                rows(|seen| seen.recovery_rows()),
            ),
        ];
        let reproduced = Self::NAMES.into_iter().zip(titles);
        reproduced
            .map(|(name, (title, rows))| Reproduced {
                name,
                title: title.to_owned(),
                setup: format!(
                    "{} players for {} s each, on paths and with traffic drawn from the paper's numbers",
                    self.players,
                    self.length.as_secs()
                ),
                rows,
                remarks: remarks(&run.timing.verdict()),
                charts: Vec::new(),
            })
            .collect()
    }
}

fn remarks(timing: &str) -> Vec<String> {
    [
        "round trips are 95, 185 and 580 ms at 1 %, on average and at 99 %; 36 % of the connections lose nothing, the others 4.2 % on \
         average, independently from packet to packet; sizes and gaps are the paper's, the forms between are made up",
        "the paper's servers are unknown systems of 2004; tcp-2006 is today's kernel with NewReno, without SACK, tail loss probes and \
         timestamps, with an initial window of 2 and Linux's least timeout of 200 ms; latency is from departure to acknowledgement",
        "tcp-cubic is today's default: SACK, which the paper recommends, RACK and tail loss probes",
    ]
    .iter()
    .map(|&remark| remark.to_owned())
    .chain([timing.to_owned()])
    .collect()
}
