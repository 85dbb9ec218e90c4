//! Where reproductions play, and at which size.

use std::cell::RefCell;
use std::time::Duration;

use punctual_lab::arena::{Arena, ArenaRun, ArmRun};
use punctual_lab::arm::{Arm, Contest, Sender, Task, Workload};
use punctual_lab::channel::PathSpec;

use crate::failure::Failure;
use crate::lab::{arms, scorecard};

/// How large, how often, from which seed.
pub(super) struct Stage {
    pub(super) is_quick: bool,
    pub(super) seed: u64,
    pub(super) json: bool,
    /// What made messages of the plays so far late that no network did.
    pub(super) remarks: RefCell<Vec<String>>,
}

/// Messages of the Pangolin paper: "2KB messages at one second intervals".
const MESSAGE_BYTES: usize = 2048;
const INTERVAL: Duration = Duration::from_secs(1);
/// Clients whose round trip takes seconds, or that begin in an outage, need some time.
const CONNECT_MAX: Duration = Duration::from_secs(20);

/// Messages to clients with paths of their own.
pub(super) struct Play {
    pub(super) paths: Vec<PathSpec>,
    pub(super) messages: u32,
    pub(super) deadline: Duration,
    pub(super) rtt: Duration,
    /// After the last message.
    pub(super) drain: Duration,
}

impl Stage {
    /// The first in full, the second in the quick mode.
    pub(super) fn size<T>(&self, full: T, quick: T) -> T {
        if self.is_quick { quick } else { full }
    }

    /// The arena of a play with the paper's messages and its target: 99.9 % on time.
    pub(super) fn arena(&self, play: Play) -> Arena {
        Arena {
            paths: play.paths,
            link: None,
            mtu: 1500,
            seed: self.seed,
            contest: Contest {
                task: Task {
                    sender: Sender::Server,
                    message_bytes: MESSAGE_BYTES,
                    interval: INTERVAL,
                    deadline: play.deadline,
                    on_time: 0.999,
                    rtt: play.rtt,
                },
                messages: play.messages,
                connect_max: CONNECT_MAX,
                drain: play.drain,
                seed: self.seed,
            },
            is_traced: false,
        }
    }

    /// Plays it, with every arm to the end; `what` is for the bar.
    pub(super) fn play<W: Workload>(
        &self,
        arena: &Arena<W>,
        arms: &[Box<dyn Arm>],
        what: &str,
    ) -> Result<ArenaRun<W::Played>, Failure> {
        let mut run = scorecard::watched(arena, arms, what, self.json)?;
        match run.failures.pop() {
            Some(error) => Err(arms::failed(&error)),
            None => {
                let remarks = run.arms.iter().flat_map(ArmRun::remarks);
                let remarks = remarks.map(|remark| format!("{what}: {remark}"));
                self.remarks.borrow_mut().extend(remarks);
                Ok(run)
            }
        }
    }
}
