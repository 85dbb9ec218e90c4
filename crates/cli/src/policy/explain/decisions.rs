//! What a policy does with one message, decision by decision.

use std::time::Duration;

use punctual_policy::{Action, Library, PolicyKind, Situation, Steered, Step, plan};

/// What a policy decides for a message, from what it sees of the path.
pub(super) struct Decisions {
    pub(super) first: Situation,
    /// Of the messages' draws, one that stands for most.
    pub(super) steps: Vec<Explained>,
}

/// A decision, and why it is what it is.
pub(super) struct Explained {
    pub(super) step: Step,
    /// Of a policy with a price.
    pub(super) saved: Option<Saved>,
}

/// What a symbol saves: of those that would follow later, and of misses at their price. Of a flight that leaves in groups, each of a group.
pub(super) struct Saved {
    /// The last that is sent; None when no more is than what is needed.
    pub(super) by_last: Option<f64>,
    /// One more; None when none is sent.
    pub(super) by_next: Option<f64>,
}

impl Decisions {
    pub(super) fn of(kind: PolicyKind, miss_target: f32, outlook: &Situation) -> Self {
        // In the middle: of policies that mix, what they do with most messages.
        let first = Situation {
            draw: u32::MAX / 2,
            ..*outlook
        };
        let library = Library::new(kind);
        library.prepare(miss_target, [first.source_symbols]);
        let policy = library.policy(miss_target);
        let priced = (kind == PolicyKind::Steered).then(|| Steered::new(miss_target).ok());
        let steps = plan(policy, &first).into_iter().map(|step| Explained {
            saved: priced.flatten().and_then(|policy| saved(policy, &step)),
            step,
        });
        Self {
            first,
            steps: steps.collect(),
        }
    }

    /// Expected symbols that have left by then: (milliseconds since the first, symbols), a point at each change.
    pub(super) fn symbols_by_time(&self) -> Vec<(f64, f64)> {
        let mut leave: Vec<(Duration, f64)> = Vec::new();
        for Explained { step, .. } in &self.steps {
            for symbol in 0..step.action.symbols {
                leave.push((step.at + step.action.leaves_after(symbol), step.probability));
            }
        }
        leave.sort_by_key(|(at, _)| *at);
        let mut points = Vec::new();
        let mut sent = 0.0;
        for (at, probability) in leave {
            let ms = at.as_secs_f64() * 1e3;
            points.push((ms, sent));
            sent += probability;
            points.push((ms, sent));
        }
        points
    }
}

fn saved(policy: Steered, step: &Step) -> Option<Saved> {
    let flight = step.action;
    let group = flight.together.max(1);
    let worth = |flight| policy.worth(&step.situation, flight);
    let here = worth(flight)?;
    let more_than_needed = flight
        .symbols
        .checked_sub(u16::from(step.situation.deficit));
    let less = more_than_needed
        .filter(|more| *more >= group)
        .map(|_| Action {
            symbols: flight.symbols - group,
            ..flight
        });
    let by_last = less
        .and_then(worth)
        .map(|less| 1.0 + (less - here) / f64::from(group));
    let by_next = (flight.symbols > 0)
        .then(|| one_group_more(flight, step.situation.timing.slack))
        .and_then(worth)
        .map(|more| 1.0 - (more - here) / f64::from(group));
    Some(Saved { by_last, by_next })
}

/// At the same spacing if there is time, else as close as it takes for the last to leave when it does now.
fn one_group_more(flight: Action, slack: Duration) -> Action {
    let moments = flight.symbols.div_ceil(flight.together.max(1));
    let more = Action {
        symbols: flight.symbols + flight.together.max(1),
        ..flight
    };
    if more.leaves_after(more.symbols - 1) <= slack {
        return more;
    }
    Action {
        spacing: flight.spacing * u32::from(moments - 1) / u32::from(moments),
        ..more
    }
}
