//! One kind of policy for all miss targets that an endpoint's streams ask for.

use once_cell::race::OnceBox;

use crate::limits::{MISS_TARGET_MIN, MISS_TARGETS_MAX};
use crate::{
    Exact, Fixed, Hairpin, Pangolin, ParityPrice, Policy, PolicyKind, Retransmit, Steered, Without,
};

/// Policies of one kind by miss target, shared by sessions and threads.
///
/// Look-ups never block and never solve. What they miss is noted, and built by whoever calls `build_wanted` next.
#[derive(Debug)]
pub struct Library {
    kind: PolicyKind,
    fixed: Fixed,
    /// It knows no miss target.
    hairpin: Hairpin,
    /// Filled from the front, and never emptied.
    kept: [OnceBox<Kept>; MISS_TARGETS_MAX],
    /// For what finds no place there.
    decades: [OnceBox<Kept>; DECADES.len()],
}

/// Targets of which one is at most ten times as strict as any.
const DECADES: [f32; 9] = [
    1e-1,
    1e-2,
    1e-3,
    1e-4,
    1e-5,
    1e-6,
    1e-7,
    1e-8,
    MISS_TARGET_MIN,
];

/// The policy of one miss target.
#[derive(Debug)]
struct Kept {
    miss_target: f32,
    tables: Tables,
}

#[derive(Debug)]
enum Tables {
    Pangolin(Pangolin),
    Exact(Exact),
    Steered(Steered),
    Without(Without),
}

impl Library {
    /// A library that has built nothing yet.
    #[must_use]
    pub const fn new(kind: PolicyKind) -> Self {
        let repair = if let PolicyKind::Fixed(repair) = kind {
            repair
        } else {
            0
        };
        let price = if let PolicyKind::Hairpin(price) = kind {
            price
        } else {
            ParityPrice::PUBLISHED
        };
        Self {
            kind,
            fixed: Fixed { repair },
            hairpin: Hairpin::new(price),
            kept: [const { OnceBox::new() }; MISS_TARGETS_MAX],
            decades: [const { OnceBox::new() }; DECADES.len()],
        }
    }

    /// The kind of policy that this library holds.
    #[must_use]
    pub const fn kind(&self) -> PolicyKind {
        self.kind
    }

    /// The policy for this miss target.
    ///
    /// Up to [`MISS_TARGETS_MAX`] distinct targets are kept exactly; beyond that the nearest stricter one serves of those and of the powers of ten.
    /// A target outside [`MISS_TARGET_MIN`]..1 (or not a number) is taken as the nearest
    /// within (as the strictest).
    pub fn policy(&self, miss_target: f32) -> &dyn Policy {
        match self.kind {
            PolicyKind::Retransmit => &Retransmit,
            PolicyKind::Fixed(_) => &self.fixed,
            PolicyKind::Hairpin(_) => &self.hairpin,
            PolicyKind::Pangolin
            | PolicyKind::Exact
            | PolicyKind::Steered
            | PolicyKind::SteeredWithout(_) => self.kept(miss_target).policy(),
        }
    }

    /// Whether look-ups have missed tables that are not built yet.
    #[must_use]
    pub fn is_wanting(&self) -> bool {
        self.hairpin.wanted() != 0 || self.all_kept().any(Kept::is_wanting)
    }

    fn all_kept(&self) -> impl Iterator<Item = &Kept> {
        let decades = self.decades.iter().filter_map(OnceBox::get);
        self.kept.iter().map_while(OnceBox::get).chain(decades)
    }

    fn kept(&self, miss_target: f32) -> &Kept {
        let miss_target = clamped(miss_target);
        for place in &self.kept {
            let kept = match place.get() {
                Some(kept) => kept,
                // Two threads may come here with different targets; who loses finds the other's value, and goes on.
                None => place.get_or_init(|| Kept::new(self.kind, miss_target)),
            };
            if kept.miss_target == miss_target {
                return kept;
            }
        }
        let decade = DECADES.iter().position(|decade| *decade <= miss_target);
        let decade = decade.unwrap_or(DECADES.len() - 1);
        let stricter = self
            .all_kept()
            .filter(|kept| kept.miss_target < miss_target && kept.miss_target >= DECADES[decade]);
        let nearest = stricter.max_by(|a, b| a.miss_target.total_cmp(&b.miss_target));
        nearest.unwrap_or_else(|| {
            self.decades[decade].get_or_init(|| Kept::new(self.kind, DECADES[decade]))
        })
    }
}

#[cfg(feature = "solve")]
impl Library {
    /// Builds everything that look-ups have missed; returns how many tables are new. Not for the path of a packet.
    pub fn build_wanted(&self) -> usize {
        let kept: usize = self.all_kept().map(Kept::build_wanted).sum();
        kept + self.hairpin.build_wanted()
    }

    /// Builds ahead for this target and these k.
    pub fn prepare(&self, miss_target: f32, source_symbols: impl IntoIterator<Item = u8>) {
        let build: &dyn Fn(u8) -> usize = match self.kind {
            PolicyKind::Retransmit | PolicyKind::Fixed(_) => return,
            PolicyKind::Hairpin(_) => &|k| self.hairpin.build(k),
            PolicyKind::Pangolin
            | PolicyKind::Exact
            | PolicyKind::Steered
            | PolicyKind::SteeredWithout(_) => {
                let kept = self.kept(miss_target);
                &|k| kept.build(k)
            }
        };
        for source_symbols in source_symbols {
            build(source_symbols);
        }
    }
}

impl Kept {
    fn new(kind: PolicyKind, miss_target: f32) -> alloc::boxed::Box<Self> {
        let within = "the target was clamped into the range";
        let tables = match kind {
            PolicyKind::Pangolin => Tables::Pangolin(Pangolin::new(miss_target).expect(within)),
            PolicyKind::Steered => Tables::Steered(Steered::new(miss_target).expect(within)),
            PolicyKind::SteeredWithout(part) => Tables::Without(Without {
                policy: Steered::new(miss_target).expect(within),
                part,
            }),
            _ => Tables::Exact(Exact::new(miss_target).expect(within)),
        };
        alloc::boxed::Box::new(Self {
            miss_target,
            tables,
        })
    }

    fn policy(&self) -> &dyn Policy {
        match &self.tables {
            Tables::Pangolin(pangolin) => pangolin,
            Tables::Exact(exact) => exact,
            Tables::Steered(steered) => steered,
            Tables::Without(without) => without,
        }
    }

    fn is_wanting(&self) -> bool {
        match &self.tables {
            Tables::Pangolin(pangolin) => pangolin.wanted() != 0,
            Tables::Exact(exact) => exact.wanted() != 0,
            Tables::Steered(steered)
            | Tables::Without(Without {
                policy: steered, ..
            }) => steered.is_wanting(),
        }
    }
}

#[cfg(feature = "solve")]
impl Kept {
    fn build(&self, source_symbols: u8) -> usize {
        match &self.tables {
            Tables::Pangolin(pangolin) => pangolin.build(source_symbols),
            Tables::Exact(exact) => exact.build(source_symbols),
            // One table serves all k.
            Tables::Steered(steered)
            | Tables::Without(Without {
                policy: steered, ..
            }) => steered.build_all(),
        }
    }

    fn build_wanted(&self) -> usize {
        match &self.tables {
            Tables::Pangolin(pangolin) => pangolin.build_wanted(),
            Tables::Exact(exact) => exact.build_wanted(),
            Tables::Steered(steered)
            | Tables::Without(Without {
                policy: steered, ..
            }) => steered.build_wanted(),
        }
    }
}

fn clamped(miss_target: f32) -> f32 {
    const LAXEST: f32 = 1.0 - f32::EPSILON;
    if miss_target.is_nan() {
        MISS_TARGET_MIN
    } else {
        miss_target.clamp(MISS_TARGET_MIN, LAXEST)
    }
}
