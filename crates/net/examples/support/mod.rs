//! What the measurements share: the load, the peers that answer, and the reckoning. A measured loop runs on a thread of its
//! own between [`reckoning::Meter::start`] and `stop`, so that several loops can stand side by side in one run.

pub(crate) mod bare;
pub(crate) mod load;
pub(crate) mod peers;
pub(crate) mod reckoning;
