//! The thin-stream paper (Petlund, Evensen, Griwodz and Halvorsen, NetGames 2008): figures 2, 5 and 6, and the numbers of section 4.
//!
//! A game of tanks over 130 ms round trip and 2 % loss each way. Each tank is a client of the server, which passes on what it hears to
//! all others, so that a tank's update takes two hops, both over the same transport. Figure 2 is the hop from the server, packet by
//! packet as in the paper where it is TCP; figures 5 and 6 follow from both hops. `rows.rs` has the numbers, `charts.rs` the figures.

mod charts;
mod rows;

use std::time::Duration;

use crate::arena::{Arena, ArenaRun, ArmRun};
use crate::arm::{Exchange, MESSAGE_MIN, NEVER, Planned, Script, Sender, Task};
use crate::channel::{ChannelSpec, LossModel, PathSpec};
use crate::game::{self, Game, Rules};
use crate::reproduce::{Reproduced, Row};
use crate::tcp_trace::{NEVER_NS, Profile, SenderSide, connections, deliveries};
use charts::{angle_chart, hit_charts, latency_charts};
use rows::{
    angle_gain, angle_rows, cost_row, find, hit_gain, hit_rows, latency_rows, relative_angle,
    timers_row,
};

/// The study.
#[derive(Debug, Clone, PartialEq)]
pub struct ThinStreamGame {
    /// The game, its length and seed.
    pub rules: Rules,
}

const RTT: Duration = Duration::from_millis(130);
const LOSS: f64 = 0.02;
/// Promised for each hop: what is left of a tenth of a second, in which nobody notices a lag, after the way itself.
const DEADLINE: Duration = Duration::from_millis(100);
/// Connections and round trips are not yet known before.
const SETTLE: Duration = Duration::from_secs(2);
/// Delay beyond the least that is none: less than what makes up for a loss takes, more than that over which Punctual spreads the
/// packets of many sessions that are due at once (a quarter of what deadlines leave, here 9 ms) on a busy machine.
const UNDELAYED_MS: f64 = 20.0;
/// TCP without the paper's changes.
const UNMODIFIED: &str = "tcp-2008";
/// What the paper's changes became in Punctual: one later acknowledgement, no backoff, bundling, and nothing else.
const MODIFIED: &str = "retransmit";

/// What an arm did.
struct Seen {
    name: String,
    /// By receiving flow: milliseconds beyond the least one-way delay, of what arrived.
    transport_ms: Vec<Vec<f64>>,
    /// The same until it could be read in order.
    application_ms: Vec<Vec<f64>>,
    /// By shooting tank.
    angles_deg: Vec<Vec<f64>>,
    bytes_from_server: f64,
}

impl ThinStreamGame {
    /// The arms that are compared, in the order of tables.
    pub const ARMS: [&str; 5] = [
        UNMODIFIED,
        "tcp-2008-thin",
        "tcp-cubic",
        MODIFIED,
        "punctual",
    ];

    /// What comes of it.
    pub const NAMES: [&str; 3] = [
        "thin-streams-figure-2",
        "thin-streams-figure-5",
        "thin-streams-figure-6",
    ];

    /// A game of such length.
    pub fn new(length: Duration, seed: u64) -> Self {
        Self {
            rules: Rules {
                length,
                seed,
                ..Rules::default()
            },
        }
    }

    /// What is to be played over which network.
    pub fn arena(&self) -> Arena<Script> {
        let each_way = ChannelSpec::fixed(RTT / 2).with_loss(LossModel::Uniform(LOSS));
        let source = "the thin-stream paper's test bed, loss each way";
        let path = PathSpec::symmetric("thin streams", source, each_way);
        let game = Game::new(&self.rules);
        let planned = |track: &game::Track| {
            let messages = track.messages.iter().map(|message| Planned {
                at: message.at,
                bytes: message.bytes.max(MESSAGE_MIN as u32),
            });
            messages.collect()
        };
        let clients: Vec<Vec<Planned>> = game.tracks.iter().map(planned).collect();
        let from_server = vec![Vec::new(); clients.len()];
        Arena {
            paths: vec![path; clients.len()],
            link: None,
            mtu: 1500,
            seed: self.rules.seed,
            contest: Script {
                task: Task {
                    sender: Sender::Server,
                    message_bytes: self.rules.shot_bytes as usize,
                    interval: self.rules.frame,
                    deadline: DEADLINE,
                    on_time: 0.999,
                    rtt: RTT,
                },
                messages: [from_server, clients],
                is_relayed: true,
                connect_max: Duration::from_secs(15),
                drain: Duration::from_secs(3),
            },
            is_traced: true,
        }
    }

    /// What came of it, in the order of [`Self::NAMES`]. Arms that were not played have no rows.
    pub fn reproduced(&self, mut run: ArenaRun<Exchange>) -> Vec<Reproduced> {
        let game = Game::new(&self.rules);
        let began = run.began;
        let seen: Vec<Seen> = (run.arms.iter_mut())
            .map(|arm| self.seen(&game, began, arm))
            .collect();
        let figure = |name, title: &str, rows, charts| Reproduced {
            name,
            title: title.to_owned(),
            setup: format!(
                "{} tanks for {} s; 130 ms round trip, 2 % loss each way",
                self.rules.players,
                self.rules.length.as_secs()
            ),
            rows,
            remarks: remarks(&run.timing.verdict()),
            charts,
        };
        let of_all = |rows: fn(&Seen) -> Vec<Row>| seen.iter().flat_map(rows);
        let mut latency: Vec<_> = of_all(latency_rows).collect();
        latency.extend(seen.iter().filter_map(|arm| cost_row(arm, &seen)));
        latency.extend(run.arms.iter().filter_map(timers_row));
        let mut angles: Vec<_> = of_all(angle_rows).collect();
        let mut hits: Vec<_> = of_all(hit_rows).collect();
        if let (Some(before), Some(after)) = (find(&seen, UNMODIFIED), find(&seen, MODIFIED)) {
            angles.extend(angle_gain(before, after));
            angles.push(relative_angle(before, after));
            hits.extend(hit_gain(before, after));
        }
        let [at, of_angles, of_hits] = Self::NAMES;
        vec![
            figure(
                at,
                "Latency of BZFlag updates",
                latency,
                latency_charts(&seen),
            ),
            figure(
                of_angles,
                "Difference between perceived and actual positions",
                angles,
                vec![angle_chart(&seen)],
            ),
            figure(
                of_hits,
                "Hit limits of a perfect shot",
                hits,
                hit_charts(&seen),
            ),
        ]
    }

    fn seen(&self, game: &Game, began: Duration, arm: &mut ArmRun<Exchange>) -> Seen {
        let packets = std::mem::take(&mut arm.packets);
        let (transport_ms, application_ms) = if packets.is_empty() {
            by_messages(&arm.played)
        } else {
            let from_ns = (began + SETTLE).as_nanos() as u64;
            let mut hops = (Vec::new(), Vec::new());
            for connection in connections(packets) {
                let profile = Profile { has_probes: true };
                let Some(side) = SenderSide::new(&connection, Sender::Server, profile) else {
                    continue;
                };
                let all = deliveries(&connection, Sender::Server, &side.segments);
                let all = all.iter().filter(|one| one.sent_ns >= from_ns);
                let ms = |ns: u64| match ns {
                    NEVER_NS => f64::INFINITY,
                    ns => ns as f64 / 1e6,
                };
                hops.0
                    .push(all.clone().map(|one| ms(one.transport_ns())).collect());
                hops.1
                    .push(all.map(|one| ms(one.application_ns())).collect());
            }
            hops
        };
        let exchange = &arm.played;
        let sent_us = &exchange.ways[Sender::Client as usize].sent_us;
        let angles_deg = game::angles_deg(game, SETTLE, |to, from, number| {
            let latency = exchange.relayed_us.get(to)?.get(from)?.get(number)?;
            let sent = sent_us.get(from)?.get(number)?;
            let has_arrived = *latency != NEVER && *sent != NEVER;
            let micros = u64::from(*sent) + u64::from(*latency);
            has_arrived.then_some(Duration::from_micros(micros))
        });
        Seen {
            name: arm.name.clone(),
            transport_ms: beyond_least(transport_ms),
            application_ms: beyond_least(application_ms),
            angles_deg,
            bytes_from_server: arm.forward.iter().map(|path| path.bytes as f64).sum(),
        }
    }
}

/// Of an arm whose packets say nothing: from when the server passed a message on to its arrival, and to when all that it passed on
/// before had arrived: infinite for what never does, or could not be read.
fn by_messages(exchange: &Exchange) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let up = &exchange.ways[Sender::Client as usize];
    let mut hops = (Vec::new(), Vec::new());
    for (to, relayed) in exchange.relayed_us.iter().enumerate() {
        // (passed on, arrived), both since the beginning; what never arrived does after all time.
        let mut messages: Vec<(u32, u64)> = Vec::new();
        // Nobody gets back what he sent.
        let others = relayed.iter().enumerate().filter(|(from, _)| *from != to);
        for (from, latencies_us) in others {
            let all = up.sent_us[from].iter().zip(&up.latencies_us[from]);
            for ((&sent, &up), &both) in all.zip(latencies_us) {
                if ![sent, up].contains(&NEVER) && sent >= SETTLE.as_micros() as u32 {
                    let arrived = match both {
                        NEVER => u64::MAX,
                        both => u64::from(sent) + u64::from(both),
                    };
                    messages.push((sent + up, arrived));
                }
            }
        }
        messages.sort_unstable();
        let ms = |passed_on: u32, until: u64| match until {
            u64::MAX => f64::INFINITY,
            until => (until - u64::from(passed_on)) as f64 / 1e3,
        };
        let mut readable = 0;
        let in_order = messages.iter().map(|&(passed_on, arrived)| {
            readable = readable.max(arrived);
            ms(passed_on, readable)
        });
        hops.1.push(in_order.collect());
        let at_once = messages
            .iter()
            .map(|&(passed_on, arrived)| ms(passed_on, arrived));
        hops.0.push(at_once.collect());
    }
    hops
}

/// Less the least of all: the one-way delay.
fn beyond_least(mut flows: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let least = flows.iter().flatten().copied().fold(f64::MAX, f64::min);
    for delay in flows.iter_mut().flatten() {
        *delay -= least;
    }
    flows
}
fn remarks(timing: &str) -> Vec<String> {
    [
        "the game is a model: tanks that move, turn, stop and shoot like computer players, not BZFlag; its traffic has the gaps and \
         sizes of the paper's table 1; positions are extrapolated from the arrival of updates",
        "tcp-2008 is today's kernel without SACK and tail loss probes; of the paper's own changes to the kernel, one duplicate \
         acknowledgement has been taken out of Linux again, bundling never came in, and linear timeouts are there (tcp-2008-thin); \
         what stands for all three is Punctual without redundancy (retransmit), which has them; punctual also sends what keeps \
         99.9 % within 100 ms a hop",
        "of TCP, latency is by segment as captured at both ends, of Punctual by message; the paper does not say whether its 2 % loss \
         is of one way or of both",
    ]
    .iter()
    .map(|&remark| remark.to_owned())
    .chain([timing.to_owned()])
    .collect()
}
