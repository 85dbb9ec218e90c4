//! Plays a plan.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::{CompareError, Plan, Row, Setup};
use crate::simulate::{Libraries, simulate_with};

/// By so many times longer is a row played again.
const LONGER: u64 = 4;

/// How far it has come.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// Messages played, of all rows and policies; anew when rows are played again.
    pub messages: u64,
    /// Messages to play.
    pub of: u64,
    /// The recording that is being played.
    pub trace: &'a str,
    /// Messages of each policy in each row now.
    pub messages_each: u64,
}

/// What was played.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Rows in the plan's order, of each recording all or none.
    pub rows: Vec<Row>,
    /// Nothing ended it early.
    pub is_complete: bool,
}

/// Plays every row on so many threads, and those that chance leaves open longer, as the plan says; the rows are the same however many
/// threads there are. It ends as soon as `go_on`, which is asked all the time, says no: with those recordings that were played whole, and
/// those rows that were played longer.
///
/// # Errors
/// When the plan makes no sense, or over a recording no session can be opened.
pub fn compare(
    plan: &Plan,
    threads: usize,
    go_on: &(dyn Fn(Step<'_>) -> bool + Sync),
) -> Result<Compared, CompareError> {
    plan.check()?;
    let work = Work {
        plan,
        setups: plan.setups(),
        libraries: Libraries::default(),
        go_on,
    };
    let places: Vec<usize> = (0..work.setups.len()).collect();
    let mut messages = plan.messages;
    let first = Stage::new(&work, &places, messages).play(threads);
    let mut compared = work.whole(first)?;
    while compared.is_complete && messages < plan.messages_max {
        let open = work.open(&compared.rows);
        if open.is_empty() {
            break;
        }
        messages = messages.saturating_mul(LONGER).min(plan.messages_max);
        let again = Stage::new(&work, &open, messages).play(threads);
        compared.is_complete = again.len() == open.len();
        for (place, row) in again {
            compared.rows[place] = row?;
        }
    }
    Ok(compared)
}

/// Rows and their places in the plan's order.
type Played = Vec<(usize, Result<Row, CompareError>)>;

/// What all stages share.
struct Work<'a> {
    plan: &'a Plan,
    setups: Vec<Setup>,
    libraries: Libraries,
    go_on: &'a (dyn Fn(Step<'_>) -> bool + Sync),
}

impl Work<'_> {
    /// Of those that were played the recordings that are whole.
    fn whole(&self, played: Played) -> Result<Compared, CompareError> {
        let setups = &self.setups;
        let is_complete = played.len() == setups.len();
        let mut left = vec![0_i64; self.plan.recordings.len()];
        (setups.iter()).for_each(|setup| left[setup.recording] += 1);
        (played.iter()).for_each(|(place, _)| left[setups[*place].recording] -= 1);
        let is_whole = |place: usize| left[setups[place].recording] == 0;
        let rows = (played.into_iter())
            // (What went wrong is told whatever else was played.)
            .filter(|(place, row)| row.is_err() || is_whole(*place))
            .map(|(_, row)| row);
        Ok(Compared {
            rows: rows.collect::<Result<_, CompareError>>()?,
            is_complete,
        })
    }

    /// Which rows chance leaves open.
    fn open(&self, rows: &[Row]) -> Vec<usize> {
        let Some(rivals) = &self.plan.rivals else {
            return Vec::new();
        };
        let rows = rows.iter().enumerate();
        let open = rows.filter(|(_, row)| rivals.leave_open(row));
        open.map(|(place, _)| place).collect()
    }
}

/// Rows that are played with the same number of messages, and how far they are.
struct Stage<'a> {
    work: &'a Work<'a>,
    places: &'a [usize],
    messages_each: u64,
    next: AtomicUsize,
    messages: AtomicU64,
    is_stopped: AtomicBool,
    done: Mutex<Played>,
}

impl<'a> Stage<'a> {
    fn new(work: &'a Work<'a>, places: &'a [usize], messages_each: u64) -> Self {
        Self {
            work,
            places,
            messages_each,
            next: AtomicUsize::new(0),
            messages: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            done: Mutex::new(Vec::new()),
        }
    }

    /// In the plan's order, as far as nothing stopped it.
    fn play(self, threads: usize) -> Played {
        thread::scope(|scope| {
            for _ in 0..threads.clamp(1, self.places.len()) {
                scope.spawn(|| self.take_all());
            }
        });
        let mut done = self
            .done
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(place, _)| *place);
        done
    }

    fn take_all(&self) {
        while !self.is_stopped.load(Ordering::Relaxed) {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&place) = self.places.get(next) else {
                return;
            };
            let row = self.play_one(&self.work.setups[place]);
            if !matches!(row, Ok(Some(_))) {
                self.is_stopped.store(true, Ordering::Relaxed);
            }
            if let Some(row) = row.transpose() {
                let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
                done.push((place, row));
            }
        }
    }

    fn play_one(&self, setup: &Setup) -> Result<Option<Row>, CompareError> {
        let Work {
            plan,
            libraries,
            go_on,
            ..
        } = self.work;
        let messages_each = self.messages_each;
        let recording = &plan.recordings[setup.recording];
        let options = plan.options(setup, messages_each);
        let of = self.places.len() as u64 * plan.policies.len() as u64 * messages_each;
        let mut counted = 0;
        let simulated = simulate_with(&options, libraries, |at| {
            let played = at.policy as u64 * at.of + at.messages;
            let messages = self.messages.fetch_add(played - counted, Ordering::Relaxed);
            let step = Step {
                messages: messages + played - counted,
                of,
                trace: &recording.name,
                messages_each,
            };
            counted = played;
            go_on(step) && !self.is_stopped.load(Ordering::Relaxed)
        });
        let simulated = simulated.map_err(|error| CompareError::Recording {
            name: recording.name.clone(),
            error,
        })?;
        let row = || Row::new(plan, setup, messages_each, &simulated.results);
        Ok((simulated.is_complete).then(row))
    }
}
