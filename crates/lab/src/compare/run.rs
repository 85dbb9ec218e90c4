//! Plays a plan.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::{CompareError, Plan, Row, Setup};
use crate::simulate::{Libraries, simulate_with};

/// How far it has come.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// Messages played, of all rows and policies.
    pub messages: u64,
    /// Messages to play.
    pub of: u64,
    /// The recording that is being played.
    pub trace: &'a str,
}

/// What was played.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Rows in the plan's order, of each recording all or none.
    pub rows: Vec<Row>,
    /// Nothing ended it early.
    pub is_complete: bool,
}

/// Plays every row on so many threads; the rows are the same however many there are. It ends as soon as `go_on`, which is asked all the
/// time, says no: with those recordings that were played whole.
///
/// # Errors
/// When the plan makes no sense, or over a recording no session can be opened.
pub fn compare(
    plan: &Plan,
    threads: usize,
    go_on: &(dyn Fn(Step<'_>) -> bool + Sync),
) -> Result<Compared, CompareError> {
    plan.check()?;
    let setups = plan.setups();
    let work = Work {
        plan,
        libraries: Libraries::default(),
        next: AtomicUsize::new(0),
        messages: AtomicU64::new(0),
        of: setups.len() as u64 * plan.policies.len() as u64 * plan.messages,
        is_stopped: AtomicBool::new(false),
        done: Mutex::new(Vec::new()),
        go_on,
    };
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, setups.len()) {
            scope.spawn(|| work.take_all(&setups));
        }
    });
    let mut done = work
        .done
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    let is_complete = done.len() == setups.len();
    let mut left = vec![0_i64; plan.recordings.len()];
    (setups.iter()).for_each(|setup| left[setup.recording] += 1);
    (done.iter()).for_each(|(place, _)| left[setups[*place].recording] -= 1);
    let is_whole = |place: usize| left[setups[place].recording] == 0;
    let rows = (done.into_iter())
        // (What went wrong is told whatever else was played.)
        .filter(|(place, row)| row.is_err() || is_whole(*place))
        .map(|(_, row)| row);
    Ok(Compared {
        rows: rows.collect::<Result<_, CompareError>>()?,
        is_complete,
    })
}

/// What the threads share.
struct Work<'a> {
    plan: &'a Plan,
    libraries: Libraries,
    next: AtomicUsize,
    messages: AtomicU64,
    of: u64,
    is_stopped: AtomicBool,
    done: Mutex<Vec<(usize, Result<Row, CompareError>)>>,
    go_on: &'a (dyn Fn(Step<'_>) -> bool + Sync),
}

impl Work<'_> {
    fn take_all(&self, setups: &[Setup]) {
        while !self.is_stopped.load(Ordering::Relaxed) {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(setup) = setups.get(place) else {
                return;
            };
            let row = self.play(setup);
            if !matches!(row, Ok(Some(_))) {
                self.is_stopped.store(true, Ordering::Relaxed);
            }
            if let Some(row) = row.transpose() {
                let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
                done.push((place, row));
            }
        }
    }

    fn play(&self, setup: &Setup) -> Result<Option<Row>, CompareError> {
        let recording = &self.plan.recordings[setup.recording];
        let options = self.plan.options(setup);
        let mut counted = 0;
        let simulated = simulate_with(&options, &self.libraries, |at| {
            let played = at.policy as u64 * at.of + at.messages;
            let messages = self.messages.fetch_add(played - counted, Ordering::Relaxed);
            let step = Step {
                messages: messages + played - counted,
                of: self.of,
                trace: &recording.name,
            };
            counted = played;
            (self.go_on)(step) && !self.is_stopped.load(Ordering::Relaxed)
        });
        let simulated = simulated.map_err(|error| CompareError::Recording {
            name: recording.name.clone(),
            error,
        })?;
        Ok((simulated.is_complete).then(|| Row::new(self.plan, setup, &simulated.results)))
    }
}
