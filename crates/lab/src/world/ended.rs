//! What sessions had counted when they ended. An endpoint forgets a session once its last event was taken.

use std::collections::HashMap;

use punctual_proto::{Endpoint, Event, SessionId, SessionStats, StreamId, StreamStats};

use super::HostId;

/// Counts of sessions that have ended, by the host whose they were.
#[derive(Debug, Default)]
pub struct EndedSessions(HashMap<(HostId, SessionId), Counts>);

#[derive(Debug)]
struct Counts {
    session: SessionStats,
    /// By the streams' numbers, which follow each other.
    streams: Vec<StreamStats>,
}

impl EndedSessions {
    /// A host's endpoint has said `event`, and nothing more was taken from it.
    pub fn on_event(
        &mut self,
        host: HostId,
        endpoint: &Endpoint,
        session: SessionId,
        event: &Event,
    ) {
        if !matches!(event, Event::Closed { .. }) {
            return;
        }
        if let Some(stats) = endpoint.session_stats(session) {
            let streams =
                (0..=u16::MAX).map_while(|stream| endpoint.stream_stats(session, StreamId(stream)));
            let counts = Counts {
                session: stats,
                streams: streams.collect(),
            };
            self.0.insert((host, session), counts);
        }
    }

    /// What a session of a host's endpoint has counted, also once it has ended. `None` when it never was.
    pub fn session_stats(
        &self,
        host: HostId,
        endpoint: &Endpoint,
        session: SessionId,
    ) -> Option<SessionStats> {
        let ended = || Some(self.0.get(&(host, session))?.session);
        endpoint.session_stats(session).or_else(ended)
    }

    /// What a stream of the session has counted, also once that has ended. `None` when it never was.
    pub fn stream_stats(
        &self,
        host: HostId,
        endpoint: &Endpoint,
        session: SessionId,
        stream: StreamId,
    ) -> Option<StreamStats> {
        let ended = || {
            let counts = self.0.get(&(host, session))?;
            counts.streams.get(usize::from(stream.0)).copied()
        };
        endpoint.stream_stats(session, stream).or_else(ended)
    }
}
