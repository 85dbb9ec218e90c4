//! Ties a socket to the poller for exactly as long as both are there.

use std::io;
use std::sync::Arc;

use polling::{Event, PollMode};

use crate::udp::Socket;

/// A watched socket. Level-triggered: what was not dealt with is reported again.
#[derive(Debug)]
pub(in crate::udp) struct Registration {
    polling: Arc<polling::Poller>,
    socket: Arc<Socket>,
}

impl Registration {
    pub(in crate::udp) fn new(
        polling: Arc<polling::Poller>,
        socket: Arc<Socket>,
        event: Event,
    ) -> io::Result<Self> {
        // SAFETY: the source must be deleted from the poller before it is dropped. The registration keeps both alive and
        // `drop` deletes the one from the other.
        unsafe { polling.add_with_mode(&*socket, event, PollMode::Level)? };
        Ok(Self { polling, socket })
    }

    pub(in crate::udp) fn modify(&self, event: Event) -> io::Result<()> {
        self.polling
            .modify_with_mode(&*self.socket, event, PollMode::Level)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // It can only fail when the descriptor is not registered, which is what we want.
        let _ = self.polling.delete(&*self.socket);
    }
}
