//! What networks and hosts do that they should not.

use std::time::Duration;

use punctual_proto::Ecn;

use super::{HostId, World};

/// What all paths do to ECN-capable packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnFault {
    /// They are lost.
    Drops,
    /// All arrive with the mark of congestion.
    MarksAll,
}

impl World {
    /// Says what all paths do to ECN-capable packets. None: nothing.
    #[must_use]
    pub fn with_ecn_fault(mut self, fault: Option<EcnFault>) -> Self {
        self.ecn_fault = fault;
        self
    }

    /// As [`with_ecn_fault`](Self::with_ecn_fault), from now on: what it looks like to come to another network.
    pub fn set_ecn_fault(&mut self, fault: Option<EcnFault>) {
        self.ecn_fault = fault;
    }

    /// A host's clock jumps ahead: how it looks to the host when its peer was suspended.
    pub fn jump_clock(&mut self, host: HostId, span: Duration) {
        self.hosts[host.0 as usize].clock.offset_ns += span.as_nanos() as u64;
        self.mark(host);
    }

    /// How a packet arrives that was sent with this mark; `None` if it does not.
    pub(super) fn ecn_at_arrival(&self, ecn: Ecn) -> Option<Ecn> {
        match self.ecn_fault {
            Some(_) if ecn == Ecn::NotEct => Some(ecn),
            Some(EcnFault::Drops) => None,
            Some(EcnFault::MarksAll) => Some(Ecn::Ce),
            None => Some(ecn),
        }
    }
}
