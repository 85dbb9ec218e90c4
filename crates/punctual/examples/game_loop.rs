//! A small game on one machine: a server and four players, polled once a frame, for four seconds.
//! `cargo run --release -p punctual --example game_loop`
//!
//! Four kinds of things travel, each on a stream that suits it: positions (the latest counts), shots (in time, and nearly all of
//! them), chat (in order), and a map (in the background). At the end it prints what each stream promised and what it achieved.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use punctual::{
    Config, Delivery, Event, Message, MessageId, Outcome, Piece, Receive, SendError, SendOptions,
    ServerKey, ServerUrl, SessionId, SharedContent, StreamConfig, StreamId, StreamStats, frame,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const FRAME: Duration = Duration::from_micros(16_667); // 60 a second
const FRAMES: u32 = 240;
const PLAYERS: u16 = 4;
const ENTITIES: u16 = 64; // The first ones are the players.
const MAP_BYTES: usize = 2_000_000;

/// Streams are numbered alike on both sides, so that a message's stream says what it is.
const POSITIONS: StreamId = StreamId(0);
const SHOTS: StreamId = StreamId(1);
const CHAT: StreamId = StreamId(2);
const MAP: StreamId = StreamId(3);
const NAMES: [&str; 4] = ["positions", "shots", "chat", "map"];

fn open_streams(endpoint: &mut frame::Endpoint, session: SessionId) -> Result<()> {
    for (stream, delivery, weight) in [
        (POSITIONS, Delivery::Latest, 20),
        (SHOTS, Delivery::Reliable, 20),
        (CHAT, Delivery::ReliableOrdered, 5),
        (MAP, Delivery::Reliable, 1),
    ] {
        let config = StreamConfig::new(delivery).weight(weight);
        endpoint.open_stream(session, config.number(stream.0))?;
    }
    Ok(())
}

/// A shot that comes later than this is of no use: 999 of 1,000 shall make it, and the others are given up.
fn shot() -> SendOptions {
    let deadline = SendOptions::within(Duration::from_millis(100));
    deadline.on_time(0.999).drop_when_late()
}

/// The game's server: it knows where everything is, and passes on what players do.
struct Server {
    endpoint: frame::Endpoint,
    players: Vec<SessionId>,
    positions: Vec<[f32; 2]>,
    map: SharedContent,
}

impl Server {
    fn start() -> Result<Self> {
        let address = "127.0.0.1:0".parse()?;
        Ok(Self {
            endpoint: frame::Endpoint::server(Config::default(), address, ServerKey::generate()?)?,
            players: Vec::new(),
            positions: vec![[0.0; 2]; usize::from(ENTITIES)],
            map: Arc::new(vec![7; MAP_BYTES]),
        })
    }

    fn frame(&mut self, number: u32, report: &mut Report) -> Result<()> {
        // At the beginning: what has come.
        self.endpoint.poll()?;
        while let Some((player, event)) = self.endpoint.next_event() {
            match event {
                Event::Connected { .. } => {
                    open_streams(&mut self.endpoint, player)?;
                    // One copy of it in memory, however many players load it.
                    let map = Arc::clone(&self.map);
                    self.endpoint
                        .send_shared(player, MAP, map, SendOptions::default())?;
                    self.players.push(player);
                }
                Event::Message(message) => self.on_message(&message)?,
                Event::Closed { .. } => self.players.retain(|other| *other != player),
                event => report.note(&event),
            }
        }
        // The world goes on.
        let beasts = self.positions.iter_mut().enumerate();
        for (entity, position) in beasts.skip(usize::from(PLAYERS)) {
            let angle = number as f32 / 60.0 + entity as f32;
            *position = [angle.cos() * entity as f32, angle.sin() * entity as f32];
        }
        // At the end: who is where. A position that has not arrived when the next one of its entity is sent gives way to it.
        for &player in &self.players {
            for (entity, position) in (0..).zip(&self.positions) {
                let importance = if entity < PLAYERS { 200 } else { 100 };
                let options = SendOptions::default().key(entity.into());
                let position = encode_position(entity, *position);
                let options = options.importance(importance);
                reach(self.endpoint.send(player, POSITIONS, &position, options))?;
            }
        }
        Ok(self.endpoint.flush()?)
    }

    fn on_message(&mut self, message: &Message) -> Result<()> {
        let options = match message.stream {
            POSITIONS => {
                let (player, position) = decode_position(message).ok_or("not a position")?;
                self.positions[usize::from(player % PLAYERS)] = position;
                return Ok(());
            }
            SHOTS => shot(),
            _ => SendOptions::default(),
        };
        for &player in &self.players {
            reach((self.endpoint).send(player, message.stream, message, options))?;
        }
        Ok(())
    }
}

/// One player does not end the game for the others: of one who has left the next event tells, and one who has not been heard of for seconds misses this.
fn reach(sent: std::result::Result<MessageId, SendError>) -> Result<()> {
    match sent {
        Ok(_) | Err(SendError::Closed { .. } | SendError::Full { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A player's machine.
struct Player {
    endpoint: frame::Endpoint,
    session: SessionId,
    number: u16,
    is_connected: bool,
    positions: BTreeMap<u16, [f32; 2]>,
    heard: u32,
    map_loaded: usize,
}

impl Player {
    fn connect(url: &ServerUrl, number: u16) -> Result<Self> {
        // The map comes in pieces, for a progress bar.
        let receive = Receive::Pieces;
        let mut endpoint = frame::Endpoint::client(Config {
            receive,
            ..Config::default()
        })?;
        Ok(Self {
            session: endpoint.connect(url)?,
            endpoint,
            number,
            is_connected: false,
            positions: BTreeMap::new(),
            heard: 0,
            map_loaded: 0,
        })
    }

    fn frame(&mut self, number: u32, report: &mut Report) -> Result<()> {
        self.endpoint.poll()?;
        while let Some((session, event)) = self.endpoint.next_event() {
            match event {
                Event::Connected { .. } => {
                    open_streams(&mut self.endpoint, session)?;
                    self.is_connected = true;
                }
                Event::Message(message) if message.stream == POSITIONS => {
                    self.positions.extend(decode_position(&message));
                }
                Event::Message(_) => self.heard += 1,
                Event::Piece(Piece::Data { offset, data, .. }) => {
                    self.map_loaded = offset + data.len();
                    self.endpoint.recycle(data);
                }
                Event::Closed { why } => return Err(why.to_string().into()),
                event => report.note(&event),
            }
        }
        if self.is_connected {
            self.act(number)?;
        }
        Ok(self.endpoint.flush()?)
    }

    /// Moves in every frame, shoots now and then, talks sometimes.
    fn act(&mut self, number: u32) -> Result<()> {
        let (endpoint, session) = (&mut self.endpoint, self.session);
        let here = encode_position(self.number, [number as f32, self.number.into()]);
        endpoint.send(session, POSITIONS, &here, SendOptions::default())?;
        let beat = number + u32::from(self.number) * 3;
        if beat.is_multiple_of(12) {
            endpoint.send(session, SHOTS, &here, shot())?;
        }
        if beat.is_multiple_of(60) {
            let line = b"has anybody seen my rocket?";
            endpoint.send(session, CHAT, line, SendOptions::default())?;
        }
        Ok(())
    }
}

fn encode_position(entity: u16, [x, y]: [f32; 2]) -> Vec<u8> {
    [
        &entity.to_le_bytes()[..],
        &x.to_le_bytes(),
        &y.to_le_bytes(),
    ]
    .concat()
}

/// What comes from elsewhere may be anything.
fn decode_position(bytes: &[u8]) -> Option<(u16, [f32; 2])> {
    let (entity, rest) = bytes.split_first_chunk()?;
    let (x, y) = rest.split_first_chunk()?;
    let position = [
        f32::from_le_bytes(*x),
        f32::from_le_bytes(*y.first_chunk()?),
    ];
    Some((u16::from_le_bytes(*entity), position))
}

/// Latencies of each stream, from the outcomes of its messages.
#[derive(Default)]
struct Report([Vec<Duration>; 4]);

impl Report {
    fn note(&mut self, event: &Event) {
        if let Event::Outcome {
            stream, outcome, ..
        } = event
            && let Outcome::OnTime { latency, .. } | Outcome::Late { latency, .. } = outcome
        {
            self.0[usize::from(stream.0)].push(*latency);
        }
    }

    fn print(&mut self, who: &str, stats: impl Fn(StreamId) -> Vec<StreamStats>) {
        for (at, (name, latencies)) in (0..).zip(NAMES.iter().zip(&mut self.0)) {
            let stats = stats(StreamId(at));
            let sum = |count: fn(&StreamStats) -> u64| stats.iter().map(count).sum::<u64>();
            latencies.sort();
            let Some(median) = latencies.get(latencies.len() / 2) else {
                continue;
            };
            let percent = |part: u64, of: u64| 100.0 * part as f64 / of as f64;
            let (kept, promised) = (sum(|it| it.kept), sum(|it| it.promised));
            let promise = match promised {
                0 => "-".to_owned(),
                _ => format!("{:.1} of 99.9 %", percent(kept, promised)),
            };
            let (symbols, needed) = (sum(|it| it.symbols_sent), sum(|it| it.source_symbols));
            let (sent, superseded) = (sum(|it| it.accepted), sum(|it| it.superseded));
            let (median, overhead) = (
                median.as_secs_f64() * 1e3,
                (percent(symbols, needed) - 100.0).max(0.0),
            );
            println!(
                "{who:<8} {name:<9} {sent:>6} {promise:>15} {median:>8.1} {superseded:>11} {overhead:>7.1} %"
            );
        }
    }
}

fn main() -> Result<()> {
    let mut server = Server::start()?;
    let url = server.endpoint.url("127.0.0.1").expect("it is a server");
    let players = (0..PLAYERS).map(|number| Player::connect(&url, number));
    let mut players = players.collect::<Result<Vec<Player>>>()?;
    let (mut ours, mut theirs) = (Report::default(), Report::default());
    let start = Instant::now();
    for number in 1..=FRAMES {
        for player in &mut players {
            // The last one plays on a machine that manages every third frame.
            if player.number < PLAYERS - 1 || number.is_multiple_of(3) {
                player.frame(number, &mut theirs)?;
            }
        }
        server.frame(number, &mut ours)?;
        // The rest of the frame: draw, and wait for the display.
        thread::sleep((FRAME * number).saturating_sub(start.elapsed()));
    }
    println!(
        "{:<18} {:>6} {:>15} {:>8} superseded  overhead",
        "", "sent", "kept", "p50, ms"
    );
    let (endpoint, sessions) = (&server.endpoint, &server.players);
    let of = |stream| move |session: &SessionId| endpoint.stream_stats(*session, stream);
    ours.print("server", |stream| {
        sessions.iter().filter_map(of(stream)).collect()
    });
    let of = |stream| move |it: &Player| it.endpoint.stream_stats(it.session, stream);
    theirs.print("players", |stream| {
        players.iter().filter_map(of(stream)).collect()
    });
    for Player {
        number,
        positions,
        heard,
        map_loaded,
        ..
    } in &players
    {
        let (entities, map) = (positions.len(), map_loaded * 100 / MAP_BYTES);
        println!(
            "player {number} sees {entities} entities, heard {heard} shots and lines, has {map} % of the map"
        );
    }
    Ok(())
}
