//! The virtual network as a venue.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use punctual_policy::Library;
use punctual_proto::crypto::Aead;
use punctual_proto::{Endpoint, EndpointConfig, Instant};

use super::super::{Rivals, Scenario};
use super::{Fates, RivalFigures, Venue};
use crate::channel::PathSpec;
use crate::rival::PACKET_BYTES;
use crate::world::{
    EndedSessions, Forward, Happening, HostId, LabAead, LinkFigures, LinkId, LinkSpec, Moment,
    RivalId, RivalSpec, Traffic, World,
};

/// IP and TCP headers with timestamps, of a rival's packet.
const TCP_IP_HEADER: usize = 52;

/// A virtual world with one server.
pub(in super::super) struct Computed<'a> {
    world: World,
    path: &'a PathSpec,
    direction: Forward,
    link: Option<LinkId>,
    rivals: Vec<RivalId>,
}

impl<'a> Computed<'a> {
    pub(in super::super) fn new(scenario: &'a Scenario, seed: u64) -> Self {
        Self {
            world: World::new(seed)
                .with_forward(scenario.direction)
                .with_mtu(scenario.mtu),
            path: &scenario.path,
            direction: scenario.direction,
            link: None,
            rivals: Vec::new(),
        }
    }
}

impl Venue for Computed<'_> {
    type Error = Infallible;

    fn fates(&self) -> Fates {
        // Hosts and their paths have the same numbers; the server is the first.
        Fates {
            first_path: 1,
            before: Duration::ZERO,
        }
    }

    fn aead(&self) -> Arc<dyn Aead> {
        Arc::new(LabAead)
    }

    fn add_server(&mut self, config: EndpointConfig) -> Result<HostId, Infallible> {
        Ok(self.world.add_server(config))
    }

    fn add_client(&mut self, config: EndpointConfig) -> Result<HostId, Infallible> {
        let client = self.world.add_client(config, self.path);
        if let Some(link) = self.link {
            match self.direction {
                Forward::ToClient => self.world.attach_downlink(client, link),
                Forward::ToServer => self.world.attach_uplink(client, link),
            }
        }
        Ok(client)
    }

    fn address(&self, host: HostId) -> SocketAddr {
        self.world.address(host)
    }

    fn now(&self) -> Moment {
        self.world.now()
    }

    fn step(&mut self, until: Moment) -> Result<bool, Infallible> {
        Ok(self.world.step(until))
    }

    fn take_happenings(&mut self) -> Vec<Happening> {
        self.world.take_happenings()
    }

    fn endpoint(&self, host: HostId) -> &Endpoint {
        self.world.endpoint(host)
    }

    fn ended(&self) -> &EndedSessions {
        self.world.ended()
    }

    fn with_endpoint<R>(&mut self, host: HostId, f: impl FnOnce(&mut Endpoint, Instant) -> R) -> R {
        self.world.with_endpoint(host, f)
    }

    fn recycle(&mut self, host: HostId, data: Vec<u8>) {
        self.world.recycle(host, data);
    }

    fn build(&mut self, policies: &Library) {
        // The world stands still meanwhile.
        if policies.is_wanting() {
            policies.build_wanted();
        }
    }

    fn traffic(&mut self) -> Result<Traffic, Infallible> {
        Ok(self.world.traffic())
    }

    fn begin_link(&mut self, spec: LinkSpec) -> Result<(), Infallible> {
        self.link = Some(self.world.add_link(spec));
        Ok(())
    }

    fn restart_link(&mut self) -> Result<(), Infallible> {
        if let Some(link) = self.link {
            let now = self.world.now();
            self.world.link_mut(link).restart_stats(now);
        }
        Ok(())
    }

    fn link(&mut self) -> Result<Option<LinkFigures>, Infallible> {
        let now = self.world.now();
        Ok(self.link.map(|link| self.world.link_mut(link).figures(now)))
    }

    fn add_rivals(
        &mut self,
        rivals: Rivals,
        start: Moment,
        rtt: Duration,
    ) -> Result<(), Infallible> {
        let link = self.link.expect("rivals come with a link");
        for _ in 0..rivals.cubic {
            let spec = RivalSpec {
                link,
                to_receiver: rtt / 2,
                to_sender: rtt / 2,
                starts_at: start.after(rivals.start),
            };
            self.rivals.push(self.world.add_rival(spec));
        }
        Ok(())
    }

    fn stop_rivals(&mut self) {
        for &rival in &self.rivals {
            self.world.stop_rival(rival);
        }
    }

    fn rivals(&mut self) -> Result<RivalFigures, Infallible> {
        let mut figures = RivalFigures::default();
        for &rival in &self.rivals {
            let stats = self.world.rival_stats(rival);
            let payload = (PACKET_BYTES - TCP_IP_HEADER) as u64;
            figures.delivered_bytes.push(stats.delivered * payload);
            figures.packets_lost += stats.lost;
            figures.timeouts += stats.timeouts;
        }
        Ok(figures)
    }
}
