//! Messages of measurements that wait to leave.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use punctual_proto::{Departure, Endpoint, Instant, MessageId, SessionId};

/// An echo that the session has not let out for so long is taken back: those behind it would only wait longer.
const ECHO_WAITS_MAX: Duration = Duration::from_secs(1);
/// Echoes of a session that wait at once; a probe beyond has none. A client whose window is shut could have as many wait as a session has messages.
const ECHOES_MAX: usize = 128;

/// A message whose leaving is waited for.
#[derive(Debug)]
pub(super) struct Leaving {
    since: Instant,
    message: MessageId,
    /// Of its probe.
    pub(super) number: u32,
    pub(super) is_echo: bool,
}

impl Leaving {
    /// A probe that is sent now.
    pub(super) const fn probe(now: Instant, message: MessageId, number: u32) -> Self {
        Self {
            since: now,
            message,
            number,
            is_echo: false,
        }
    }

    /// An answer to a probe that is sent now.
    pub(super) const fn echo(now: Instant, message: MessageId, number: u32) -> Self {
        Self {
            is_echo: true,
            ..Self::probe(now, message, number)
        }
    }
}

/// All of an endpoint, by session in the order in which they leave: those of a stream without deadlines leave as they were sent.
#[derive(Debug, Default)]
pub(super) struct Leavings {
    by_session: BTreeMap<SessionId, VecDeque<Leaving>>,
}

impl Leavings {
    pub(super) fn push(&mut self, session: SessionId, leaving: Leaving) {
        self.by_session
            .entry(session)
            .or_default()
            .push_back(leaving);
    }

    /// Whether another echo may wait.
    pub(super) fn has_room(&self, session: SessionId) -> bool {
        let waiting = self.by_session.get(&session);
        waiting.is_none_or(|waiting| waiting.len() < ECHOES_MAX)
    }

    /// The message of a probe that this side sends, while it waits.
    pub(super) fn message_of(&self, session: SessionId, number: u32) -> Option<MessageId> {
        let is_it = |leaving: &&Leaving| leaving.number == number && !leaving.is_echo;
        let leaving = self.by_session.get(&session)?.iter().find(is_it)?;
        Some(leaving.message)
    }

    pub(super) fn forget(&mut self, session: SessionId) {
        self.by_session.remove(&session);
    }

    /// Tells which have left, and when, or (`None`) never will. O(sessions, and what is told).
    pub(super) fn note(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        mut tell: impl FnMut(SessionId, &Leaving, Option<Instant>),
    ) {
        self.by_session.retain(|&session, waiting| {
            while let Some(first) = waiting.front() {
                let departed = match endpoint.departure(session, first.message) {
                    Departure::Waiting if !first.is_echo => return true,
                    Departure::Waiting if now.since(first.since) <= ECHO_WAITS_MAX => return true,
                    Departure::Waiting => {
                        endpoint.cancel(now, session, first.message);
                        None
                    }
                    Departure::Left(at) => Some(at),
                    Departure::Unknown => None,
                };
                tell(session, first, departed);
                waiting.pop_front();
            }
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A regression: clients that probed and let nothing out had each of theirs looked at for every batch of packets.
    #[test]
    fn echoes_that_wait_are_bounded_for_each_session() {
        let aead = std::sync::Arc::new(punctual_net::crypto::AwsLc);
        let library = punctual_policy::Library::new(punctual_policy::PolicyKind::default());
        let config = punctual_proto::EndpointConfig::client(aead, std::sync::Arc::new(library));
        let mut endpoint = Endpoint::new(config, [1; 32]);
        let now = Instant::from_micros(1);
        let mut begin = || {
            let options = punctual_proto::ConnectOptions {
                remote: ([127, 0, 0, 1], 9).into(),
                server_key: [9; 32],
                token: None,
            };
            endpoint.connect(now, &options).expect("there is room")
        };
        let (busy, other) = (begin(), begin());
        let mut leavings = Leavings::default();
        let mut number = 0;
        while leavings.has_room(busy) {
            leavings.push(busy, Leaving::echo(now, MessageId(number.into()), number));
            number += 1;
        }
        assert_eq!(number as usize, ECHOES_MAX);
        assert!(leavings.has_room(other));
        // The endpoint knows none of them: they never will leave.
        let mut told = Vec::new();
        leavings.note(now, &mut endpoint, |session, leaving, departed| {
            told.push((session, leaving.number, departed));
        });
        let expected: Vec<_> = (0..number).map(|number| (busy, number, None)).collect();
        assert_eq!(told, expected);
        assert!(leavings.has_room(busy));
    }
}
