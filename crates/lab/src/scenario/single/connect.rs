//! How sessions begin: all of them, before anything is counted.

use std::collections::BTreeMap;
use std::time::Duration;

use punctual_proto::{ConnectOptions, EndpointConfig, Event, SessionId};

use super::super::protocol::with_thin;
use super::super::run::RunError;
use super::super::venue::Venue;
use super::{End, Stage};
use crate::world::{Forward, Happening, HostId};

/// How long sessions may take to begin.
const CONNECT: Duration = Duration::from_secs(60);

impl<V: Venue> Stage<'_, V> {
    /// Runs until every client is in. One that gave up tries again.
    pub(super) fn connect(&mut self) -> Result<(), RunError<V::Error>> {
        let aead = self.venue.aead();
        let mut clients = Vec::new();
        for _ in 0..self.scenario.sessions {
            let config = EndpointConfig::client(aead.clone(), self.policies.clone());
            let config = with_thin(config, self.scenario.thin);
            let client = self.venue.add_client(config).map_err(RunError::Venue)?;
            let session = self.begin_session(client);
            clients.push((client, session, false));
        }
        let by_address: BTreeMap<_, _> = (0..)
            .zip(&clients)
            .map(|(index, (client, ..))| (self.venue.address(*client), index))
            .collect();
        let until = self.venue.now().after(CONNECT);
        let first = clients[0].0.0;
        let mut connected = 0;
        // Each client's newest session there.
        let mut at_server: BTreeMap<u32, SessionId> = BTreeMap::new();
        while self.venue.now() < until
            && (connected < self.scenario.sessions
                || at_server.len() < self.scenario.sessions as usize)
        {
            let next = self.venue.now().after(Duration::from_millis(50));
            while self.venue.step(next).map_err(RunError::Venue)? {}
            for happening in self.venue.take_happenings() {
                let Happening {
                    host,
                    session,
                    event,
                    ..
                } = happening;
                match event {
                    Event::Connected { .. } if host == self.server.host => {
                        let remote = self.venue.endpoint(host).remote(session);
                        let index = remote.and_then(|remote| by_address.get(&remote));
                        let index = *index.expect("nobody else is there");
                        at_server.insert(index, session);
                    }
                    Event::Connected { .. } => {
                        clients[(host.0 - first) as usize].2 = true;
                        connected += 1;
                    }
                    Event::Closed { .. } if host == self.server.host => {
                        at_server.retain(|_, newest| *newest != session);
                    }
                    Event::Closed { .. } => {
                        let again = self.begin_session(host);
                        let index = host.0 - first;
                        let client = &mut clients[index as usize];
                        connected -= u32::from(client.2);
                        (client.1, client.2) = (again, false);
                        // What the server may have of it is of the session that is gone.
                        at_server.remove(&index);
                    }
                    _ => {}
                }
            }
        }
        if (at_server.len() as u32).min(connected) < self.scenario.sessions {
            return Err(RunError::Unreachable {
                connected,
                of: self.scenario.sessions,
                seed: self.seed,
            });
        }
        let clients = clients
            .into_iter()
            .map(|(client, session, _)| (client, session));
        self.note_ends(clients.collect(), &at_server);
        Ok(())
    }

    /// Who sends, by session: clients come with their side's session.
    fn note_ends(
        &mut self,
        clients: Vec<(HostId, SessionId)>,
        at_server: &BTreeMap<u32, SessionId>,
    ) {
        let by_session = at_server.iter().map(|(index, session)| (*session, *index));
        self.server.by_session = by_session.collect();
        self.ends = (0..)
            .zip(clients)
            .map(|(index, (client, at_client))| {
                let (sender, session) = match self.scenario.direction {
                    Forward::ToClient => (self.server.host, at_server[&index]),
                    Forward::ToServer => (client, at_client),
                };
                End {
                    client,
                    sender,
                    session,
                }
            })
            .collect();
    }

    fn begin_session(&mut self, client: HostId) -> SessionId {
        let options = ConnectOptions {
            remote: self.venue.address(self.server.host),
            server_key: self.server.key,
            token: None,
        };
        self.venue
            .with_endpoint(client, |endpoint, now| endpoint.connect(now, &options))
            .expect("a new endpoint has room, and the key is a key")
    }
}
