//! Where `punctual lab emulate` plays a scenario: real sockets in the namespaces of an emulated network.
//!
//! The server's namespace has one endpoint, the clients' namespace one for each session, at its own address. One thread drives them
//! all, as it plays the scenario: what the protocol takes to compute is the same as in a program of one's own.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_lab::arena::KernelCounts;
use punctual_lab::arm::{Places, Stack};
use punctual_lab::channel::{PathSpec, RttSplit};
use punctual_lab::emulator::{
    Cable, Capture, Downloads, DropLog, Emulator, EmulatorOptions, Namespace, Report, Site,
    give_up_precedence, take_precedence,
};
use punctual_lab::scenario::{Fates, RivalFigures, Rivals, Scenario, Venue};
use punctual_lab::stats::Latencies;
use punctual_lab::world::{
    EndedSessions, Forward, Happening, HostId, LinkFigures, LinkSpec, Moment, Traffic,
};
use punctual_net::clock::Clock;
use punctual_net::crypto::AwsLc;
use punctual_net::udp::{BindError, Poller, Socket, SocketOptions};
use punctual_policy::Library;
use punctual_proto::crypto::Aead;
use punctual_proto::{Endpoint, EndpointConfig, Instant as Local};

use crate::failure::Failure;
use crate::interrupt;
use crate::lab::end::{End, client_socket};
use crate::lab::inside::emulator_failed;
use crate::lab::networks;

/// Where the server listens, in a namespace of its own.
const PORT: u16 = 7000;

/// What is written down of a run.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) drop_log: Option<DropLog>,
    pub(super) capture: Option<Capture>,
}

/// Starts the network of a scenario, without its link.
pub(super) fn start(scenario: &Scenario, seed: u64, notes: Notes) -> Result<Emulator, Failure> {
    let mut paths = vec![scenario.path.clone(); scenario.sessions as usize];
    let has_rivals = scenario.rivals.is_some();
    if let Some(rivals) = scenario.rivals {
        // As in virtual time: the link is all that disturbs them.
        let path = PathSpec::fixed("rivals", scenario.path.median_rtt(), RttSplit::EVEN);
        paths.extend((0..rivals.cubic).map(|_| path.clone()));
    }
    Emulator::start(EmulatorOptions {
        paths,
        forward: scenario.direction,
        link: None,
        seed,
        mtu: scenario.mtu.unwrap_or(networks::MTU),
        cables: vec![Cable {
            stack: Stack {
                congestion_control: has_rivals.then(|| "cubic".to_owned()),
                ..Stack::default()
            },
            drop_log: notes.drop_log,
            capture: notes.capture,
            ..Cable::default()
        }],
    })
    .map_err(emulator_failed)
}

/// Endpoints on the sockets of an emulated network.
pub(super) struct Sockets {
    emulator: Emulator,
    places: Places,
    sessions: u32,
    direction: Forward,
    clock: Clock,
    poller: Poller,
    /// By host: the server, then the clients.
    ends: Vec<End>,
    /// Hosts whose endpoints were called, and have not sent since.
    dirty: Vec<HostId>,
    happenings: Vec<Happening>,
    ended: EndedSessions,
    downloads: Option<Downloads>,
    kernel_before: KernelCounts,
    /// How long after its time a turn that nothing but time had asked for was taken.
    lateness: Latencies,
}

/// What became of packets, and of the endpoints' time.
pub(super) struct Ended {
    pub(super) report: Report,
    /// Milliseconds by which 99 of 100 turns were late at most.
    pub(super) late_ms_p99: f64,
}

impl Sockets {
    /// The network of a scenario, with nobody on it yet.
    pub(super) fn open(scenario: &Scenario, seed: u64, notes: Notes) -> Result<Self, Failure> {
        let emulator = start(scenario, seed, notes)?;
        take_precedence();
        Ok(Self {
            places: emulator.places(PORT),
            emulator,
            sessions: scenario.sessions,
            direction: scenario.direction,
            clock: Clock::start(),
            poller: Poller::new().map_err(|why| failed(&why))?,
            ends: Vec::new(),
            dirty: Vec::new(),
            happenings: Vec::new(),
            ended: EndedSessions::default(),
            downloads: None,
            kernel_before: KernelCounts::default(),
            lateness: Latencies::default(),
        })
    }

    /// Ends it.
    pub(super) fn close(self) -> Result<Ended, Failure> {
        give_up_precedence();
        // The connections of the rivals, and the sockets, before their network.
        drop((self.downloads, self.ends));
        Ok(Ended {
            report: self.emulator.stop().map_err(emulator_failed)?,
            late_ms_p99: self.lateness.quantile_ms(0.99).unwrap_or(0.0),
        })
    }

    fn add(
        &mut self,
        site: Site,
        address: SocketAddr,
        options: &SocketOptions,
        config: EndpointConfig,
    ) -> Result<HostId, Failure> {
        let bind = || Ok(Socket::bind(address, options));
        let socket = self.emulator.namespace(0, site).within(bind);
        let socket = socket
            .map_err(|why| failed(&why))?
            .map_err(|why| no_socket(&why))?;
        let end = End::new(config, socket, self.clock, &mut self.poller);
        self.ends.push(end.map_err(Failure::failed)?);
        Ok(HostId(self.ends.len() as u32 - 1))
    }

    fn end(&mut self, host: HostId) -> &mut End {
        &mut self.ends[host.0 as usize]
    }

    /// Lets endpoints that were called send; whether something happened to them by that.
    fn send(&mut self) -> bool {
        let before = self.happenings.len();
        while let Some(host) = self.dirty.pop() {
            self.end(host).send();
            self.take_events(host);
        }
        self.happenings.len() > before
    }

    fn take_events(&mut self, host: HostId) {
        let at = Moment(self.clock.now_nanos());
        let end = &mut self.ends[host.0 as usize];
        while let Some((session, event)) = end.driver.endpoint_mut().poll_event() {
            let endpoint = end.driver.endpoint();
            self.ended.on_event(host, endpoint, session, &event);
            self.happenings.push(Happening {
                at,
                host,
                session,
                event,
            });
        }
    }

    fn report(&mut self) -> Result<Report, Failure> {
        self.emulator.report().map_err(emulator_failed)
    }

    fn sender(&self) -> &Namespace {
        let site = match self.direction {
            Forward::ToClient => Site::Server,
            Forward::ToServer => Site::Client,
        };
        self.emulator.namespace(0, site)
    }
}

fn failed(why: &io::Error) -> Failure {
    Failure::failed(format_args!("using the network's sockets: {why}"))
}

fn no_socket(why: &BindError) -> Failure {
    match why {
        BindError::System { step, source } => Failure::bad_input(format_args!(
            "{step}: {source}; each session takes a socket, so play fewer of them or allow more open files (ulimit -n)"
        )),
        why => Failure::failed(why),
    }
}

impl Venue for Sockets {
    type Error = Failure;

    fn fates(&self) -> Fates {
        let now = Instant::now();
        let network = now.saturating_duration_since(self.emulator.began());
        Fates {
            first_path: 0,
            before: network.saturating_sub(Duration::from_nanos(self.clock.nanos_at(now))),
        }
    }

    fn aead(&self) -> Arc<dyn Aead> {
        Arc::new(AwsLc)
    }

    fn add_server(&mut self, config: EndpointConfig) -> Result<HostId, Failure> {
        let address = self.places.server();
        self.add(Site::Server, address, &SocketOptions::default(), config)
    }

    fn add_client(&mut self, config: EndpointConfig) -> Result<HostId, Failure> {
        let address = self.places.client(self.ends.len() as u32 - 1);
        self.add(Site::Client, address, &client_socket(), config)
    }

    fn address(&self, host: HostId) -> SocketAddr {
        self.ends[host.0 as usize].driver.socket().local_addr()
    }

    fn now(&self) -> Moment {
        Moment(self.clock.now_nanos())
    }

    fn step(&mut self, until: Moment) -> Result<bool, Failure> {
        if interrupt::is_requested() {
            return Err(Failure::Interrupted);
        }
        // What happened may lead to more to send: it is told before anything is waited for.
        if self.send() {
            return Ok(true);
        }
        let asleep = Instant::now();
        let due = self.ends.iter().filter_map(|end| end.due).min();
        let patience = self.clock.until(until.0);
        let patience = due.map_or(patience, |due| {
            due.saturating_duration_since(asleep).min(patience)
        });
        let woke = self.poller.wait(Some(patience));
        let woke = woke.map_err(|why| failed(&why))?;
        let now = Instant::now();
        if woke.sockets == 0 {
            let late = now.saturating_duration_since(asleep + patience);
            self.lateness.record(late.as_micros() as u64);
        }
        for host in 0..self.ends.len() {
            if self.ends[host].is_ready(now, &self.poller) {
                self.ends[host].turn(now).map_err(|why| failed(&why))?;
                self.take_events(HostId(host as u32));
            }
        }
        Ok(self.now() < until)
    }

    fn take_happenings(&mut self) -> Vec<Happening> {
        std::mem::take(&mut self.happenings)
    }

    fn endpoint(&self, host: HostId) -> &Endpoint {
        self.ends[host.0 as usize].driver.endpoint()
    }

    fn ended(&self) -> &EndedSessions {
        &self.ended
    }

    fn with_endpoint<R>(&mut self, host: HostId, f: impl FnOnce(&mut Endpoint, Local) -> R) -> R {
        if self.dirty.last() != Some(&host) {
            self.dirty.push(host);
        }
        let driver = &mut self.end(host).driver;
        let now = driver.now();
        f(driver.endpoint_mut(), now)
    }

    fn recycle(&mut self, host: HostId, data: Vec<u8>) {
        self.end(host).driver.endpoint_mut().recycle(data);
    }

    fn build(&mut self, _: &Library) {
        // A driver's turn sees to it, on another thread.
    }

    fn traffic(&mut self) -> Result<Traffic, Failure> {
        let report = self.report()?;
        let ways = report.cables[0].paths[..self.sessions as usize]
            .iter()
            .flatten();
        Ok(ways.fold(Traffic::default(), |sum, way| Traffic {
            sent: sum.sent + way.packets,
            sent_bytes: sum.sent_bytes + way.bytes,
            lost: sum.lost + way.dropped,
            unreachable: 0,
        }))
    }

    fn begin_link(&mut self, spec: LinkSpec) -> Result<(), Failure> {
        self.emulator.begin_link(spec);
        Ok(())
    }

    fn restart_link(&mut self) -> Result<(), Failure> {
        self.emulator.restart_link();
        Ok(())
    }

    fn link(&mut self) -> Result<Option<LinkFigures>, Failure> {
        Ok(self.report()?.links.swap_remove(0))
    }

    fn add_rivals(&mut self, rivals: Rivals, start: Moment, _: Duration) -> Result<(), Failure> {
        self.kernel_before = KernelCounts::read(self.sender());
        let at = Instant::now() + self.clock.until(start.after(rivals.start).0);
        let sites = Site::ALL.map(|site| self.emulator.namespace(0, site));
        let is_to_client = self.direction == Forward::ToClient;
        let downloads = Downloads::start(sites, self.sessions, rivals.cubic, is_to_client, at);
        self.downloads = Some(downloads.map_err(|why| failed(&why))?);
        Ok(())
    }

    fn stop_rivals(&mut self) {
        if let Some(downloads) = &self.downloads {
            downloads.stop();
        }
    }

    fn rivals(&mut self) -> Result<RivalFigures, Failure> {
        let Some(downloads) = &self.downloads else {
            return Ok(RivalFigures::default());
        };
        // Nothing else uses TCP there.
        let counts = KernelCounts::read(self.sender()).since(&self.kernel_before);
        Ok(RivalFigures {
            delivered_bytes: downloads.delivered_bytes(),
            packets_lost: counts.get("Tcp.RetransSegs"),
            timeouts: counts.get("TcpExt.TCPTimeouts"),
        })
    }
}
