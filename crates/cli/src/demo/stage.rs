//! Sets the demo up and runs it: sockets, endpoints, relay, three threads; and the order of events.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use punctual_lab::relay::{Lane, Relay, RelayOptions, RelayReport};
use punctual_lab::world::Forward;
use punctual_net::clock::Clock;
use punctual_net::crypto::AwsLc;
use punctual_net::entropy;
use punctual_net::udp::{Driver, Socket, SocketOptions};
use punctual_proto::{EndpointConfig, ServerConfig, ServerKey};

use super::board::Board;
use super::clients::{CONNECT_EVERY, Clients, Received};
use super::server::{Server, ServerReport};
use super::settings::{POLICIES, Settings};
use super::view::View;
use crate::failure::Failure;
use crate::interrupt;
use crate::tables;

/// How long clients may take to connect once all have begun. Each of them tries for 5 s.
const CONNECT_MAX: Duration = Duration::from_secs(6);
/// The demo goes on without clients that could not connect when at most this share of them is missing.
const MISSING_MAX: f64 = 0.1;
/// Time from the last connection to the first message.
const SETTLE: Duration = Duration::from_millis(100);
/// After the last message, how long stragglers may take: with 45 s of messages the whole stays under a minute.
const DRAIN_MAX: Duration = Duration::from_secs(8);
/// The same after Ctrl-C.
const DRAIN_INTERRUPTED: Duration = Duration::from_secs(2);
/// Time between two looks at the board.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Everything in its place, nothing begun.
pub(super) struct Stage {
    clock: Clock,
    key: ServerKey,
    servers: Vec<Driver>,
    clients: Vec<Driver>,
    relay: Relay,
}

/// What all saw.
pub(super) struct Performance {
    pub(super) server: ServerReport,
    pub(super) received: Vec<Received>,
    pub(super) relay: RelayReport,
    pub(super) is_interrupted: bool,
    /// From the first handshake to the end.
    pub(super) took: Duration,
}

impl Stage {
    /// Opens the sockets and builds the policies' tables, so that nothing is solved while messages are under way.
    pub(super) fn set(settings: &Settings) -> Result<Self, Failure> {
        let clock = Clock::start();
        let key = ServerKey::from_private(entropy::seed().map_err(Failure::failed)?);
        let mut servers = Vec::new();
        let mut clients = Vec::new();
        let mut lanes = Vec::new();
        for kind in POLICIES {
            let miss_target = settings.send_options().miss_target();
            let policies = tables::library(kind, settings.message_bytes, miss_target);
            let aead = Arc::new(AwsLc);
            let server_config = ServerConfig::new(key.clone());
            let server = EndpointConfig::server(aead.clone(), policies.clone(), server_config);
            let server = driver(server, clock)?;
            let client = driver(EndpointConfig::client(aead, policies), clock)?;
            lanes.push(Lane {
                client: client.socket().local_addr(),
                server: server.socket().local_addr(),
            });
            servers.push(server);
            clients.push(client);
        }
        let options = RelayOptions {
            path: settings.path.clone(),
            paths: settings.clients,
            // The messages go that way.
            forward: Forward::ToClient,
            seed: settings.seed,
            lanes,
        };
        Ok(Self {
            clock,
            key,
            servers,
            clients,
            relay: Relay::bind(&options).map_err(Failure::failed)?,
        })
    }

    /// Connects, sends, waits for the stragglers.
    pub(super) fn play(self, settings: &Settings, view: &mut View) -> Result<Performance, Failure> {
        let begin = Instant::now();
        let board = Board::new(POLICIES.len());
        let paths: Vec<SocketAddr> = self.relay.addresses().to_vec();
        let (clock, public) = (self.clock, self.key.public());
        let server =
            Server::new(settings, &board, clock, self.servers, &paths).map_err(no_poller)?;
        let clients = Clients::new(settings, &board, clock, self.clients, &paths, public)
            .map_err(no_poller)?;
        let (board, relay) = (&board, self.relay);
        thread::scope(|scope| {
            let relay = scope.spawn(move || {
                let _stop = board.stop_on_drop();
                relay.run(board.stop_flag())
            });
            let server = scope.spawn(move || {
                let _stop = board.stop_on_drop();
                server.run()
            });
            let clients = scope.spawn(move || {
                let _stop = board.stop_on_drop();
                clients.run()
            });
            let course = direct(settings, board, clock, view);
            board.stop();
            let (relay, server, clients) = (join(relay), join(server), join(clients));
            Ok(Performance {
                is_interrupted: course? == Course::Interrupted,
                server: server?,
                received: clients?,
                relay: relay?,
                took: begin.elapsed(),
            })
        })
    }
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    Complete,
    Interrupted,
}

/// The main thread's part: says when what begins, and shows how far it is.
fn direct(
    settings: &Settings,
    board: &Board,
    clock: Clock,
    view: &mut View,
) -> Result<Course, Failure> {
    let begin = Instant::now();
    while !board.are_connected(settings.clients) {
        if interrupt::is_requested() {
            return Err(Failure::Interrupted);
        }
        if board.is_stopped() {
            return Ok(Course::Complete);
        }
        let missing = board.missing(settings.clients);
        if begin.elapsed() > CONNECT_EVERY * settings.clients + CONNECT_MAX {
            if f64::from(missing) <= MISSING_MAX * f64::from(settings.clients) {
                break;
            }
            return Err(Failure::failed(format_args!(
                "{missing} of {} clients could not connect over this path: take fewer clients, or another path",
                settings.clients
            )));
        }
        view.show_connecting(settings.clients - missing);
        thread::sleep(LOOK_EVERY);
    }
    let start = clock.now_nanos() + SETTLE.as_nanos() as u64;
    board.start_at(start);
    let mut course = Course::Complete;
    while !board.has_sent_all() && !board.is_stopped() {
        if interrupt::is_requested() {
            course = Course::Interrupted;
            board.halt();
        }
        let since = Duration::from_nanos(clock.now_nanos().saturating_sub(start));
        view.show_sending(board, since);
        thread::sleep(LOOK_EVERY);
    }
    Ok(drain(board, course, view))
}

/// Waits for the stragglers. Who does not wait for all has an end before its time.
fn drain(board: &Board, course: Course, view: &mut View) -> Course {
    let patience = match course {
        Course::Complete => DRAIN_MAX,
        Course::Interrupted => DRAIN_INTERRUPTED,
    };
    let until = Instant::now() + patience;
    while !board.have_arrived() && !board.is_stopped() && Instant::now() < until {
        if interrupt::is_requested() && course == Course::Complete {
            // Everything is sent: there is nothing to cut short but the wait.
            return Course::Interrupted;
        }
        view.show_draining(board);
        thread::sleep(LOOK_EVERY);
    }
    view.show_draining(board);
    course
}

fn driver(config: EndpointConfig, clock: Clock) -> Result<Driver, Failure> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let socket = Socket::bind(address, &SocketOptions::default()).map_err(Failure::failed)?;
    Driver::new(config, Arc::new(socket), clock).map_err(Failure::failed)
}

fn join<T>(thread: ScopedJoinHandle<'_, io::Result<T>>) -> Result<T, Failure> {
    match thread.join() {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => Err(Failure::failed(format_args!(
            "a socket of the demo failed: {error}"
        ))),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn no_poller(error: io::Error) -> Failure {
    Failure::failed(format_args!(
        "the system does not let the demo wait for its sockets: {error}"
    ))
}
