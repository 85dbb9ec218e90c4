//! What a policy does with one message, decision by decision.

use std::time::Duration;

use punctual_policy::{Library, PolicyKind, Situation, Steered, Step, plan};

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

/// What symbols save: of those that would follow later, and of misses at their price.
pub(super) struct Saved {
    /// The last symbol that is sent; None when none is.
    pub(super) by_last: Option<f64>,
    /// One more.
    pub(super) by_next: f64,
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
    let symbols = step.action.symbols;
    // What follows, besides the symbols themselves.
    let follows = |symbols: u16| Some(policy.worth(&step.situation, symbols)? - f64::from(symbols));
    let here = follows(symbols)?;
    let before = symbols.checked_sub(1).and_then(follows);
    Some(Saved {
        by_last: before.map(|before| before - here),
        by_next: here - follows(symbols + 1)?,
    })
}
