//! The driver thread: waits for datagrams, the clock and the application, and does what follows.

use std::io;
use std::sync::Arc;

use super::{Core, Machinery, Mailbox};

/// Runs until the core is stopped, or the socket is of no more use.
pub(crate) fn run(core: &Core, mut machinery: Machinery) {
    let mut rings = Vec::new();
    let outcome = drive(core, &mut machinery, &mut rings);
    let failure = outcome.err().map(Arc::new);
    let reason = match failure {
        Some(_) => "the socket failed",
        None => "the endpoint is shutting down",
    };
    // One CLOSE to each peer; who misses it finds out by the idle timeout.
    let now = core.now();
    let mut state = core.lock();
    state.stop();
    state.close_all(now, reason);
    while failure.is_none() {
        let has_more = machinery.carrier.collect(&mut state.endpoint);
        if machinery.carrier.flush().is_err() || machinery.carrier.is_blocked() || !has_more {
            break;
        }
    }
    state.dispatch(now, core);
    state.take_rings(&mut rings);
    drop(state);
    ring(&mut rings);
    core.accepts.lock().ended = Some(failure.clone());
    core.accepts.ring();
    core.traces.lock().ended = Some(failure);
    core.traces.ring();
}

fn drive(core: &Core, machinery: &mut Machinery, rings: &mut Vec<Arc<Mailbox>>) -> io::Result<()> {
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
        ring(rings);
        punctual_net::tables::build_wanted(&core.policies);
        if is_readable && carrier.has_more() {
            continue;
        }
        if was_blocked != carrier.is_blocked() {
            was_blocked = carrier.is_blocked();
            poller.watch_writable(*socket, was_blocked)?;
        }
        poller.wait(timeout.map(|at| carrier.until(at)))?;
        is_readable = poller.is_readable(*socket);
    }
}

pub(super) fn ring(rings: &mut Vec<Arc<Mailbox>>) {
    for mailbox in rings.drain(..) {
        mailbox.ring();
    }
}
