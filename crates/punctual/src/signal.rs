//! A state that threads and tasks wait for: a lock, and a bell that rings when the state has changed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use event_listener::{Event, Listener};

/// What of a state has changed, or what somebody waits for: who waits for messages is not woken by each outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// All of it.
    Any,
    /// Messages and pieces.
    Content,
    /// Outcomes, and room to send.
    Sending,
    /// The end, of which all are told.
    End,
}

/// A state behind a lock, and who waits for it to change.
#[derive(Debug, Default)]
pub(crate) struct Signal<T> {
    state: Mutex<T>,
    /// By topic.
    changed: [Event; 4],
}

impl<T> Signal<T> {
    pub(crate) fn new(state: T) -> Self {
        Self {
            state: Mutex::new(state),
            changed: [const { Event::new() }; 4],
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        // A panic in an application's thread leaves no state half-changed: nothing of the application runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everybody who waits to look again. Cheap when nobody waits.
    pub(crate) fn ring(&self) {
        self.ring_about(Topic::Any);
    }

    /// As [`ring`](Self::ring), only those whom this concerns.
    fn ring_about(&self, topic: Topic) {
        for (other, changed) in self.changed.iter().enumerate() {
            let concerns = [Topic::Any as usize, topic as usize].contains(&other);
            if concerns || topic == Topic::Any {
                changed.notify(usize::MAX);
            }
        }
    }

    /// Waits until `look` finds what it looks for.
    pub(crate) async fn wait<R>(&self, look: impl FnMut(&mut T) -> Option<R>) -> R {
        self.wait_for(Topic::Any, look).await
    }

    /// As [`wait`](Self::wait), where only this can be what `look` looks for, or the end.
    pub(crate) async fn wait_for<R>(
        &self,
        topic: Topic,
        mut look: impl FnMut(&mut T) -> Option<R>,
    ) -> R {
        loop {
            if let Some(found) = look(&mut self.lock()) {
                return found;
            }
            let listener = self.changed[topic as usize].listen();
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
        look: impl FnMut(&mut T) -> Option<R>,
    ) -> Option<R> {
        self.wait_blocking_for(Topic::Any, until, look)
    }

    /// As [`wait_for`](Self::wait_for), on this thread. `None` when `until` passes first.
    pub(crate) fn wait_blocking_for<R>(
        &self,
        topic: Topic,
        until: Option<Instant>,
        mut look: impl FnMut(&mut T) -> Option<R>,
    ) -> Option<R> {
        loop {
            if let Some(found) = look(&mut self.lock()) {
                return Some(found);
            }
            let listener = self.changed[topic as usize].listen();
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

/// What rings.
trait Bell: Send + Sync {
    fn ring_about(&self, topic: Topic);
}

impl<T: Send> Bell for Signal<T> {
    fn ring_about(&self, topic: Topic) {
        Self::ring_about(self, topic);
    }
}

/// Bells to be rung once a lock is free: a waker is the application's, and may do what needs that lock. (Not what rings the same bell: wakers run under the bell's own
/// lock, and to poll or to receive within one is what no waker of an executor does.)
#[derive(Default)]
pub(crate) struct Rings(Vec<(Arc<dyn Bell>, Topic)>);

impl Rings {
    /// Events of a session mostly follow each other: comparing with the last one spares nearly all double rings.
    pub(crate) fn add<T: Send + 'static>(&mut self, signal: &Arc<Signal<T>>) {
        self.add_about(Topic::Any, signal);
    }

    /// As [`add`](Self::add), for those whom this concerns.
    pub(crate) fn add_about<T: Send + 'static>(&mut self, topic: Topic, signal: &Arc<Signal<T>>) {
        let is_same = |(last, about): &(Arc<dyn Bell>, Topic)| {
            *about == topic && std::ptr::addr_eq(Arc::as_ptr(last), Arc::as_ptr(signal))
        };
        if !self.0.last().is_some_and(is_same) {
            self.0.push((Arc::clone(signal) as Arc<dyn Bell>, topic));
        }
    }

    pub(crate) fn append(&mut self, other: &mut Self) {
        self.0.append(&mut other.0);
    }

    /// Rings them all, the latest first. One whose waker panics is not rung again.
    pub(crate) fn ring(&mut self) {
        while let Some((bell, topic)) = self.0.pop() {
            bell.ring_about(topic);
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for Rings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Rings").field(&self.0.len()).finish()
    }
}
