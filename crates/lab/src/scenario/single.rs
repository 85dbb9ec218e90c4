//! One run of a scenario: a server, its clients, a link and rivals, and the messages that the schedule asks for.
//!
//! Sessions begin before anything is counted and before the link is there, so that a scenario of a thousand sessions does not begin
//! with a thousand handshakes in a queue. What comes then in order of time: messages of the schedule, streams that become hungry,
//! and marks (the measuring begins and ends, rivals stop).

mod measure;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use punctual_policy::Library;
use punctual_proto::{
    EndpointConfig, Event, MessageId, Piece, SendError, SendOptions, ServerConfig, ServerKey,
    SessionId, SharedContent, StreamId, limits,
};

use super::protocol::{send_options, stream_config, with_thin};
use super::run::RunError;
use super::summary::RunResult;
use super::{Due, Fate, Pattern, Scenario, Schedule, StreamTally, Turn, stamp};
use crate::stats::Latencies;
use crate::world::{
    Forward, Happening, HostId, LabAead, LinkId, LinkSpec, Moment, RivalId, RivalSpec, Traffic,
    World,
};

/// What came of one run.
pub(super) struct Single {
    pub(super) seed: u64,
    pub(super) tallies: Vec<StreamTally>,
    pub(super) result: RunResult,
    /// Of packets at the link, while measured.
    pub(super) waits: Latencies,
}

/// Runs a scenario with a seed; `progress` hears how much of its time has gone by.
pub(super) fn run(
    scenario: &Scenario,
    seed: u64,
    mut progress: impl FnMut(Duration),
) -> Result<Single, RunError> {
    let mut stage = Stage::new(scenario, seed);
    stage.connect()?;
    stage.begin();
    stage.play(&mut progress);
    stage.drain();
    Ok(stage.finish())
}

/// How long sessions may take to begin.
const CONNECT: Duration = Duration::from_secs(60);
/// After the last message, how long late ones may still come.
const DRAIN: Duration = Duration::from_secs(120);
/// Share of a session's room that its hungry streams take together: the rest is for those that do not wait.
const HUNGRY_SHARE: f64 = 0.75;

/// A session, by its client.
struct End {
    client: HostId,
    /// The host that sends, and its session.
    sender: HostId,
    session: SessionId,
}

/// What happens besides messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Measure,
    RivalsStop,
}

/// What is known when the measuring ends.
struct Measured {
    result: RunResult,
    waits: Latencies,
}

struct Stage<'a> {
    scenario: &'a Scenario,
    seed: u64,
    policies: Arc<Library>,
    world: World,
    server: HostId,
    server_key: [u8; 32],
    ends: Vec<End>,
    /// The server's sessions, by which of `ends` they are.
    by_session: BTreeMap<SessionId, u32>,
    schedule: Schedule,
    tallies: Vec<StreamTally>,
    start: Moment,
    marks: Vec<(Duration, Mark)>,
    link: Option<LinkId>,
    rivals: Vec<RivalId>,
    /// By session, then stream: messages without an outcome, of hungry streams.
    waiting: Vec<u32>,
    /// By stream: how many of those there may be.
    waiting_max: Vec<u32>,
    /// By stream: what is sent without copying.
    bulk: Vec<Option<SharedContent>>,
    message: Vec<u8>,
    sessions_closed: u32,
    traffic_before: Traffic,
    rivals_before: Vec<u64>,
    measured: Option<Measured>,
}

impl<'a> Stage<'a> {
    fn new(scenario: &'a Scenario, seed: u64) -> Self {
        let policies = Arc::new(Library::new(scenario.policy));
        for stream in scenario.streams.iter().filter(|s| s.deadline.is_some()) {
            let miss_target = send_options(stream, 0).miss_target();
            policies.prepare(miss_target, 1..=16);
        }
        let mut world = World::new(seed).with_forward(scenario.direction);
        let key = ServerKey::from_private([7; 32]);
        let config = EndpointConfig::server(
            Arc::new(LabAead),
            policies.clone(),
            ServerConfig::new(key.clone()),
        );
        let server = world.add_server(EndpointConfig {
            uplink: scenario.uplink,
            ..with_thin(config, scenario.thin)
        });
        let hungry = scenario.streams.iter();
        let hungry = hungry.filter(|stream| stream.traffic.pattern == Pattern::Saturate);
        let hungry = hungry.count() as f64;
        Self {
            scenario,
            seed,
            policies,
            world,
            server,
            server_key: key.public(),
            ends: Vec::new(),
            by_session: BTreeMap::new(),
            schedule: Schedule::new(scenario, seed),
            tallies: Vec::new(),
            start: Moment::default(),
            marks: Vec::new(),
            link: None,
            rivals: Vec::new(),
            waiting: vec![0; scenario.sessions as usize * scenario.streams.len()],
            waiting_max: (scenario.streams.iter())
                .map(|stream| {
                    let room = HUNGRY_SHARE / hungry.max(1.0);
                    let bytes = stream.traffic.sizes.max().max(1);
                    let by_bytes = limits::SEND_QUEUE_MAX as f64 * room / f64::from(bytes);
                    let by_count = limits::SEND_MESSAGES_MAX as f64 * room;
                    (by_bytes.min(by_count) as u32).max(2)
                })
                .collect(),
            bulk: vec![None; scenario.streams.len()],
            message: vec![0; limits::WHOLE_MAX],
            sessions_closed: 0,
            traffic_before: Traffic::default(),
            rivals_before: Vec::new(),
            measured: None,
        }
    }

    /// Runs until every client is in. One that gave up tries again.
    fn connect(&mut self) -> Result<(), RunError> {
        let aead = Arc::new(LabAead);
        let mut clients = Vec::new();
        for _ in 0..self.scenario.sessions {
            let config = EndpointConfig::client(aead.clone(), self.policies.clone());
            let config = with_thin(config, self.scenario.thin);
            let client = self.world.add_client(config, &self.scenario.path);
            let session = self.begin_session(client);
            clients.push((client, session, false));
        }
        let by_address: BTreeMap<_, _> = (0..)
            .zip(&clients)
            .map(|(index, (client, ..))| (self.world.address(*client), index))
            .collect();
        let until = self.world.now().after(CONNECT);
        let first = clients[0].0.0;
        let mut connected = 0;
        while self.world.now() < until
            && (connected < self.scenario.sessions
                || self.by_session.len() < self.scenario.sessions as usize)
        {
            let next = self.world.now().after(Duration::from_millis(50));
            while self.world.step(next) {}
            for happening in self.world.take_happenings() {
                let Happening {
                    host,
                    session,
                    event,
                    ..
                } = happening;
                match event {
                    Event::Connected { .. } if host == self.server => {
                        let remote = self.world.endpoint(host).remote(session);
                        let index = remote.and_then(|remote| by_address.get(&remote));
                        let index = *index.expect("nobody else is there");
                        self.by_session.insert(session, index);
                    }
                    Event::Connected { .. } => {
                        clients[(host.0 - first) as usize].2 = true;
                        connected += 1;
                    }
                    Event::Closed { .. } if host == self.server => {
                        self.by_session.remove(&session);
                    }
                    Event::Closed { .. } => {
                        let again = self.begin_session(host);
                        let client = &mut clients[(host.0 - first) as usize];
                        connected -= u32::from(client.2);
                        (client.1, client.2) = (again, false);
                    }
                    _ => {}
                }
            }
        }
        if (self.by_session.len() as u32).min(connected) < self.scenario.sessions {
            return Err(RunError::Unreachable {
                connected,
                of: self.scenario.sessions,
                seed: self.seed,
            });
        }
        let clients = clients
            .into_iter()
            .map(|(client, session, _)| (client, session));
        self.note_ends(clients.collect());
        Ok(())
    }

    /// Who sends, by session: clients come with their side's session.
    fn note_ends(&mut self, clients: Vec<(HostId, SessionId)>) {
        let at_server: BTreeMap<u32, SessionId> = self
            .by_session
            .iter()
            .map(|(session, index)| (*index, *session))
            .collect();
        self.ends = (0..)
            .zip(clients)
            .map(|(index, (client, at_client))| {
                let (sender, session) = match self.scenario.direction {
                    Forward::ToClient => (self.server, at_server[&index]),
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
        self.world
            .connect(client, self.server, self.server_key)
            .expect("a new endpoint has room, and the key is a key")
    }

    /// The clock of the scenario starts.
    fn begin(&mut self) {
        self.start = self.world.now();
        let scenario = self.scenario;
        let (from, until) = (
            self.start.after(scenario.settle),
            self.start.after(scenario.duration),
        );
        for stream in &scenario.streams {
            let tally = StreamTally::new(stream, scenario.sessions, self.seed, from, until);
            self.tallies.push(tally);
        }
        for end in &self.ends {
            for (place, stream) in (0..).zip(&scenario.streams) {
                let config = stream_config(stream, place);
                self.world
                    .with_endpoint(end.sender, |endpoint, _| {
                        endpoint.open_stream(end.session, config)
                    })
                    .expect("the session is new, and the scenario was checked");
            }
        }
        self.begin_link();
        if scenario.settle > Duration::ZERO {
            self.marks.push((scenario.settle, Mark::Measure));
        } else {
            self.measure();
        }
        self.marks.sort_unstable();
    }

    fn begin_link(&mut self) {
        let Some(bottleneck) = self.scenario.link else {
            return;
        };
        let link = self.world.add_link(LinkSpec {
            rate_bits_per_second: bottleneck.bits_per_second,
            queue_bytes: bottleneck.queue_bytes,
            ecn_mark_bytes: bottleneck.ecn_mark_bytes,
        });
        self.link = Some(link);
        for end in &self.ends {
            match self.scenario.direction {
                Forward::ToClient => self.world.attach_downlink(end.client, link),
                Forward::ToServer => self.world.attach_uplink(end.client, link),
            }
        }
        let Some(rivals) = self.scenario.rivals else {
            return;
        };
        let half = self.scenario.path.median_rtt() / 2;
        for _ in 0..rivals.cubic {
            let spec = RivalSpec {
                link,
                to_receiver: half,
                to_sender: half,
                starts_at: self.start.after(rivals.start),
            };
            self.rivals.push(self.world.add_rival(spec));
        }
        if let Some(stop) = rivals.stop {
            self.marks.push((stop, Mark::RivalsStop));
        }
    }

    /// Lets the scenario's time go by.
    fn play(&mut self, progress: &mut impl FnMut(Duration)) {
        let mut now = Duration::ZERO;
        let mut told = Duration::ZERO;
        let end = self.scenario.duration;
        loop {
            self.feed_all(now);
            let mark = self.marks.first().map(|(at, _)| *at);
            let times = [self.schedule.next_at(), self.schedule.hungry_at(now), mark];
            // Marks at the end are of no use.
            let next = times.into_iter().flatten().min().filter(|at| *at < end);
            now = next.unwrap_or(end);
            while told + PROGRESS_STEP < now {
                told += PROGRESS_STEP;
                self.run_until(self.start.after(told));
                progress(told);
            }
            self.run_until(self.start.after(now));
            while self.marks.first().is_some_and(|(at, _)| *at <= now) {
                let (_, mark) = self.marks.remove(0);
                self.on_mark(mark);
            }
            if next.is_none() {
                break;
            }
            while self.schedule.next_at() == Some(now) {
                self.send_next();
            }
        }
        self.end_measuring();
        progress(end);
    }

    fn on_mark(&mut self, mark: Mark) {
        match mark {
            Mark::Measure => self.measure(),
            Mark::RivalsStop => {
                for &rival in &self.rivals {
                    self.world.stop_rival(rival);
                }
            }
        }
    }

    /// The measuring begins.
    fn measure(&mut self) {
        self.traffic_before = self.world.traffic();
        let rivals = self.rivals.iter();
        self.rivals_before = rivals
            .map(|rival| self.world.rival_stats(*rival).delivered)
            .collect();
        if let Some(link) = self.link {
            let now = self.world.now();
            self.world.link_mut(link).restart_stats(now);
        }
    }

    fn send_next(&mut self) {
        let Some((turn, due)) = self.schedule.take() else {
            return;
        };
        let traffic = &self.scenario.streams[usize::from(turn.stream)].traffic;
        let _ = self.send(turn, due);
        if traffic.has_own_packets {
            let now = self.world.now();
            while self.world.step(now) {}
        }
    }

    fn send(&mut self, turn: Turn, due: Due) -> Result<(), SendError> {
        let place = usize::from(turn.stream);
        let spec = &self.scenario.streams[place];
        let tally = &mut self.tallies[place];
        let number = tally.next_number(turn.session);
        let options = send_options(spec, u64::from(number));
        let end = &self.ends[turn.session as usize];
        let stream = StreamId(u16::from(turn.stream));
        let sent = match spec.traffic.pattern {
            Pattern::Bulk { bytes } => {
                // There is one a session, so all of them have the same number and can share the content.
                let content = self.bulk[place].get_or_insert_with(|| {
                    let mut content = vec![0x5a; bytes as usize];
                    stamp::write(&mut content, number);
                    Arc::new(content)
                });
                let content = content.clone();
                self.world.with_endpoint(end.sender, |endpoint, now| {
                    endpoint.send_shared(now, end.session, stream, content, options)
                })
            }
            _ => {
                let data = &mut self.message[..due.bytes as usize];
                stamp::write(data, number);
                send_copied(&mut self.world, end, stream, data, options)
            }
        };
        match sent {
            Ok(id) => {
                tally.on_sent(turn.session, self.world.now(), id, due.bytes);
                Ok(())
            }
            Err(why) => {
                // A hungry stream asks again; that is no refusal.
                if spec.traffic.pattern != Pattern::Saturate {
                    tally.on_refused();
                }
                Err(why)
            }
        }
    }

    /// Gives the hungry streams what they take.
    fn feed_all(&mut self, now: Duration) {
        let turns: Vec<_> = self.schedule.hungry(now).collect();
        for turn in turns {
            self.feed(turn);
        }
    }

    /// Gives a session's hungry streams what they take.
    fn feed_session(&mut self, session: u32) {
        let now = self.world.now().since(self.start);
        let turns = self.schedule.hungry_of(session, now);
        for turn in turns {
            self.feed(turn);
        }
    }

    fn feed(&mut self, turn: Turn) {
        let place = self.place(turn);
        while self.waiting[place] < self.waiting_max[usize::from(turn.stream)] {
            let due = self.schedule.peek_hungry(turn);
            if self.send(turn, due).is_err() {
                return;
            }
            self.schedule.take_hungry(turn);
            self.waiting[place] += 1;
        }
    }

    const fn place(&self, turn: Turn) -> usize {
        turn.session as usize * self.scenario.streams.len() + turn.stream as usize
    }

    fn run_until(&mut self, until: Moment) {
        loop {
            let stepped = self.world.step(until);
            for happening in self.world.take_happenings() {
                self.on_happening(happening);
            }
            if !stepped {
                break;
            }
        }
        if self.policies.is_wanting() {
            self.policies.build_wanted();
        }
    }

    fn on_happening(&mut self, happening: Happening) {
        let Happening {
            at,
            host,
            session,
            event,
        } = happening;
        let Some(index) = self.index_of(host, session) else {
            return;
        };
        match event {
            Event::Message { stream, data } => {
                self.tallies[usize::from(stream.0)].on_message(index, at, &data);
                self.world.recycle(host, data);
            }
            Event::Piece(piece) => {
                let stream = usize::from(piece.stream().0);
                self.tallies[stream].on_piece(index, at, &piece);
                if let Piece::Data { data, .. } = piece {
                    self.world.recycle(host, data);
                }
            }
            Event::Outcome {
                stream,
                message,
                outcome,
            } => self.on_outcome(index, stream, message, Fate::from(&outcome)),
            Event::Writable => self.feed_session(index),
            Event::Closed { .. } => self.sessions_closed += u32::from(host == self.server),
            _ => {}
        }
    }

    fn on_outcome(&mut self, session: u32, stream: StreamId, message: MessageId, fate: Fate) {
        let place = usize::from(stream.0);
        self.tallies[place].on_outcome(session, message, fate);
        if self.scenario.streams[place].traffic.pattern == Pattern::Saturate {
            let turn = Turn {
                session,
                stream: stream.0 as u8,
            };
            let place = self.place(turn);
            self.waiting[place] = self.waiting[place].saturating_sub(1);
            self.feed_session(session);
        }
    }

    /// Which session it is, whichever side speaks of it.
    fn index_of(&self, host: HostId, session: SessionId) -> Option<u32> {
        if host == self.server {
            return self.by_session.get(&session).copied();
        }
        // Clients were added one after the other.
        let index = host.0 - self.ends[0].client.0;
        (self.ends[index as usize].client == host).then_some(index)
    }

    /// Lets what is on its way arrive.
    fn drain(&mut self) {
        for &rival in &self.rivals {
            self.world.stop_rival(rival);
        }
        let end = self.world.now().after(DRAIN);
        while self.world.now() < end && self.tallies.iter().any(StreamTally::is_waiting) {
            self.run_until(self.world.now().after(Duration::from_millis(500)));
        }
        // The last acknowledgements cross the last messages.
        self.run_until(self.world.now().after(Duration::from_millis(500)));
    }
}

/// Virtual time between two calls of progress.
const PROGRESS_STEP: Duration = Duration::from_secs(1);

fn send_copied(
    world: &mut World,
    end: &End,
    stream: StreamId,
    data: &[u8],
    options: SendOptions,
) -> Result<MessageId, SendError> {
    world.with_endpoint(end.sender, |endpoint, now| {
        endpoint.send(now, end.session, stream, data, options)
    })
}
