//! The traffic of a role-playing game and the paths of its players, from the numbers of "An empirical evaluation of TCP performance
//! in online games" (Chen, Huang, Huang and Lei, ACE 2006) on ShenZhou Online.
//!
//! From the paper: 98 % of client packets below 32 bytes, most of 23 and 27; client gaps about exponential with 8 a second, the long
//! ones longer than that; half of the server's gaps near 200 ms, 40 % beyond; 114 bytes of content in a server packet on average;
//! round trips of 95 ms (1 %), 185 ms (mean), 580 ms (99 %), with a standard deviation of 77 ms on average; 36 % of connections without
//! loss, 20 % loss at 99 %, and, since a lost packet takes 390 ms more, above 5 % for a third of the others and above 10 % for 7 %.
//! The forms between are made up.

use std::time::Duration;

use crate::arm::{Planned, Tcp};
use crate::chance::{Chance, Purpose};
use crate::channel::{ChannelSpec, DelayModel, LossModel, PathSpec, Variation};

/// A player.
pub(super) struct Player {
    chance: Chance,
}

/// From one broadcast of the server to the next.
const TICK: Duration = Duration::from_millis(200);
/// Share of broadcasts that have something for a player: 40 % of the gaps are then longer than one.
const TICK_SHARE: f64 = 0.6;
/// Something else than a broadcast, on average.
const REPLY_EVERY_S: f64 = 1.5;
/// A change of scene, on average: many messages at once.
const SCENE_EVERY_S: f64 = 40.0;
const SCENE_MESSAGES: u64 = 6;
const SCENE_BYTES: u32 = 800;
/// Commands of a busy player: 8 a second.
const COMMAND_EVERY_S: f64 = 0.125;
/// Share of commands before which a player thinks, and how long on average: the long gaps. Then come three commands at once, as the
/// paper has it.
const THINK_SHARE: f64 = 0.1;
const THINK_S: f64 = 0.8;
const SERIES: u64 = 3;
/// Largest content of a message: a segment less TCP's longest usual options.
const BYTES_MAX: f64 = 1400.0;

/// Round trips: 86 ms and a lognormal part. Its parameters fit the three numbers of the paper.
const RTT_BASE_MS: f64 = 86.0;
const RTT_LOG_MEAN: f64 = 4.2386;
const RTT_LOG_SD: f64 = 0.8444;
const RTT_MAX_MS: f64 = 900.0;
/// Loss: none, or exponential.
const LOSSLESS_SHARE: f64 = 0.36;
const LOSS_MEAN: f64 = 0.042;
const LOSS_MAX: f64 = 0.25;
/// Standard deviation of the delay each way, as a share of its mean, before it is cut at [`LEAST`] of the mean: it gives the paper's
/// 77 ms. It varies so slowly that packets keep their order, as in 98 % of the paper's connections.
const VARIATION: f64 = 0.45;
const LEAST: f64 = 0.75;
/// The cut raises the mean by 8 %: by s (phi(a) - a (1 - Phi(a))) for s = 0.45 and a = 0.25 / s.
const CUT_RAISES: f64 = 1.08;
const COHERENCE: Duration = Duration::from_secs(1);

impl Player {
    pub(super) const fn new(seed: u64, number: u32) -> Self {
        Self {
            chance: Chance::new(seed, number as u64),
        }
    }

    fn draw(&self, what: What, index: u64) -> f64 {
        self.chance.share(Purpose::Workload, what as u64, index)
    }

    fn exponential(&self, what: What, index: u64) -> f64 {
        self.chance
            .exponential(Purpose::Workload, what as u64, index)
    }

    fn normal(&self, what: What, index: u64) -> f64 {
        self.chance.normal(Purpose::Workload, what as u64, index)
    }

    /// Mean delay of the way between player and server.
    pub(super) fn one_way_ms(&self) -> f64 {
        let more = libm::exp(RTT_LOG_MEAN + RTT_LOG_SD * self.normal(What::Rtt, 0));
        (RTT_BASE_MS + more).min(RTT_MAX_MS) / 2.0
    }

    /// The way between player and server.
    pub(super) fn path(&self) -> PathSpec {
        let one_way_ms = self.one_way_ms() / CUT_RAISES;
        let loss = if self.draw(What::IsLossless, 0) < LOSSLESS_SHARE {
            LossModel::None
        } else {
            LossModel::Uniform((LOSS_MEAN * self.exponential(What::Loss, 0)).min(LOSS_MAX))
        };
        let ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        let each_way = ChannelSpec {
            delay: DelayModel::Normal {
                mean: ms(one_way_ms),
                sd: ms(one_way_ms * VARIATION),
                min: ms(one_way_ms * LEAST),
            },
            variation: Variation {
                coherence: COHERENCE,
                slow: None,
            },
            loss,
            ..ChannelSpec::default()
        };
        let source = "drawn from the numbers of the TCP-in-online-games paper";
        PathSpec::symmetric("player", source, each_way)
    }

    /// What the player's program sends.
    pub(super) fn commands(&self, length: Duration) -> Vec<Planned> {
        let mut commands = Vec::new();
        let mut at_s = self.draw(What::Command, 0);
        for index in 0.. {
            let thinks = self.draw(What::Thinks, index) < THINK_SHARE;
            let gap = self.exponential(What::Command, index + 1);
            at_s += gap * if thinks { THINK_S } else { COMMAND_EVERY_S };
            let at = Duration::from_secs_f64(at_s);
            if at >= length {
                break;
            }
            for nth in 0..if thinks { SERIES } else { 1 } {
                let bytes = match self.draw(What::CommandBytes, index * SERIES + nth) {
                    ..0.38 => 23,
                    0.38..0.98 => 27,
                    _ => 60,
                };
                commands.push(message(at, f64::from(bytes)));
            }
        }
        commands
    }

    /// What the server sends to the player.
    pub(super) fn updates(&self, length: Duration) -> Vec<Planned> {
        let mut updates = Vec::new();
        let bytes = |index| libm::exp(4.232 + 0.84 * self.normal(What::UpdateBytes, index));
        // Players are told one after the other.
        let first = TICK.mul_f64(self.draw(What::Update, 0));
        let ticks = (length.as_secs_f64() / TICK.as_secs_f64()) as u32;
        for tick in 0..ticks {
            if self.draw(What::Update, u64::from(tick) + 1) < TICK_SHARE {
                updates.push(message(first + TICK * tick, bytes(u64::from(tick))));
            }
        }
        for (what, every_s) in [(What::Reply, REPLY_EVERY_S), (What::Scene, SCENE_EVERY_S)] {
            let mut at_s = 0.0;
            for index in 0.. {
                at_s += every_s * self.exponential(what, index);
                let at = Duration::from_secs_f64(at_s);
                if at >= length {
                    break;
                }
                if what == What::Reply {
                    updates.push(message(at, bytes(index | 1 << 40)));
                } else {
                    let scene = message(at, f64::from(SCENE_BYTES));
                    updates.extend((0..SCENE_MESSAGES).map(|_| scene));
                }
            }
        }
        updates.sort_by_key(|update| update.at);
        updates
    }
}

/// A message whose content and framing have so many bytes on a TCP connection.
fn message(at: Duration, bytes: f64) -> Planned {
    let content = bytes.min(BYTES_MAX) as u32;
    Planned {
        at,
        bytes: content.saturating_sub(Tcp::FRAMING_BYTES as u32),
    }
}

/// What a number is drawn for.
#[derive(Clone, Copy, PartialEq)]
enum What {
    Rtt,
    IsLossless,
    Loss,
    Command,
    CommandBytes,
    Thinks,
    Update,
    UpdateBytes,
    Reply,
    Scene,
}
