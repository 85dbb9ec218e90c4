//! The driver thread: waits for datagrams, the clock and the application, and does what follows.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{self, Duration};

use super::{Core, Machinery};
use crate::signal::Rings;

/// How long a kernel that takes no more may keep the farewells of an endpoint waiting.
const FAREWELL_MAX: Duration = Duration::from_millis(200);

/// Runs until the core is stopped, or the socket is of no more use. A panic (a bug here, or in a waker of the application) ends the thread as well:
/// whoever waits for something of the endpoint is told before.
pub(crate) fn run(core: &Core, mut machinery: Machinery) {
    let mut rings = Rings::default();
    let driven = caught(|| drive(core, &mut machinery, &mut rings));
    let (failure, panic) = match driven {
        Ok(outcome) => (outcome.err(), None),
        Err(panic) => {
            let failure = io::Error::other("the endpoint's thread panicked");
            (Some(failure), Some(panic))
        }
    };
    let reason = match (&failure, &panic) {
        (None, _) => "the endpoint is shutting down",
        (Some(_), None) => "the socket failed",
        (Some(_), Some(_)) => "the endpoint failed",
    };
    let can_send = failure.is_none() || panic.is_some();
    if caught(|| end_sessions(core, &mut machinery, reason, can_send)).is_err() {
        core.lock().abandon();
    }
    core.lock().take_rings(&mut rings);
    core.returned.let_go();
    let failure = failure.map(Arc::new);
    core.accepts.lock().ended = Some(failure.clone());
    core.traces.lock().ended = Some(failure);
    // Each of them is rung, whatever becomes of the ones before.
    while !rings.is_empty() {
        let _ = caught(|| rings.ring());
    }
    let _ = caught(|| core.accepts.ring());
    let _ = caught(|| core.traces.ring());
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

/// One CLOSE to each peer; who misses it finds out by the idle timeout.
fn end_sessions(core: &Core, machinery: &mut Machinery, reason: &str, can_send: bool) {
    let now = core.now();
    let mut state = core.lock();
    state.stop();
    state.close_all(now, reason);
    drop(state);
    if can_send {
        // An error of the socket: nobody hears of it.
        let _ = say_farewell(core, machinery);
    }
    core.lock().dispatch(now, core);
}

/// Sends what there is to send. A kernel whose buffer is full is given a moment.
fn say_farewell(core: &Core, machinery: &mut Machinery) -> io::Result<()> {
    let Machinery {
        carrier,
        poller,
        socket,
    } = machinery;
    let until = time::Instant::now() + FAREWELL_MAX;
    loop {
        let has_more = carrier.collect(&mut core.lock().endpoint);
        carrier.flush()?;
        if carrier.is_blocked() {
            let patience = until.saturating_duration_since(time::Instant::now());
            if patience.is_zero() {
                return Ok(());
            }
            poller.watch_writable(*socket, true)?;
            poller.wait(Some(patience))?;
            if poller.is_readable(*socket) {
                // Nobody takes it any more, and it would end each wait at once.
                carrier.receive()?;
            }
        } else if !has_more {
            return Ok(());
        }
    }
}

/// What is behind locks stays usable after a panic: they do not care for poison, and [`State::abandon`] asks nothing of the protocol.
///
/// [`State::abandon`]: super::State::abandon
fn caught<R>(f: impl FnOnce() -> R) -> thread::Result<R> {
    catch_unwind(AssertUnwindSafe(f))
}

fn drive(core: &Core, machinery: &mut Machinery, rings: &mut Rings) -> io::Result<()> {
    let Machinery {
        carrier,
        poller,
        socket,
    } = machinery;
    let mut is_readable = true;
    let mut was_blocked = false;
    loop {
        let mut state = if is_readable {
            carrier.receive()?;
            let mut state = core.lock();
            carrier.deliver(&mut state.endpoint);
            state
        } else {
            core.lock()
        };
        if state.is_stopping() {
            return Ok(());
        }
        if let Some(refusal) = carrier.take_refusal() {
            state.note_refusal(&refusal);
        }
        let now = carrier.now();
        carrier.handle_timeout(&mut state.endpoint);
        state.handle_timeout(now);
        state.dispatch(now, core);
        let mut timeout;
        loop {
            let has_more = carrier.collect(&mut state.endpoint);
            state.note_departures(now);
            let at = carrier.poll_timeout(&state.endpoint);
            timeout = [at, state.poll_timeout()].into_iter().flatten().min();
            state.take_rings(rings);
            drop(state);
            carrier.flush()?;
            if !has_more || carrier.is_blocked() {
                break;
            }
            state = core.lock();
        }
        core.returned.let_go();
        rings.ring();
        punctual_net::tables::build_wanted(&core.policies);
        if is_readable && carrier.has_more() {
            continue;
        }
        if was_blocked != carrier.is_blocked() {
            was_blocked = carrier.is_blocked();
            poller.watch_writable(*socket, was_blocked)?;
        }
        // Who is called while awake looks at the socket by one system call: to be told whether that is worth it takes five.
        is_readable = !was_blocked && poller.take_wake();
        if !is_readable {
            poller.wait(timeout.map(|at| carrier.until(at)))?;
            is_readable = poller.is_readable(*socket);
        }
    }
}
