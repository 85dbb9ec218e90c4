//! Builds policy tables off the path of packets.
//!
//! A look-up that misses a table notes what it wanted and goes on with a stopgap (`punctual_policy::Library`). Whoever drives
//! an endpoint calls [`build_wanted`] now and then; when something is wanted, one thread of the process builds it and ends
//! when nothing is left to do.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use punctual_policy::Library;

/// Libraries that wait for the builder, and whether it is there.
struct Queue {
    libraries: Vec<Arc<Library>>,
    is_building: bool,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    libraries: Vec::new(),
    is_building: false,
});

/// Has what `library` wants built by the process's builder thread. Costs a few atomic reads when nothing is wanted, and
/// never waits for a table.
pub fn build_wanted(library: &Arc<Library>) {
    if library.is_wanting() {
        enqueue(library);
    }
}

#[cold]
fn enqueue(library: &Arc<Library>) {
    let mut queue = lock();
    if !queue
        .libraries
        .iter()
        .any(|queued| Arc::ptr_eq(queued, library))
    {
        queue.libraries.push(Arc::clone(library));
    }
    if !queue.is_building {
        // Without a thread the stopgaps go on serving, and the next call tries again.
        let builder = thread::Builder::new().name("punctual-tables".into());
        queue.is_building = builder.spawn(build_all).is_ok();
    }
}

/// Says that nobody builds any more, when building panics: the next call tries again.
struct Building;

impl Drop for Building {
    fn drop(&mut self) {
        if thread::panicking() {
            lock().is_building = false;
        }
    }
}

fn build_all() {
    let _building = Building;
    loop {
        // It stays in the queue while it is built, so that nobody queues it a second time.
        let Some(library) = next() else { return };
        library.build_wanted();
        let mut queue = lock();
        if !library.is_wanting() {
            queue
                .libraries
                .retain(|queued| !Arc::ptr_eq(queued, &library));
        }
    }
}

fn next() -> Option<Arc<Library>> {
    let mut queue = lock();
    let first = queue.libraries.first().map(Arc::clone);
    queue.is_building = first.is_some();
    first
}

fn lock() -> std::sync::MutexGuard<'static, Queue> {
    // Nothing is left half-done by a panic inside.
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_policy::{PolicyKind, Situation};

    /// Goal: what a look-up misses is there soon after.   Method: ask for a table, and wait for it.
    #[test]
    fn wanted_tables_are_built() {
        let library = Arc::new(Library::new(PolicyKind::Exact));
        build_wanted(&library);
        let situation = Situation::first(2, 2, 0.05);
        library.policy(0.001).decide(&situation);
        assert!(library.is_wanting());
        build_wanted(&library);
        while library.is_wanting() {
            thread::yield_now();
        }
    }
}
