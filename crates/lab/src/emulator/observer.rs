//! Whoever wants to see the packets of a cable without a file between.

use std::fmt;
use std::time::Duration;

use super::Site;

/// Sees all packets of a cable as captures at both sides would have them, on the emulator's thread: what it takes long for, all
/// packets wait for.
pub trait Observer: fmt::Debug + Send {
    /// A packet leaves or reaches a side, so long after the network began. Those that the network drops only leave.
    fn on_packet(&mut self, at: Duration, site: Site, packet: &[u8]);
}
