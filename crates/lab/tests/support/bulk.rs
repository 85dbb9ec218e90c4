//! Bulk transfers over shared links: one server that sends to every client as much as it can, rivals beside them, and what
//! became of it all.
#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::time::Duration;

use punctual_lab::channel::PathSpec;
use punctual_lab::rival::PACKET_BYTES;
use punctual_lab::stats::Latencies;
use punctual_lab::world::{
    Forward, Happening, HostId, LinkId, LinkSpec, Moment, RivalId, RivalSpec, World,
};
use punctual_proto::{Event, SendError, SendOptions, SessionId, SessionStats};

use super::{client_config, key, server_config};

/// Bytes of a bulk message: about 23 packets.
const MESSAGE: usize = 32 * 1024;

pub(crate) fn sec(s: u64) -> Duration {
    Duration::from_secs(s)
}

struct Download {
    client: HostId,
    server: HostId,
    /// The session at the server, once it is there.
    session: Option<SessionId>,
    starts_at: Moment,
    received: u64,
}

/// Downloads and rivals over one link.
pub(crate) struct Bulk {
    pub world: World,
    pub link: LinkId,
    server: HostId,
    rtt: Duration,
    downloads: Vec<Download>,
    rivals: Vec<RivalId>,
    /// One-way latencies of the small messages that the first download's server sends beside it.
    pub small: Latencies,
    small_every: Option<Duration>,
    small_at: Moment,
    small_sent: Vec<Moment>,
}

impl Bulk {
    /// A link in front of paths of this round trip.
    pub(crate) fn new(seed: u64, rtt: Duration, link: LinkSpec) -> Self {
        let mut world = World::new(seed).with_forward(Forward::ToClient);
        let link = world.add_link(link);
        let server = world.add_server(server_config());
        Self {
            world,
            link,
            server,
            rtt,
            downloads: Vec::new(),
            rivals: Vec::new(),
            small: Latencies::default(),
            small_every: None,
            small_at: Moment::default(),
            small_sent: Vec::new(),
        }
    }

    /// Downloads that are added from now on come from a server of their own.
    pub(crate) fn next_server(&mut self) {
        self.server = self.world.add_server(server_config());
    }

    /// A client whose download begins at `starts_at` (and that connects now).
    pub(crate) fn download(&mut self, path: &PathSpec, starts_at: Duration) {
        let client = self.world.add_client(client_config(), path);
        self.world.attach_downlink(client, self.link);
        self.world
            .connect(client, self.server, key().public())
            .unwrap();
        self.downloads.push(Download {
            client,
            server: self.server,
            session: None,
            starts_at: Moment::default().after(starts_at),
            received: 0,
        });
    }

    pub(crate) fn rival(&mut self, starts_at: Duration) {
        let spec = RivalSpec {
            link: self.link,
            to_receiver: self.rtt / 2,
            to_sender: self.rtt / 2,
            starts_at: Moment::default().after(starts_at),
        };
        self.rivals.push(self.world.add_rival(spec));
    }

    /// From now on a message of 100 bytes leaves beside the first download this often.
    pub(crate) fn small_every(&mut self, every: Duration) {
        self.small_every = Some(every);
        self.small_at = self.world.now();
        self.small_sent.clear();
        self.small = Latencies::default();
    }

    /// Counts at the link begin anew.
    pub(crate) fn restart(&mut self) {
        let now = self.world.now();
        self.world.link_mut(self.link).restart_stats(now);
    }

    pub(crate) fn run(&mut self, span: Duration) {
        let until = self.world.now().after(span);
        loop {
            let mut next = until;
            if self.small_every.is_some() {
                next = next.min(self.small_at);
            }
            let now = self.world.now();
            for download in &self.downloads {
                if download.starts_at > now {
                    next = next.min(download.starts_at);
                }
            }
            let mut happenings = Vec::new();
            loop {
                let stepped = self.world.step(next);
                happenings.extend(self.world.take_happenings());
                for happening in happenings.drain(..) {
                    self.handle(happening);
                }
                if !stepped {
                    break;
                }
            }
            self.start_due();
            self.send_small();
            if next >= until {
                return;
            }
        }
    }

    fn start_due(&mut self) {
        for index in 0..self.downloads.len() {
            if self.downloads[index].starts_at <= self.world.now() {
                self.fill(index);
            }
        }
    }

    fn send_small(&mut self) {
        let Some(every) = self.small_every else {
            return;
        };
        if self.small_at <= self.world.now() {
            self.small_at = self.world.now().after(every);
            let Download {
                server,
                session: Some(session),
                ..
            } = self.downloads[0]
            else {
                return;
            };
            let mut data = [0; 100];
            data[..8].copy_from_slice(&(self.small_sent.len() as u64).to_le_bytes());
            self.small_sent.push(self.world.now());
            // Without redundancy: what is measured is the delay of packets.
            let options =
                SendOptions::within(self.rtt / 2 + Duration::from_millis(30)).on_time(0.999);
            let _ = self.world.send(server, session, &data, options);
        }
    }

    fn fill(&mut self, index: usize) {
        let Download {
            server,
            session: Some(session),
            ..
        } = self.downloads[index]
        else {
            return;
        };
        loop {
            match self
                .world
                .send(server, session, &[7; MESSAGE], SendOptions::default())
            {
                Ok(_) => {}
                Err(SendError::Full { .. }) => return,
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    fn handle(&mut self, happening: Happening) {
        let Happening {
            at,
            host,
            session,
            event,
        } = happening;
        match event {
            Event::Connected { .. } if self.downloads.iter().any(|d| d.server == host) => {
                // Which of a server's clients it is nobody asks.
                let is_next = |d: &Download| d.server == host && d.session.is_none();
                let index = self.downloads.iter().position(is_next);
                let index = index.expect("one session a download");
                self.downloads[index].session = Some(session);
                if self.downloads[index].starts_at <= self.world.now() {
                    self.fill(index);
                }
            }
            Event::Writable => {
                let is_its = |d: &Download| d.server == host && d.session == Some(session);
                if let Some(index) = self.downloads.iter().position(is_its) {
                    self.fill(index);
                }
            }
            Event::Message { data, .. } => {
                if data.len() == MESSAGE {
                    let download = self.downloads.iter_mut().find(|d| d.client == host);
                    download.expect("clients download").received += data.len() as u64;
                } else {
                    let index = u64::from_le_bytes(data[..8].try_into().unwrap());
                    if let Some(sent) = self.small_sent.get(index as usize) {
                        self.small.record(at.since(*sent).as_micros() as u64);
                    }
                }
                self.world.recycle(host, data);
            }
            Event::Closed { why } => panic!("{why:?}"),
            _ => {}
        }
    }

    /// Bytes of messages that each download has.
    pub(crate) fn received(&self) -> Vec<f64> {
        self.downloads.iter().map(|d| d.received as f64).collect()
    }

    /// Bytes of data that each rival's receiver has (IP and TCP headers and timestamps left out).
    pub(crate) fn rivals_received(&self) -> Vec<f64> {
        let bytes = |id: &RivalId| {
            self.world.rival_stats(*id).delivered as f64 * (PACKET_BYTES - 52) as f64
        };
        self.rivals.iter().map(bytes).collect()
    }

    /// Of the server's side of a download.
    pub(crate) fn stats(&self, index: usize) -> SessionStats {
        let Download {
            server, session, ..
        } = self.downloads[index];
        self.world
            .endpoint(server)
            .session_stats(session.unwrap())
            .unwrap()
    }

    pub(crate) fn path_window(&self, index: usize) -> u64 {
        let Download {
            server, session, ..
        } = self.downloads[index];
        let now = self.world.local_time(server);
        let session = session.unwrap();
        let report = self.world.endpoint(server).path_report(now, session);
        report.unwrap().congestion_window
    }
}

/// What each gained between two counts.
pub(crate) fn gained(before: &[f64], after: &[f64]) -> Vec<f64> {
    after.iter().zip(before).map(|(a, b)| a - b).collect()
}
