//! The next timeout of each flow, the earliest first.

use std::collections::BTreeSet;
use std::time::Instant;

/// At most one timeout a flow.
#[derive(Debug)]
pub(crate) struct Timers {
    order: BTreeSet<(Instant, u32)>,
    of_flow: Vec<Option<Instant>>,
}

impl Timers {
    /// No timeouts yet.
    pub(crate) fn new(flows: u32) -> Self {
        Self {
            order: BTreeSet::new(),
            of_flow: vec![None; flows as usize],
        }
    }

    /// Replaces the timeout of a flow.
    pub(crate) fn set(&mut self, flow: u32, at: Option<Instant>) {
        let old = &mut self.of_flow[flow as usize];
        if *old == at {
            return;
        }
        if let Some(old) = *old {
            self.order.remove(&(old, flow));
        }
        *old = at;
        if let Some(at) = at {
            self.order.insert((at, flow));
        }
    }

    /// The earliest timeout of all.
    pub(crate) fn first(&self) -> Option<Instant> {
        self.order.first().map(|&(at, _)| at)
    }

    /// Takes out a flow whose timeout has come.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let &(at, flow) = self.order.first()?;
        if at > now {
            return None;
        }
        self.order.pop_first();
        self.of_flow[flow as usize] = None;
        Some(flow)
    }
}
