//! One run of a scenario: a server, its clients, a link and rivals, and the messages that the schedule asks for.
//!
//! Sessions begin before anything is counted and before the link is there, so that a scenario of a thousand sessions does not begin
//! with a thousand handshakes in a queue. What comes then in order of time: messages of the schedule, streams that become hungry,
//! and marks (the measuring begins and ends, rivals stop).

mod connect;
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
use super::venue::{RivalFigures, Venue};
use super::{Due, Fate, Pattern, ProtocolCounts, Scenario, Schedule, StreamTally, Turn, stamp};
use crate::stats::Latencies;
use crate::world::{Happening, HostId, Moment, Traffic};

/// What came of one run.
pub(super) struct Single {
    pub(super) seed: u64,
    pub(super) tallies: Vec<StreamTally>,
    pub(super) result: RunResult,
    /// Of packets at the link, while measured.
    pub(super) waits: Latencies,
}

/// Runs a scenario with a seed at a venue; `go_on` hears how much of its time has gone by. Gives the venue back.
pub(super) fn run<V: Venue>(
    scenario: &Scenario,
    seed: u64,
    venue: V,
    mut go_on: impl FnMut(Duration) -> bool,
) -> Result<(Single, V), RunError<V::Error>> {
    let mut stage = Stage::new(scenario, seed, venue)?;
    stage.begin_link()?;
    stage.connect()?;
    stage.begin()?;
    stage.play(&mut go_on)?;
    stage.drain()?;
    Ok(stage.finish())
}

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

struct Stage<'a, V> {
    scenario: &'a Scenario,
    seed: u64,
    policies: Arc<Library>,
    venue: V,
    server: Server,
    ends: Vec<End>,
    schedule: Schedule,
    tallies: Vec<StreamTally>,
    start: Moment,
    marks: Vec<(Duration, Mark)>,
    hunger: Hunger,
    /// By stream: what is sent without copying.
    bulk: Vec<Option<SharedContent>>,
    message: Vec<u8>,
    before: Before,
    measured: Option<Measured>,
}

/// The side that all sessions have in common.
struct Server {
    host: HostId,
    key: [u8; 32],
    /// Its sessions, by which of the stage's ends they are.
    by_session: BTreeMap<SessionId, u32>,
    sessions_closed: u32,
}

/// Messages of hungry streams that have no outcome.
struct Hunger {
    /// By session, then stream.
    waiting: Vec<u32>,
    /// By stream: how many there may be.
    waiting_max: Vec<u32>,
}

impl Hunger {
    fn new(scenario: &Scenario) -> Self {
        let streams = scenario.streams.iter();
        let hungry = streams.filter(|stream| stream.traffic.pattern == Pattern::Saturate);
        let room = HUNGRY_SHARE / (hungry.count() as f64).max(1.0);
        let waiting_max = (scenario.streams.iter())
            .map(|stream| {
                let bytes = stream.traffic.sizes.max().max(1);
                let by_bytes = limits::SEND_QUEUE_MAX as f64 * room / f64::from(bytes);
                let by_count = limits::SEND_MESSAGES_MAX as f64 * room;
                (by_bytes.min(by_count) as u32).max(2)
            })
            .collect();
        Self {
            waiting: vec![0; scenario.sessions as usize * scenario.streams.len()],
            waiting_max,
        }
    }
}

/// What had passed when the measuring began.
#[derive(Default)]
struct Before {
    traffic: Traffic,
    rivals: RivalFigures,
    protocol: Vec<ProtocolCounts>,
}

impl<'a, V: Venue> Stage<'a, V> {
    fn new(scenario: &'a Scenario, seed: u64, mut venue: V) -> Result<Self, RunError<V::Error>> {
        let policies = Arc::new(Library::new(scenario.policy));
        for stream in scenario.streams.iter().filter(|s| s.deadline.is_some()) {
            let miss_target = send_options(stream, 0).miss_target();
            policies.prepare(miss_target, 1..=16);
        }
        let key = ServerKey::from_private([7; 32]);
        let config = EndpointConfig::server(
            venue.aead(),
            policies.clone(),
            ServerConfig::new(key.clone()),
        );
        let config = EndpointConfig {
            uplink: scenario.uplink,
            promise: scenario.promise,
            ..with_thin(config, scenario.thin)
        };
        let server = venue.add_server(config).map_err(RunError::Venue)?;
        Ok(Self {
            scenario,
            seed,
            policies,
            venue,
            server: Server {
                host: server,
                key: key.public(),
                by_session: BTreeMap::new(),
                sessions_closed: 0,
            },
            ends: Vec::new(),
            schedule: Schedule::new(scenario, seed),
            tallies: Vec::new(),
            start: Moment::default(),
            marks: Vec::new(),
            hunger: Hunger::new(scenario),
            bulk: vec![None; scenario.streams.len()],
            message: vec![0; limits::WHOLE_MAX],
            before: Before::default(),
            measured: None,
        })
    }

    /// The clock of the scenario starts.
    fn begin(&mut self) -> Result<(), RunError<V::Error>> {
        self.start = self.venue.now();
        let scenario = self.scenario;
        let (from, until) = (
            self.start.after(scenario.settle),
            self.start.after(scenario.duration),
        );
        for stream in &scenario.streams {
            let shares_link = scenario.link.is_some()
                || matches!(scenario.uplink, punctual_proto::Uplink::BytesPerSecond(_));
            let tally = StreamTally::new(stream, scenario.sessions, self.seed, from, until)
                .through_one_link(shares_link);
            self.tallies.push(tally);
        }
        for end in &self.ends {
            for (place, stream) in (0..).zip(&scenario.streams) {
                let config = stream_config(stream, place);
                self.venue
                    .with_endpoint(end.sender, |endpoint, _| {
                        endpoint.open_stream(end.session, config)
                    })
                    .expect("the session is new, and the scenario was checked");
            }
        }
        self.add_rivals()?;
        if scenario.settle > Duration::ZERO {
            self.marks.push((scenario.settle, Mark::Measure));
        } else {
            self.measure()?;
        }
        self.marks.sort_unstable();
        Ok(())
    }

    /// Sessions begin through the link: a round trip without it would be shorter than any that follow.
    fn begin_link(&mut self) -> Result<(), RunError<V::Error>> {
        let Some(bottleneck) = self.scenario.link else {
            return Ok(());
        };
        (self.venue.begin_link(bottleneck.into())).map_err(RunError::Venue)
    }

    fn add_rivals(&mut self) -> Result<(), RunError<V::Error>> {
        let Some(rivals) = self.scenario.rivals else {
            return Ok(());
        };
        let rtt = self.scenario.path.median_rtt();
        (self.venue.add_rivals(rivals, self.start, rtt)).map_err(RunError::Venue)?;
        if let Some(stop) = rivals.stop {
            self.marks.push((stop, Mark::RivalsStop));
        }
        Ok(())
    }

    /// Lets the scenario's time go by.
    fn play(&mut self, go_on: &mut impl FnMut(Duration) -> bool) -> Result<(), RunError<V::Error>> {
        let mut tell = |at| go_on(at).then_some(()).ok_or(RunError::Stopped);
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
                self.run_until(self.start.after(told))?;
                tell(told)?;
            }
            self.run_until(self.start.after(now))?;
            while self.marks.first().is_some_and(|(at, _)| *at <= now) {
                let (_, mark) = self.marks.remove(0);
                self.on_mark(mark)?;
            }
            if next.is_none() {
                break;
            }
            while self.schedule.next_at() == Some(now) {
                self.send_next()?;
            }
        }
        self.end_measuring()?;
        tell(end)
    }

    fn on_mark(&mut self, mark: Mark) -> Result<(), RunError<V::Error>> {
        match mark {
            Mark::Measure => self.measure()?,
            Mark::RivalsStop => self.venue.stop_rivals(),
        }
        Ok(())
    }

    /// The measuring begins.
    fn measure(&mut self) -> Result<(), RunError<V::Error>> {
        let mut measure = || {
            self.before.traffic = self.venue.traffic()?;
            self.before.rivals = self.venue.rivals()?;
            self.venue.restart_link()
        };
        measure().map_err(RunError::Venue)?;
        self.before.protocol = self.protocol_counts();
        Ok(())
    }

    fn send_next(&mut self) -> Result<(), RunError<V::Error>> {
        let Some((turn, due)) = self.schedule.take() else {
            return Ok(());
        };
        let traffic = &self.scenario.streams[usize::from(turn.stream)].traffic;
        let _ = self.send(turn, due);
        if traffic.has_own_packets {
            let now = self.venue.now();
            while self.venue.step(now).map_err(RunError::Venue)? {}
        }
        Ok(())
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
                self.venue.with_endpoint(end.sender, |endpoint, now| {
                    endpoint.send_shared(now, end.session, stream, content, options)
                })
            }
            _ => {
                let data = &mut self.message[..due.bytes as usize];
                stamp::write(data, number);
                send_copied(&mut self.venue, end, stream, data, options)
            }
        };
        match sent {
            Ok(id) => {
                tally.on_sent(turn.session, self.venue.now(), id, due.bytes);
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
        let now = self.venue.now().since(self.start);
        let turns = self.schedule.hungry_of(session, now);
        for turn in turns {
            self.feed(turn);
        }
    }

    fn feed(&mut self, turn: Turn) {
        let place = self.place(turn);
        while self.hunger.waiting[place] < self.hunger.waiting_max[usize::from(turn.stream)] {
            let due = self.schedule.peek_hungry(turn);
            if self.send(turn, due).is_err() {
                return;
            }
            self.schedule.take_hungry(turn);
            self.hunger.waiting[place] += 1;
        }
    }

    const fn place(&self, turn: Turn) -> usize {
        turn.session as usize * self.scenario.streams.len() + turn.stream as usize
    }

    fn run_until(&mut self, until: Moment) -> Result<(), RunError<V::Error>> {
        loop {
            let stepped = self.venue.step(until).map_err(RunError::Venue)?;
            for happening in self.venue.take_happenings() {
                self.on_happening(happening);
            }
            if !stepped {
                break;
            }
        }
        self.venue.build(&self.policies);
        Ok(())
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
                self.venue.recycle(host, data);
            }
            Event::Piece(piece) => {
                let stream = usize::from(piece.stream().0);
                self.tallies[stream].on_piece(index, at, &piece);
                if let Piece::Data { data, .. } = piece {
                    self.venue.recycle(host, data);
                }
            }
            Event::Outcome {
                stream,
                message,
                outcome,
            } => self.on_outcome(index, stream, message, Fate::from(&outcome)),
            Event::Writable => self.feed_session(index),
            Event::Closed { .. } => {
                self.server.sessions_closed += u32::from(host == self.server.host);
            }
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
            let waiting = &mut self.hunger.waiting[place];
            *waiting = waiting.saturating_sub(1);
            self.feed_session(session);
        }
    }

    /// Which session it is, whichever side speaks of it.
    fn index_of(&self, host: HostId, session: SessionId) -> Option<u32> {
        if host == self.server.host {
            return self.server.by_session.get(&session).copied();
        }
        // Clients were added one after the other.
        let index = host.0 - self.ends[0].client.0;
        (self.ends[index as usize].client == host).then_some(index)
    }

    /// Lets what is on its way arrive.
    fn drain(&mut self) -> Result<(), RunError<V::Error>> {
        self.venue.stop_rivals();
        let end = self.venue.now().after(DRAIN);
        while self.venue.now() < end && self.tallies.iter().any(StreamTally::is_waiting) {
            self.run_until(self.venue.now().after(Duration::from_millis(500)))?;
        }
        // The last acknowledgements cross the last messages.
        self.run_until(self.venue.now().after(Duration::from_millis(500)))
    }
}

/// Time between two calls of progress.
const PROGRESS_STEP: Duration = Duration::from_secs(1);

fn send_copied(
    venue: &mut impl Venue,
    end: &End,
    stream: StreamId,
    data: &[u8],
    options: SendOptions,
) -> Result<MessageId, SendError> {
    venue.with_endpoint(end.sender, |endpoint, now| {
        endpoint.send(now, end.session, stream, data, options)
    })
}
