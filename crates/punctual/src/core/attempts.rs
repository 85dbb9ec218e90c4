//! Connection attempts: a name may stand for several addresses, and the first that answers wins.
//!
//! The next address is tried when the one before has failed, or after a quarter of a second without an answer (as RFC 8305
//! does for TCP): a machine without a working IPv6 route costs that long and no more.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use punctual_net::udp::Refusal;
use punctual_proto::{CloseCode, CloseReason, ConnectOptions, Endpoint, Instant, SessionId};

use super::Mailbox;
use crate::ConnectError;
use crate::signal::Signal;

/// Until the next address is tried beside those that have not answered.
const STAGGER: Duration = Duration::from_millis(250);

/// How an attempt ended: the session that it opened, or why none.
pub(crate) type Answer = Signal<Option<Result<Opened, ConnectError>>>;

/// A session that an attempt has opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) id: SessionId,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) mailbox: Arc<Mailbox>,
}

/// All attempts of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    all: Vec<Attempt>,
}

#[derive(Debug)]
struct Attempt {
    answer: Arc<Answer>,
    /// Addresses that have not been tried.
    addresses: VecDeque<SocketAddr>,
    /// When the next one is.
    next_at: Instant,
    options: ConnectOptions,
    /// Addresses that have been tried.
    tried: usize,
    running: Vec<SessionId>,
}

impl Attempts {
    /// Begins at the first address; `options.remote` is ignored.
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        addresses: VecDeque<SocketAddr>,
        options: ConnectOptions,
        answer: Arc<Answer>,
        endpoint: &mut Endpoint,
    ) {
        self.all.push(Attempt {
            answer,
            addresses,
            next_at: now,
            options,
            tried: 0,
            running: Vec::new(),
        });
        self.handle_timeout(now, endpoint);
    }

    /// Nobody waits for the answer any more.
    pub(crate) fn cancel(&mut self, now: Instant, answer: &Arc<Answer>, endpoint: &mut Endpoint) {
        let position = |attempt: &Attempt| Arc::ptr_eq(&attempt.answer, answer);
        if let Some(at) = self.all.iter().position(position) {
            let attempt = self.all.swap_remove(at);
            close_all(now, &attempt.running, endpoint);
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let waiting = self
            .all
            .iter()
            .filter(|attempt| !attempt.addresses.is_empty());
        waiting.map(|attempt| attempt.next_at).min()
    }

    /// Tries the addresses whose time has come.
    pub(crate) fn handle_timeout(&mut self, now: Instant, endpoint: &mut Endpoint) {
        self.all.retain_mut(|attempt| {
            if attempt.next_at > now {
                return true;
            }
            let Some(remote) = attempt.addresses.pop_front() else {
                return true;
            };
            attempt.next_at = now + STAGGER;
            attempt.options.remote = remote;
            attempt.tried += 1;
            match endpoint.connect(now, &attempt.options) {
                Ok(session) => attempt.running.push(session),
                Err(error) => {
                    close_all(now, &attempt.running, endpoint);
                    attempt.finish(Err(error.into()));
                    return false;
                }
            }
            true
        });
    }

    /// Session `id` is open: was it an attempt's?
    pub(crate) fn on_connected(
        &mut self,
        now: Instant,
        id: SessionId,
        endpoint: &mut Endpoint,
    ) -> Option<Arc<Answer>> {
        let at = self.position_of(id)?;
        let mut attempt = self.all.swap_remove(at);
        attempt.running.retain(|running| *running != id);
        close_all(now, &attempt.running, endpoint);
        Some(attempt.answer)
    }

    /// Session `id` has failed: the next address, or the end of the attempt. `refusal` is what the kernel last would not send.
    pub(crate) fn on_failed(
        &mut self,
        now: Instant,
        id: SessionId,
        why: CloseReason,
        refusal: &mut Option<Refusal>,
    ) {
        let Some(at) = self.position_of(id) else {
            return;
        };
        let attempt = &mut self.all[at];
        attempt.running.retain(|running| *running != id);
        attempt.next_at = now;
        if attempt.running.is_empty() && attempt.addresses.is_empty() {
            let attempt = self.all.swap_remove(at);
            // Of several addresses another may have been reached.
            let remote = attempt.options.remote;
            let is_its = |refusal: &mut Refusal| attempt.tried == 1 && refusal.to == remote;
            let unsent = (why == CloseReason::HandshakeTimeout).then(|| refusal.take_if(is_its));
            attempt.finish(Err(match unsent.flatten() {
                Some(Refusal { why: source, .. }) => ConnectError::Unsent { source },
                None => ConnectError::Failed { why },
            }));
        }
    }

    /// The endpoint is going: none of them will succeed.
    pub(crate) fn fail_all(&mut self) {
        for attempt in self.all.drain(..) {
            attempt.finish(Err(ConnectError::EndpointClosed));
        }
    }

    fn position_of(&self, id: SessionId) -> Option<usize> {
        let has = |attempt: &Attempt| attempt.running.contains(&id);
        self.all.iter().position(has)
    }
}

impl Attempt {
    fn finish(&self, result: Result<Opened, ConnectError>) {
        *self.answer.lock() = Some(result);
        self.answer.ring();
    }
}

fn close_all(now: Instant, sessions: &[SessionId], endpoint: &mut Endpoint) {
    for &session in sessions {
        endpoint.close(now, session, CloseCode::DONE, "");
    }
}
