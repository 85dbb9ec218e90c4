//! Who looks at a cable's packets: files and an observer. They are no part of the network: it goes on when a file cannot be written any more.

use std::time::{Duration, SystemTime};

use super::files::Dropped;
use super::{Cable, Capture, DropLog, EmulatorError, Observer, Site};

/// What is told of a cable's packets, and to whom.
#[derive(Debug)]
pub(super) struct Onlookers {
    drop_log: Option<DropLog>,
    capture: Option<Capture>,
    observer: Option<Box<dyn Observer>>,
    /// When the network began.
    start: SystemTime,
    /// Why a file ends early.
    unwritten: Option<EmulatorError>,
}

impl Onlookers {
    pub(super) fn new(cable: Cable, start: SystemTime) -> Self {
        Self {
            drop_log: cable.drop_log,
            capture: cable.capture,
            observer: cable.observer,
            start,
            unwritten: None,
        }
    }

    /// A packet leaves or reaches a side, so many nanoseconds after the start.
    pub(super) fn on_packet(&mut self, now_ns: u64, site: Site, packet: &[u8]) {
        let at = Duration::from_nanos(now_ns);
        if let Some(observer) = &mut self.observer {
            observer.on_packet(at, site, packet);
        }
        let start = self.start;
        let write = |capture: &mut Capture| capture.record(site, at, start, packet);
        until_it_fails(&mut self.capture, &mut self.unwritten, write);
    }

    /// A packet of this client was dropped.
    pub(super) fn on_drop(
        &mut self,
        now_ns: u64,
        from: Site,
        client: usize,
        why: Dropped,
        packet: &[u8],
    ) {
        let write = |log: &mut DropLog| log.record(now_ns / 1000, from, client, why, packet);
        until_it_fails(&mut self.drop_log, &mut self.unwritten, write);
    }

    /// Nothing more comes: what could not be written of it, if anything.
    pub(super) fn finish(mut self) -> Option<EmulatorError> {
        until_it_fails(&mut self.drop_log, &mut self.unwritten, DropLog::finish);
        until_it_fails(&mut self.capture, &mut self.unwritten, Capture::finish);
        self.unwritten
    }
}

fn until_it_fails<T>(
    file: &mut Option<T>,
    unwritten: &mut Option<EmulatorError>,
    write: impl FnOnce(&mut T) -> Result<(), EmulatorError>,
) {
    if let Some(Err(error)) = file.as_mut().map(write) {
        *file = None;
        unwritten.get_or_insert(error);
    }
}
