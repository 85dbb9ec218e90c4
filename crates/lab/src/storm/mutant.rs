//! Storms in which one thing is not told as it happened. A checker that cannot fail checks nothing: for each rule there is a
//! mutant that breaks it, and a test that sees it noticed.

use punctual_proto::{Cancel, Delivery, Event, Outcome, Piece, StreamId, limits};

use super::model::{Entry, Model, Rule, fill};
use super::{Choices, Pair, SeedChoices};
use crate::world::{Happening, HostId};

/// What is not told as it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mutant {
    /// A message is handed on twice.
    Duplicate,
    /// A byte of a message is changed.
    Corrupt,
    /// A message comes on another stream.
    WrongStream,
    /// A message on a reliable stream is swallowed.
    Swallow,
    /// From some message on an ordered stream falls silent.
    Silence,
    /// Two messages of an ordered stream change places.
    Reorder,
    /// An older message comes after a newer one of its key.
    StaleLatest,
    /// An older message comes after a newer one of its sequenced stream.
    StaleSequenced,
    /// A message that was cancelled before it had left is handed on.
    AfterCancel,
    /// A message gets its outcome twice.
    SecondOutcome,
    /// A message never gets its outcome.
    LostOutcome,
    /// A message that never came is reported on time.
    FalseOutcome,
    /// A message on a reliable stream is reported superseded.
    FalseSuperseded,
    /// A late message is reported on time.
    WrongCount,
    /// A piece of a large message comes twice.
    PieceTwice,
    /// A piece of a large message is swallowed.
    PieceLost,
    /// That no more pieces come is not told.
    AbortLost,
    /// In the end something is under way without cease.
    Busy,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::Duplicate,
        Self::Corrupt,
        Self::WrongStream,
        Self::Swallow,
        Self::Silence,
        Self::Reorder,
        Self::StaleLatest,
        Self::StaleSequenced,
        Self::AfterCancel,
        Self::SecondOutcome,
        Self::LostOutcome,
        Self::FalseOutcome,
        Self::FalseSuperseded,
        Self::WrongCount,
        Self::PieceTwice,
        Self::PieceLost,
        Self::AbortLost,
        Self::Busy,
    ];

    /// The rule that it breaks.
    pub const fn breaks(self) -> Rule {
        match self {
            Self::Duplicate => Rule::AtMostOnce,
            Self::Corrupt | Self::WrongStream => Rule::Genuine,
            Self::Silence => Rule::AtLeastOnce,
            Self::Reorder => Rule::Ordered,
            Self::StaleLatest | Self::StaleSequenced => Rule::Newest,
            Self::AfterCancel => Rule::AfterCancel,
            Self::SecondOutcome | Self::LostOutcome => Rule::OneOutcome,
            Self::Swallow | Self::FalseOutcome | Self::FalseSuperseded => Rule::TrueOutcome,
            Self::WrongCount => Rule::Statistics,
            Self::PieceTwice | Self::PieceLost | Self::AbortLost => Rule::Pieces,
            Self::Busy => Rule::Quiet,
        }
    }
}

/// What is held back until its time comes.
struct Held {
    /// The pair, and the side that was to be told.
    place: (usize, usize),
    happening: Happening,
}

/// The victim.
struct Victim {
    pair: usize,
    /// The side that receives.
    side: usize,
    stream: u16,
    number: u64,
    lane: (u16, Option<u64>),
}

/// A mutant at work.
pub(super) struct Mutator {
    mutant: Mutant,
    choices: SeedChoices,
    victim: Option<Victim>,
    is_done: bool,
    held: Vec<Held>,
    is_settling: bool,
}

type Told = Vec<(usize, Happening)>;

impl Mutator {
    pub(super) fn new(seed: u64, mutant: Mutant) -> Self {
        Self {
            mutant,
            choices: SeedChoices::new(seed ^ 0x0bad_5eed),
            victim: None,
            is_done: false,
            held: Vec::new(),
            is_settling: false,
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.mutant == Mutant::Busy
    }

    /// The storm is over: what was held back is told now.
    pub(super) fn release(&mut self) -> Vec<(usize, usize, Happening)> {
        self.is_settling = true;
        if self.mutant != Mutant::Silence && !self.held.is_empty() {
            self.is_done = true;
            self.victim = None;
        }
        self.held
            .drain(..)
            .map(|held| (held.place.0, held.place.1, held.happening))
            .collect()
    }

    /// What the two sides of a pair are told instead of `happening`, which is for `side`.
    pub(super) fn tamper(
        &mut self,
        pairs: &[Pair],
        server: HostId,
        (pair, side): (usize, usize),
        mut happening: Happening,
    ) -> Told {
        if self.victim.is_some() {
            return self.go_on(&pairs[pair], (pair, side), happening);
        }
        if self.is_done {
            return vec![(side, happening)];
        }
        let sides = &pairs[pair].sides;
        let is_victim = match &happening.event {
            Event::Message { data, .. } => sides[1 - side]
                .look(data)
                .is_some_and(|(_, entry)| self.fits_message(entry)),
            Event::Piece(Piece::Aborted { .. }) => self.mutant == Mutant::AbortLost,
            Event::Piece(piece) => match self.mutant {
                Mutant::PieceTwice => true,
                Mutant::PieceLost => !piece.is_last(),
                _ => false,
            },
            Event::Outcome {
                message, outcome, ..
            } => sides[side]
                .number_of(*message)
                .and_then(|number| sides[side].entry(number))
                .is_some_and(|entry| self.fits_outcome(entry, outcome)),
            _ => false,
        };
        if !is_victim || self.choices.below(3) > 0 {
            return vec![(side, happening)];
        }
        self.is_done = true;
        match self.mutant {
            Mutant::Duplicate | Mutant::SecondOutcome | Mutant::PieceTwice => {
                let again = copy(&happening);
                return vec![(side, happening), (side, again)];
            }
            Mutant::Swallow | Mutant::LostOutcome | Mutant::PieceLost | Mutant::AbortLost => {
                return Vec::new();
            }
            Mutant::AfterCancel => {
                if let Some(forged) = delivery_of(&pairs[pair], server, side, &happening) {
                    return vec![(side, happening), (1 - side, forged)];
                }
            }
            Mutant::Silence | Mutant::Reorder | Mutant::StaleLatest | Mutant::StaleSequenced => {
                self.victim = victim(&sides[1 - side], (pair, side), &happening.event);
                if self.mutant == Mutant::Silence {
                    return Vec::new();
                }
                self.hold((pair, side), happening);
                return Vec::new();
            }
            _ => change(self.mutant, &mut happening.event),
        }
        vec![(side, happening)]
    }

    fn fits_message(&self, entry: &Entry) -> bool {
        match self.mutant {
            Mutant::Duplicate | Mutant::Corrupt | Mutant::WrongStream => true,
            Mutant::Swallow => entry.delivery == Delivery::Reliable,
            Mutant::Silence => entry.delivery == Delivery::ReliableOrdered,
            // In the end nothing newer comes.
            _ if self.is_settling => false,
            Mutant::Reorder => entry.delivery == Delivery::ReliableOrdered,
            Mutant::StaleLatest => entry.delivery == Delivery::Latest,
            Mutant::StaleSequenced => entry.delivery == Delivery::UnreliableSequenced,
            _ => false,
        }
    }

    fn fits_outcome(&self, entry: &Entry, outcome: &Outcome) -> bool {
        let is_plain = matches!(entry.delivery, Delivery::Reliable | Delivery::Unreliable);
        match self.mutant {
            Mutant::SecondOutcome => true,
            // Earlier, a cancel or a stream that is opened again would show it first.
            Mutant::LostOutcome => self.is_settling,
            Mutant::FalseOutcome => {
                is_plain
                    && !entry.is_short()
                    && entry.has_nothing()
                    && matches!(outcome, Outcome::Dropped { .. })
            }
            Mutant::FalseSuperseded => is_plain,
            Mutant::WrongCount => matches!(outcome, Outcome::Late { .. }),
            Mutant::AfterCancel => {
                is_plain
                    && !entry.is_short()
                    && entry.len <= limits::WHOLE_MAX
                    && entry.was_cancelled() == Some(Cancel::Dropped)
                    && matches!(outcome, Outcome::Cancelled { .. })
            }
            _ => false,
        }
    }

    fn hold(&mut self, place: (usize, usize), happening: Happening) {
        self.held.push(Held { place, happening });
    }

    /// The victim is chosen: holds back what belongs to it, until what it is to come after has come.
    fn go_on(&mut self, pair: &Pair, place: (usize, usize), happening: Happening) -> Told {
        let side = place.1;
        let Some(victim) = &self.victim else {
            return vec![(side, happening)];
        };
        if place.0 != victim.pair {
            return vec![(side, happening)];
        }
        let model = &pair.sides[1 - victim.side];
        match &happening.event {
            Event::Message { stream, data } if side == victim.side => {
                if self.mutant == Mutant::Silence {
                    return match stream.0 == victim.stream {
                        true => Vec::new(),
                        false => vec![(side, happening)],
                    };
                }
                let releases = model.look(data).is_some_and(|(number, entry)| {
                    number > victim.number && entry.lane() == victim.lane && entry.is_in_lane()
                });
                if !releases {
                    return vec![(side, happening)];
                }
                self.victim = None;
                let held = self
                    .held
                    .drain(..)
                    .map(|held| (held.place.1, held.happening));
                std::iter::once((side, happening)).chain(held).collect()
            }
            // Where nothing comes, no piece does.
            Event::Piece(piece)
                if side == victim.side
                    && self.mutant == Mutant::Silence
                    && piece.stream().0 == victim.stream =>
            {
                Vec::new()
            }
            // It is not reported before it has come.
            Event::Outcome { message, .. }
                if side != victim.side
                    && self.mutant != Mutant::Silence
                    && model.number_of(*message) == Some(victim.number) =>
            {
                self.hold(place, happening);
                Vec::new()
            }
            Event::Closed { .. } => {
                // Too late for this storm: all is told.
                self.victim = None;
                let held: Told = self
                    .held
                    .drain(..)
                    .map(|held| (held.place.1, held.happening))
                    .collect();
                held.into_iter().chain([(side, happening)]).collect()
            }
            _ => vec![(side, happening)],
        }
    }
}

fn victim(model: &Model, (pair, side): (usize, usize), event: &Event) -> Option<Victim> {
    let Event::Message { stream, data } = event else {
        return None;
    };
    let (number, entry) = model.look(data)?;
    Some(Victim {
        pair,
        side,
        stream: stream.0,
        number,
        lane: entry.lane(),
    })
}

/// An event that says something else.
fn change(mutant: Mutant, event: &mut Event) {
    match event {
        Event::Message { stream, data } => match mutant {
            Mutant::WrongStream => *stream = StreamId(stream.0 ^ 1),
            _ => {
                if let Some(last) = data.last_mut().filter(|_| mutant == Mutant::Corrupt) {
                    *last ^= 0x40;
                }
            }
        },
        Event::Outcome { outcome, .. } => {
            *outcome = match (mutant, *outcome) {
                (Mutant::FalseSuperseded, _) => Outcome::Superseded,
                (_, Outcome::Late { latency, bound, .. }) => Outcome::OnTime { latency, bound },
                _ => Outcome::OnTime {
                    latency: std::time::Duration::ZERO,
                    bound: std::time::Duration::ZERO,
                },
            }
        }
        _ => {}
    }
}

/// The message whose outcome `happening` tells to `side`, as if the other side received it.
fn delivery_of(
    pair: &Pair,
    server: HostId,
    side: usize,
    happening: &Happening,
) -> Option<Happening> {
    let Event::Outcome {
        message, stream, ..
    } = &happening.event
    else {
        return None;
    };
    let number = pair.sides[side].number_of(*message)?;
    let entry = pair.sides[side].entry(number)?;
    let (host, session) = pair.at(1 - side, server)?;
    let mut data = Vec::new();
    fill(&mut data, number, entry.len);
    Some(Happening {
        at: happening.at,
        host,
        session,
        event: Event::Message {
            stream: *stream,
            data,
        },
    })
}

fn copy(happening: &Happening) -> Happening {
    Happening {
        event: happening.event.clone(),
        ..*happening
    }
}
