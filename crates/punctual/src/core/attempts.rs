//! Connection attempts: a name may stand for several addresses, and the first that answers wins.
//!
//! The next address is tried when the one before has failed, or after a quarter of a second without an answer (as RFC 8305
//! does for TCP): a machine without a working IPv6 route costs that long and no more.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use punctual_proto::{CloseCode, CloseReason, ConnectOptions, Endpoint, Instant, SessionId};

use super::Mailbox;
use crate::ConnectError;
use crate::signal::{Rings, Signal};

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
    /// Sessions that were closed since another one of their attempt was first, or nobody waits any more. They may have opened meanwhile.
    beaten: Vec<SessionId>,
    /// Whom an answer has come to.
    rings: Rings,
}

/// Whose a session is that has opened.
pub(crate) enum Owner {
    /// That of an attempt which is over with it.
    Attempt(Arc<Answer>),
    /// An attempt's that was over before: it is closed already.
    Beaten,
    /// Another side's: it was accepted.
    Peer,
}

#[derive(Debug)]
struct Attempt {
    answer: Arc<Answer>,
    /// Addresses that have not been tried.
    addresses: VecDeque<SocketAddr>,
    /// When the next one is; None: when one that is tried now has failed.
    next_at: Option<Instant>,
    options: ConnectOptions,
    tried: Vec<Tried>,
    running: Vec<SessionId>,
    /// What a server has said.
    refused: Option<CloseReason>,
}

/// An address that has been tried.
#[derive(Debug)]
struct Tried {
    remote: SocketAddr,
    /// What the kernel last would not send there, and why.
    unsent: Option<io::Error>,
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
            next_at: Some(now),
            options,
            tried: Vec::new(),
            running: Vec::new(),
            refused: None,
        });
        self.handle_timeout(now, endpoint);
    }

    /// Nobody waits for the answer any more.
    pub(crate) fn cancel(&mut self, now: Instant, answer: &Arc<Answer>, endpoint: &mut Endpoint) {
        let position = |attempt: &Attempt| Arc::ptr_eq(&attempt.answer, answer);
        if let Some(at) = self.all.iter().position(position) {
            let attempt = self.all.swap_remove(at);
            close_all(now, &attempt.running, endpoint, &mut self.beaten);
        }
    }

    /// To be rung once the lock is free.
    pub(crate) const fn rings(&mut self) -> &mut Rings {
        &mut self.rings
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let waiting = self
            .all
            .iter()
            .filter(|attempt| !attempt.addresses.is_empty());
        waiting.filter_map(|attempt| attempt.next_at).min()
    }

    /// Tries the addresses whose time has come.
    pub(crate) fn handle_timeout(&mut self, now: Instant, endpoint: &mut Endpoint) {
        self.all.retain_mut(|attempt| {
            if attempt.next_at.is_none_or(|at| at > now) {
                return true;
            }
            let Some(remote) = attempt.addresses.pop_front() else {
                return true;
            };
            attempt.next_at = Some(now + STAGGER);
            attempt.options.remote = remote;
            match endpoint.connect(now, &attempt.options) {
                Ok(session) => {
                    attempt.running.push(session);
                    let unsent = None;
                    attempt.tried.push(Tried { remote, unsent });
                }
                // There is no place for two: the other is tried when the first has failed.
                Err(_) if !attempt.running.is_empty() => {
                    attempt.addresses.push_front(remote);
                    attempt.next_at = None;
                }
                Err(error) => {
                    attempt.finish(Err(error.into()), &mut self.rings);
                    return false;
                }
            }
            true
        });
    }

    /// The kernel would not send something.
    pub(crate) fn note_refusal(&mut self, to: SocketAddr, why: &io::Error) {
        let copy = || match why.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => why.kind().into(),
        };
        let tried = self.all.iter_mut().flat_map(|attempt| &mut attempt.tried);
        for tried in tried.filter(|tried| tried.remote == to) {
            tried.unsent = Some(copy());
        }
    }

    /// Session `id` is open: whose is it?
    pub(crate) fn on_connected(
        &mut self,
        now: Instant,
        id: SessionId,
        endpoint: &mut Endpoint,
    ) -> Owner {
        if self.beaten.contains(&id) {
            return Owner::Beaten;
        }
        let Some(at) = self.position_of(id) else {
            return Owner::Peer;
        };
        let mut attempt = self.all.swap_remove(at);
        attempt.running.retain(|running| *running != id);
        close_all(now, &attempt.running, endpoint, &mut self.beaten);
        Owner::Attempt(attempt.answer)
    }

    /// Session `id` has failed: the next address, or the end of the attempt.
    pub(crate) fn on_failed(&mut self, now: Instant, id: SessionId, why: CloseReason) {
        self.beaten.retain(|beaten| *beaten != id);
        let Some(at) = self.position_of(id) else {
            return;
        };
        let attempt = &mut self.all[at];
        attempt.running.retain(|running| *running != id);
        attempt.next_at = Some(now);
        // What a server says tells more than that another address did not answer.
        let why = match attempt.refused.take() {
            Some(refused) if why == CloseReason::HandshakeTimeout => refused,
            _ => why,
        };
        if matches!(why, CloseReason::Refused { .. }) {
            attempt.refused = Some(why.clone());
        }
        if attempt.running.is_empty() && attempt.addresses.is_empty() {
            let mut attempt = self.all.swap_remove(at);
            // (One address may have been reached where another was not.)
            let unsent = (attempt.tried.drain(..)).map(|tried| tried.unsent);
            let unsent = unsent.reduce(|one, other| one.and(other)).flatten();
            let failed = match unsent.filter(|_| why == CloseReason::HandshakeTimeout) {
                Some(source) => ConnectError::Unsent { source },
                None => ConnectError::Failed { why },
            };
            attempt.finish(Err(failed), &mut self.rings);
        }
    }

    /// The endpoint is going: none of them will succeed.
    pub(crate) fn fail_all(&mut self) {
        for attempt in self.all.drain(..) {
            attempt.finish(Err(ConnectError::EndpointClosed), &mut self.rings);
        }
    }

    fn position_of(&self, id: SessionId) -> Option<usize> {
        let has = |attempt: &Attempt| attempt.running.contains(&id);
        self.all.iter().position(has)
    }
}

impl Attempt {
    fn finish(&self, result: Result<Opened, ConnectError>, rings: &mut Rings) {
        *self.answer.lock() = Some(result);
        rings.add(&self.answer);
    }
}

fn close_all(
    now: Instant,
    sessions: &[SessionId],
    endpoint: &mut Endpoint,
    beaten: &mut Vec<SessionId>,
) {
    beaten.extend_from_slice(sessions);
    for &session in sessions {
        endpoint.close(now, session, CloseCode::DONE, "");
    }
}

#[cfg(test)]
mod tests {
    use punctual_net::crypto::AwsLc;
    use punctual_policy::{Library, PolicyKind};
    use punctual_proto::{Capacity, Ecn, EndpointConfig, Event, ServerConfig, ServerKey};

    use super::*;

    /// A regression: where two addresses of one name answered at once, what came second was taken for a client that had connected: a server that also
    /// connects accepted a dead session without an identity.
    #[test]
    fn of_two_addresses_that_answer_at_once_one_is_nobodys() {
        let policies = || Arc::new(Library::new(PolicyKind::Retransmit));
        let key = ServerKey::from_private([3; 32]);
        let server = || {
            let config = ServerConfig::new(key.clone());
            let config = EndpointConfig::server(Arc::new(AwsLc), policies(), config);
            Endpoint::new(config.build().expect("it is valid"), [1; 32])
        };
        let addresses: [SocketAddr; 2] =
            ["10.0.0.1:1", "10.0.0.2:1"].map(|text| text.parse().expect("an address"));
        let client_address: SocketAddr = "10.0.0.3:1".parse().expect("an address");
        let config = EndpointConfig::client(Arc::new(AwsLc), policies());
        let mut client = Endpoint::new(config.build().expect("it is valid"), [2; 32]);
        let (mut attempts, answer) = (Attempts::default(), Arc::new(Answer::default()));
        let options = ConnectOptions {
            remote: addresses[0],
            server_key: key.public(),
            token: None,
        };
        let mut now = Instant::from_micros(1_000_000);
        attempts.begin(now, addresses.into(), options, answer, &mut client);
        // The first HELLO is lost.
        while client.poll_transmit(now, &mut [0; 2048]).is_some() {}
        now = now + STAGGER;
        client.handle_timeout(now);
        attempts.handle_timeout(now, &mut client);
        let mut hellos = Vec::new();
        let mut buffer = [0; 2048];
        while let Some(transmit) = client.poll_transmit(now, &mut buffer) {
            hellos.push((transmit.to, buffer[..transmit.len].to_vec()));
        }
        assert_eq!(hellos.len(), 2);
        for (to, mut hello) in hellos {
            let mut server = server();
            server.handle_datagram(now, client_address, Ecn::NotEct, &mut hello);
            while let Some(transmit) = server.poll_transmit(now, &mut buffer) {
                let answer = &mut buffer[..transmit.len];
                client.handle_datagram(now, to, Ecn::NotEct, answer);
            }
        }
        let (mut owners, mut closed) = (Vec::new(), 0);
        while let Some((id, event)) = client.poll_event() {
            match event {
                Event::Connected { .. } => {
                    owners.push(attempts.on_connected(now, id, &mut client));
                }
                Event::Closed { why } => {
                    attempts.on_failed(now, id, why);
                    closed += 1;
                }
                _ => {}
            }
        }
        assert!(matches!(owners[..], [Owner::Attempt(_), Owner::Beaten]));
        assert_eq!(closed, 1);
        assert!(attempts.beaten.is_empty());
    }
    /// A regression: what a server had said was not told where another address did not answer after that.
    #[test]
    fn what_a_server_says_tells_more_than_silence_elsewhere() {
        let (mut attempts, answer, mut client, _) = begun(Capacity::default());
        let now = START + STAGGER;
        attempts.handle_timeout(now, &mut client);
        let running = attempts.all[0].running.clone();
        let why = CloseReason::Refused {
            why: punctual_proto::wire::Refusal::Key,
        };
        attempts.on_failed(now, running[0], why.clone());
        attempts.on_failed(now, running[1], CloseReason::HandshakeTimeout);
        let told = answer.lock().take();
        assert!(matches!(told, Some(Err(ConnectError::Failed { why: told })) if told == why));
        assert!(!attempts.rings.is_empty());
    }

    fn begun(capacity: Capacity) -> (Attempts, Arc<Answer>, Endpoint, [SocketAddr; 2]) {
        let policies = Arc::new(Library::new(PolicyKind::Retransmit));
        let mut config = EndpointConfig::client(Arc::new(AwsLc), policies);
        config.capacity = capacity;
        let mut client = Endpoint::new(config.build().expect("it is valid"), [2; 32]);
        let addresses: [SocketAddr; 2] =
            ["10.0.0.1:1", "10.0.0.2:1"].map(|text| text.parse().expect("an address"));
        let (mut attempts, answer) = (Attempts::default(), Arc::new(Answer::default()));
        let options = ConnectOptions {
            remote: addresses[0],
            server_key: ServerKey::from_private([3; 32]).public(),
            token: None,
        };
        let its = Arc::clone(&answer);
        attempts.begin(START, addresses.into(), options, its, &mut client);
        (attempts, answer, client, addresses)
    }

    const START: Instant = Instant::from_micros(1_000_000);

    /// A client of one session whose server has two addresses, of which the first does not answer, was told to close some sessions.
    #[test]
    fn a_client_with_one_place_tries_one_address_after_the_other() {
        let capacity = Capacity {
            sessions_max: 1,
            ..Capacity::default()
        };
        let (mut attempts, answer, mut client, _) = begun(capacity);
        let first = attempts.all[0].running[0];
        let mut now = START + STAGGER;
        attempts.handle_timeout(now, &mut client);
        assert!(answer.lock().is_none());
        assert_eq!(attempts.poll_timeout(), None, "it waits for the first");
        let failed = loop {
            while client.poll_transmit(now, &mut [0; 2048]).is_some() {}
            now = client.poll_timeout().expect("it gives up some time");
            client.handle_timeout(now);
            if let Some((id, Event::Closed { why })) = client.poll_event() {
                break (id, why);
            }
        };
        assert_eq!(failed.0, first);
        attempts.on_failed(now, first, failed.1);
        assert_eq!(attempts.poll_timeout(), Some(now));
        attempts.handle_timeout(now, &mut client);
        assert_eq!(attempts.all[0].running.len(), 1);
        assert!(attempts.all[0].addresses.is_empty());
    }

    /// What the kernel would not send elsewhere later hid that it had sent nothing to any address of this server.
    #[test]
    fn each_address_that_nothing_can_be_sent_to_counts() {
        for both in [false, true] {
            let (mut attempts, answer, mut client, addresses) = begun(Capacity::default());
            attempts.handle_timeout(START + STAGGER, &mut client);
            let elsewhere = "10.9.9.9:9".parse().expect("an address");
            let tried = &addresses[..1 + usize::from(both)];
            for to in tried.iter().copied().chain([elsewhere]) {
                attempts.note_refusal(to, &io::ErrorKind::NetworkUnreachable.into());
            }
            for id in attempts.all[0].running.clone() {
                attempts.on_failed(START, id, CloseReason::HandshakeTimeout);
            }
            let told = answer.lock().take();
            let is_unsent = matches!(told, Some(Err(ConnectError::Unsent { .. })));
            assert_eq!(is_unsent, both, "{told:?}");
        }
    }
}
