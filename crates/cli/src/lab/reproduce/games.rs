//! The thin-stream paper and the paper on TCP in online games.

use std::time::Duration;

use punctual_lab::claim::{OnlineGames, ThinStreamGame};
use punctual_lab::reproduce::Reproduced;

use super::Reproduction;
use super::stage::Stage;
use crate::failure::Failure;
use crate::lab::arms;

/// Both papers'.
pub(super) fn all() -> Vec<Box<dyn Reproduction>> {
    vec![Box::new(ThinStreams), Box::new(TcpInGames)]
}

/// How long they play, in seconds: intervals of a percentage point in full.
const FULL_S: u64 = 180;
const QUICK_S: u64 = 15;

struct ThinStreams;

impl Reproduction for ThinStreams {
    fn names(&self) -> &'static [&'static str] {
        &ThinStreamGame::NAMES
    }

    fn about(&self) -> &'static str {
        "a game of tanks over a lossy path: latency, and the angle between seen and actual positions"
    }

    fn run(&self, stage: &Stage) -> Result<Vec<Reproduced>, Failure> {
        let length = Duration::from_secs(stage.size(FULL_S, QUICK_S));
        let study = ThinStreamGame::new(length, stage.seed);
        let arms = arms::by_names(&ThinStreamGame::ARMS.map(ToOwned::to_owned))?;
        let run = stage.play(&study.arena(), &arms, "thin streams")?;
        Ok(study.reproduced(run))
    }
}

struct TcpInGames;

impl Reproduction for TcpInGames {
    fn names(&self) -> &'static [&'static str] {
        &OnlineGames::NAMES
    }

    fn about(&self) -> &'static str {
        "a role-playing game over TCP: headers, order, restarts after pauses, and how losses are found"
    }

    fn run(&self, stage: &Stage) -> Result<Vec<Reproduced>, Failure> {
        let study = OnlineGames {
            players: stage.size(60, 40),
            length: Duration::from_secs(stage.size(FULL_S, QUICK_S)),
            seed: stage.seed,
        };
        let arms = arms::by_names(&OnlineGames::ARMS.map(ToOwned::to_owned))?;
        let run = stage.play(&study.arena(), &arms, "TCP in games")?;
        Ok(study.reproduced(run))
    }
}
