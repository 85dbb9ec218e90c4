//! Where a scenario is played: a virtual network, or sockets on real kernels.
//!
//! What plays it (`single.rs`) is the same for all venues, and so are the endpoints; a venue gives them time and moves their
//! datagrams. `computed.rs` is the virtual one; one with sockets is up to those who have sockets.

mod computed;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use punctual_policy::Library;
use punctual_proto::crypto::Aead;
use punctual_proto::{
    Endpoint, EndpointConfig, Instant, SessionId, SessionStats, StreamId, StreamStats,
};

use super::Rivals;
use crate::world::{EndedSessions, Happening, HostId, LinkFigures, LinkSpec, Moment, Traffic};

pub(super) use computed::Computed;

/// Where a scenario is played.
pub trait Venue {
    /// Why it cannot go on.
    type Error;

    /// When and where the fates of this venue's packets begin.
    fn fates(&self) -> Fates;

    /// What seals packets here.
    fn aead(&self) -> Arc<dyn Aead>;

    /// Adds the server: once, and before any client.
    ///
    /// # Errors
    /// When there is no room for it.
    fn add_server(&mut self, config: EndpointConfig) -> Result<HostId, Self::Error>;

    /// Adds a client, at the end of its own path. Hosts are numbered in the order in which they are added.
    ///
    /// # Errors
    /// When there is no room for it.
    fn add_client(&mut self, config: EndpointConfig) -> Result<HostId, Self::Error>;

    /// The address of a host, as others see it.
    fn address(&self, host: HostId) -> SocketAddr;

    /// The time.
    fn now(&self) -> Moment;

    /// Lets happen what is due at the next moment at which anything is, but not after `until`. `false` when the time is `until`
    /// or later and nothing is left to do.
    ///
    /// # Errors
    /// When it cannot go on, or is told not to.
    fn step(&mut self, until: Moment) -> Result<bool, Self::Error>;

    /// What has happened since this was last asked.
    fn take_happenings(&mut self) -> Vec<Happening>;

    /// The endpoint of a host, for looking at.
    fn endpoint(&self, host: HostId) -> &Endpoint;

    /// What sessions had counted when they ended.
    fn ended(&self) -> &EndedSessions;

    /// What a session of a host has counted, also once it has ended. `None` when it never was.
    fn session_stats(&self, host: HostId, session: SessionId) -> Option<SessionStats> {
        (self.ended()).session_stats(host, self.endpoint(host), session)
    }

    /// What a stream of a session has counted, also once that has ended. `None` when it never was.
    fn stream_stats(
        &self,
        host: HostId,
        session: SessionId,
        stream: StreamId,
    ) -> Option<StreamStats> {
        (self.ended()).stream_stats(host, self.endpoint(host), session, stream)
    }

    /// Calls `f` with the endpoint of a host and that host's time; what it leads to happens with the next step.
    fn with_endpoint<R>(&mut self, host: HostId, f: impl FnOnce(&mut Endpoint, Instant) -> R) -> R;

    /// Gives a message's buffer back to its host.
    fn recycle(&mut self, host: HostId, data: Vec<u8>);

    /// Sees to it that the tables that endpoints asked for are built.
    fn build(&mut self, policies: &Library);

    /// What crossed the network so far, without rivals.
    ///
    /// # Errors
    /// When it cannot go on.
    fn traffic(&mut self) -> Result<Traffic, Self::Error>;

    /// From now on what is sent to the receivers waits at a link before it takes the clients' own paths.
    ///
    /// # Errors
    /// When it cannot go on.
    fn begin_link(&mut self, spec: LinkSpec) -> Result<(), Self::Error>;

    /// Counts at the link from here on only.
    ///
    /// # Errors
    /// When it cannot go on.
    fn restart_link(&mut self) -> Result<(), Self::Error>;

    /// What became of packets at the link since then; None without a link.
    ///
    /// # Errors
    /// When it cannot go on.
    fn link(&mut self) -> Result<Option<LinkFigures>, Self::Error>;

    /// Rivals will begin at their time after `start`; with round trips of `rtt` through the link.
    ///
    /// # Errors
    /// When there is no room for them.
    fn add_rivals(
        &mut self,
        rivals: Rivals,
        start: Moment,
        rtt: Duration,
    ) -> Result<(), Self::Error>;

    /// The rivals end.
    fn stop_rivals(&mut self);

    /// What the rivals did so far.
    ///
    /// # Errors
    /// When it cannot go on.
    fn rivals(&mut self) -> Result<RivalFigures, Self::Error>;
}

/// How a venue's time and clients relate to its channels: for asking what could have become of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fates {
    /// The first client's path, as channels are numbered; the next client's is one more.
    pub first_path: u32,
    /// How long the channels had been there when the venue's time began.
    pub before: Duration,
}

/// What rivals did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RivalFigures {
    /// Bytes of payload that arrived, by flow.
    pub delivered_bytes: Vec<u64>,
    /// Packets that they took for lost.
    pub packets_lost: u64,
    /// Their timeouts.
    pub timeouts: u64,
}
