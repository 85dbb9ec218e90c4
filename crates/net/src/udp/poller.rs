//! Waits for sockets, for other threads, and for time to pass.
//!
//! Underneath is `polling`: epoll with a timer descriptor on Linux, so that timeouts are precise to the scheduler's
//! microseconds rather than to whole milliseconds.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use polling::{Event, Events};

use super::Socket;
use super::sys::Registration;

/// Nobody waits and nobody has called.
const AWAKE: u8 = 0;
/// The poller waits, or is about to: who calls must interrupt it.
const ASLEEP: u8 = 1;
/// Somebody has called since the last wait.
const CALLED: u8 = 2;

/// Most events of one wait; more are reported by the next.
const EVENTS_MAX: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not zero");

/// Waits until a socket is ready, a [`Waker`] calls, or a timeout passes. One thread owns it.
pub struct Poller {
    shared: Arc<Shared>,
    watched: Vec<Option<Watched>>,
    events: Events,
}

struct Shared {
    polling: Arc<polling::Poller>,
    state: AtomicU8,
}

struct Watched {
    registration: Registration,
    wants_writable: bool,
    readable: bool,
    writable: bool,
}

/// A socket's name within its [`Poller`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SocketId(usize);

/// What ended a wait. With neither, the time had passed (or the system interrupted the wait, which may be taken for it).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Woke {
    /// A [`Waker`] called since the last wait.
    pub called: bool,
    /// Sockets that became ready.
    pub sockets: usize,
}

impl Poller {
    /// A poller that watches nothing yet.
    ///
    /// # Errors
    /// When the system has no more descriptors to give.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            shared: Arc::new(Shared {
                polling: Arc::new(polling::Poller::new()?),
                state: AtomicU8::new(AWAKE),
            }),
            watched: Vec::new(),
            events: Events::with_capacity(EVENTS_MAX),
        })
    }

    /// Watches `socket` for datagrams to receive, from now on.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn watch(&mut self, socket: Arc<Socket>) -> io::Result<SocketId> {
        let free = self.watched.iter().position(Option::is_none);
        let id = free.unwrap_or(self.watched.len());
        let polling = Arc::clone(&self.shared.polling);
        let watched = Watched {
            registration: Registration::new(polling, socket, Event::readable(id))?,
            wants_writable: false,
            readable: false,
            writable: false,
        };
        match self.watched.get_mut(id) {
            Some(slot) => *slot = Some(watched),
            None => self.watched.push(Some(watched)),
        }
        Ok(SocketId(id))
    }

    /// No longer watches the socket, and lets go of it.
    pub fn unwatch(&mut self, id: SocketId) {
        if let Some(slot) = self.watched.get_mut(id.0) {
            *slot = None;
        }
    }

    /// Watches the socket also for room to send, or no longer. Ask for it while a send is blocked, and only then: a socket
    /// has room nearly always, and each wait would end at once.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn watch_writable(&mut self, id: SocketId, wanted: bool) -> io::Result<()> {
        let Some(watched) = self.watched.get_mut(id.0).and_then(Option::as_mut) else {
            return Ok(());
        };
        if watched.wants_writable != wanted {
            let event = Event::new(id.0, true, wanted);
            watched.registration.modify(event)?;
            watched.wants_writable = wanted;
        }
        Ok(())
    }

    /// A handle by which other threads end the wait.
    pub fn waker(&self) -> Waker {
        Waker {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Whether a [`Waker`] called since the last wait or the last `take_wake`. Costs one atomic read when none did: the
    /// way for a busy thread to look after its mailbox without a system call.
    pub fn take_wake(&mut self) -> bool {
        let state = &self.shared.state;
        state.load(Ordering::Acquire) == CALLED && state.swap(AWAKE, Ordering::AcqRel) == CALLED
    }

    /// Waits until something happens, or for `timeout`; `None` waits without end. A call of a [`Waker`] that came before
    /// ends it at once.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Woke> {
        let state = &self.shared.state;
        let called_before = state
            .compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire)
            .is_err();
        let timeout = if called_before {
            Some(Duration::ZERO)
        } else {
            timeout
        };
        self.events.clear();
        let outcome = self.shared.polling.wait(&mut self.events, timeout);
        let called = self.shared.state.swap(AWAKE, Ordering::AcqRel) == CALLED;
        for watched in self.watched.iter_mut().flatten() {
            (watched.readable, watched.writable) = (false, false);
        }
        let mut woke = Woke { called, sockets: 0 };
        for event in self.events.iter() {
            // An event of a socket that is no longer watched finds nobody.
            if let Some(watched) = self.watched.get_mut(event.key).and_then(Option::as_mut) {
                (watched.readable, watched.writable) = (event.readable, event.writable);
                woke.sockets += 1;
            }
        }
        match outcome {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(woke),
        }
    }

    /// Whether the last wait found datagrams to receive.
    pub fn is_readable(&self, id: SocketId) -> bool {
        self.watched(id).is_some_and(|watched| watched.readable)
    }

    /// Whether the last wait found room to send, if that was watched.
    pub fn is_writable(&self, id: SocketId) -> bool {
        self.watched(id).is_some_and(|watched| watched.writable)
    }

    fn watched(&self, id: SocketId) -> Option<&Watched> {
        self.watched.get(id.0).and_then(Option::as_ref)
    }
}

/// Ends the wait of a [`Poller`] from any thread.
#[derive(Clone)]
pub struct Waker {
    shared: Arc<Shared>,
}

impl Waker {
    /// Ends the current wait, or the next one when none is going on. What the caller wrote before is seen by the thread
    /// that wakes. Makes a system call only when the poller sleeps, and only once until it is awake.
    pub fn wake(&self) {
        if self.shared.state.swap(CALLED, Ordering::AcqRel) == ASLEEP {
            // It fails only if the poller's own descriptor is broken, in which case no wait is going on either.
            let _ = self.shared.polling.notify();
        }
    }
}

impl std::fmt::Debug for Poller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poller")
            .field("watched", &self.watched.iter().flatten().count())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Waker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waker").finish_non_exhaustive()
    }
}
