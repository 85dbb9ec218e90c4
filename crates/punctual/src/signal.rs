//! A state that threads and tasks wait for: a lock, and a bell that rings when the state has changed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use event_listener::{Event, Listener};

/// A state behind a lock, and who waits for it to change.
#[derive(Debug, Default)]
pub(crate) struct Signal<T> {
    state: Mutex<T>,
    changed: Event,
}

impl<T> Signal<T> {
    pub(crate) fn new(state: T) -> Self {
        Self {
            state: Mutex::new(state),
            changed: Event::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        // A panic in an application's thread leaves no state half-changed: nothing of the application runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everybody who waits to look again. Cheap when nobody waits.
    pub(crate) fn ring(&self) {
        self.changed.notify(usize::MAX);
    }

    /// Waits until `look` finds what it looks for.
    pub(crate) async fn wait<R>(&self, mut look: impl FnMut(&mut T) -> Option<R>) -> R {
        loop {
            if let Some(found) = look(&mut self.lock()) {
                return found;
            }
            let listener = self.changed.listen();
            // Once more: what happened between the look and the listening rang for nobody.
            if let Some(found) = look(&mut self.lock()) {
                return found;
            }
            listener.await;
        }
    }

    /// As [`wait`](Self::wait), on this thread. `None` when `until` passes first.
    pub(crate) fn wait_blocking<R>(
        &self,
        until: Option<Instant>,
        mut look: impl FnMut(&mut T) -> Option<R>,
    ) -> Option<R> {
        loop {
            if let Some(found) = look(&mut self.lock()) {
                return Some(found);
            }
            let listener = self.changed.listen();
            if let Some(found) = look(&mut self.lock()) {
                return Some(found);
            }
            match until {
                None => listener.wait(),
                Some(until) => {
                    if listener.wait_deadline(until).is_none() {
                        return look(&mut self.lock());
                    }
                }
            }
        }
    }
}
