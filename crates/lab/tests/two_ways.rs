//! Both sides send: what one sends is in the way of what the other is told.

mod support;

use std::sync::Arc;
use std::time::Duration;

use punctual_lab::channel::{ChannelSpec, LossModel, PathSpec, RateSpec};
use punctual_lab::world::Moment;
use punctual_proto::{
    CloseCode, Delivery, EndpointConfig, Outcome, SendOptions, StreamConfig, StreamId,
};
use support::{Duo, client_config, ms, path, server_config};

/// A line of so many kilobit a second up and down, with queues of 200 ms.
fn line(rtt_ms: u64, up_kbit: u64, down_kbit: u64, loss: f64) -> PathSpec {
    let mut line = path(ms(rtt_ms), |channel| {
        channel.loss = LossModel::Uniform(loss);
    });
    let narrow = |channel: &mut Arc<ChannelSpec>, kbit: u64| {
        let queue_bytes = (kbit * 25) as usize;
        Arc::make_mut(channel).rate = Some(RateSpec::constant(kbit * 1000, queue_bytes as _));
    };
    narrow(&mut line.forward, up_kbit);
    narrow(&mut line.backward, down_kbit);
    line
}

/// Two sides with as much to say as there is room for, and a player's input.
struct Line {
    duo: Duo,
    input: StreamId,
}

impl Line {
    fn new(line: &PathSpec) -> Self {
        Self::seeded(1, line)
    }

    fn seeded(seed: u64, line: &PathSpec) -> Self {
        let mut duo = Duo::connect(seed, line);
        let input = duo.open(StreamConfig::new(Delivery::UnreliableSequenced));
        Self { duo, input }
    }

    /// For so long, with the input 60 times a second (and the state that answers it 30 times), or without; with a download, or an upload, or both.
    fn play(&mut self, seconds: u64, with_game: bool, up: bool, down: bool) {
        static MESSAGE: [u8; 6_000] = [7; 6_000];
        let server = (
            self.duo.server,
            self.duo.at_server.expect("it is connected"),
        );
        let client = (self.duo.client, self.duo.at_client);
        let is_busy = [up, down];
        let mut sent = [0, 0];
        for frame in 0..60 * seconds {
            for (index, (host, session)) in [client, server].into_iter().enumerate() {
                while is_busy[index] && sent[index] < self.received(index == 1, 6_000) + 40 {
                    let part = self
                        .duo
                        .world
                        .send(host, session, &MESSAGE, SendOptions::default());
                    part.expect("there is room");
                    sent[index] += 1;
                }
            }
            let options = SendOptions::within(ms(120));
            if with_game {
                self.duo.send_on(self.input, &[1; 40], options);
            }
            if with_game && frame % 2 == 0 {
                let state = self.duo.world.send(server.0, server.1, &[2; 500], options);
                state.expect("there is room");
            }
            self.duo.run(Duration::from_micros(16_667));
        }
    }

    /// So many messages to the client, each 5 ms.
    fn send_states(&mut self, count: u64) {
        let (server, at_server) = (self.duo.server, self.duo.at_server.expect("it is there"));
        for _ in 0..count {
            let options = SendOptions::default();
            let state = self.duo.world.send(server, at_server, &[2; 100], options);
            state.expect("there is room");
            self.duo.run(ms(5));
        }
    }

    /// Messages of this length that one side has received.
    fn received(&self, at_client: bool, len: usize) -> usize {
        let host = if at_client {
            self.duo.client
        } else {
            self.duo.server
        };
        let messages = self.duo.received.iter();
        messages
            .filter(|(_, at, data)| *at == host && data.len() == len)
            .count()
    }
}

/// A regression: what stood in the way of the answers was the peer's own upload, and passed for a queue of the download, which got a sixth of its line.
#[test]
fn a_download_beside_an_upload_uses_its_line() {
    for (up_kbit, down_kbit) in [(256, 2000), (512, 4000), (1000, 8000)] {
        // (Which of the two has more of the narrowest is chance.)
        let shares = (1..=8).map(|seed| {
            let mut line = Line::seeded(seed, &line(60, up_kbit, down_kbit, 0.0));
            line.play(40, false, true, true);
            let share = |at_client, kbit: u64| {
                let bits = line.received(at_client, 6_000) as f64 * 48_000.0;
                bits / (40_000.0 * kbit as f64)
            };
            (share(false, up_kbit), share(true, down_kbit))
        });
        let (ups, downs): (Vec<f64>, Vec<f64>) = shares.unzip();
        let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len() as f64;
        let (up, down) = (mean(&ups), mean(&downs));
        let told = format!("{up_kbit}/{down_kbit}: {ups:.2?} {downs:.2?}");
        println!("{told}");
        assert!(down > 0.5 && up > 0.45, "{told}");
        assert!(downs.iter().all(|down| *down > 0.3), "{told}");
    }
}

/// A regression: each packet of the state was answered for by a packet of its own that named a dozen old gaps, and these were in the way of the input: half of it was late for a tenth.
#[test]
fn answers_do_not_crowd_out_what_a_player_does() {
    let mut line = Line::new(&line(150, 200, 2000, 0.01));
    line.play(60, true, false, true);
    let stats = line.duo.stream_stats(line.input);
    println!("{stats:?}");
    let late = 1.0 - stats.on_time as f64 / stats.accepted as f64;
    assert!(late < 0.1, "{late}");
}

/// A regression: a side that had uploaded kept what it answers for as long as it lived, for the queue that had been there.
#[test]
fn a_queue_of_before_keeps_no_answers() {
    let answers = |uploads| {
        let mut line = Line::new(&line(60, 256, 8000, 0.0));
        line.play(10, false, uploads, false);
        line.duo.run(Duration::from_secs(20));
        let before = line.duo.stats().packets_sent;
        line.send_states(1000);
        line.duo.stats().packets_sent - before
    };
    let (without, with) = (answers(false), answers(true));
    assert!(with * 10 > without * 9, "{with} of {without}");
}

/// A regression: an acknowledgement that was kept when its side closed was never sent, and messages that had come were said to be dropped.
#[test]
fn who_closes_tells_what_has_come() {
    for seed in 1..=10 {
        let mut duo = Duo::connect(seed, &line(60, 256, 8000, 0.0));
        let input = duo.open(StreamConfig::new(Delivery::UnreliableSequenced));
        let mut line = Line { duo, input };
        line.play(5, false, true, false);
        line.send_states(40 + seed);
        let (client, at_client) = (line.duo.client, line.duo.at_client);
        line.duo.world.with_endpoint(client, |endpoint, now| {
            endpoint.close(now, at_client, CloseCode(0), "");
        });
        let received = line.received(true, 100);
        line.duo.run(Duration::from_secs(3));
        let outcomes = line.duo.outcomes.iter().zip(&line.duo.outcomes_of);
        let known = outcomes.filter(|((_, outcome), host)| {
            **host == line.duo.server && matches!(outcome, Outcome::OnTime { .. })
        });
        assert_eq!(known.count(), received, "{seed}");
    }
}

/// A regression: what came after the last answer that a session waited for to end was not read, and passed for received: messages that nobody was handed were said to be on time.
#[test]
fn what_comes_after_the_end_is_not_said_to_have_come() {
    for delivery in [Delivery::Reliable, Delivery::ReliableOrdered] {
        let mut duo = Duo::connect(1, &path(ms(40), |_| {}));
        let (client, at_client, server) = (duo.client, duo.at_client, duo.server);
        let at_server = duo.at_server.expect("it is connected");
        // What comes within a tenth of a second is looked at together.
        duo.world.set_frame(client, ms(100), Duration::ZERO);
        let stream = duo
            .world
            .with_endpoint(server, |endpoint, _| {
                endpoint.open_stream(at_server, StreamConfig::new(delivery))
            })
            .expect("it is open");
        duo.send(&[1; 20], SendOptions::default());
        duo.world.with_endpoint(client, |endpoint, now| {
            endpoint.finish(now, at_client, CloseCode::DONE, "");
        });
        // Before the answer leaves, with it, and behind it.
        for number in 0..10_u8 {
            duo.world
                .with_endpoint(server, |endpoint, now| {
                    endpoint.send(now, at_server, stream, &[number], SendOptions::default())
                })
                .expect("there is room");
            duo.run(ms(5));
        }
        duo.run(Duration::from_secs(2));
        let handed_on = |(_, host, _): &&(Moment, _, Vec<u8>)| *host == client;
        let handed_on = duo.received.iter().filter(handed_on).count();
        let outcomes = duo.outcomes.iter().zip(&duo.outcomes_of);
        let said = outcomes.filter(|((_, outcome), host)| {
            **host == server && matches!(outcome, Outcome::OnTime { .. })
        });
        assert!((1..10).contains(&handed_on), "{handed_on}");
        assert_eq!(said.count(), handed_on, "{delivery:?}");
    }
}

/// A regression: of what a peer's loop of 16 ms had gathered the newest packet told how long a round trip takes, which had waited least: round trips seemed to be 25 ms, and three
/// packets a second were taken for lost whose answers came after 37.
#[test]
fn a_round_trip_of_what_a_loop_gathers_is_no_shorter_than_answers_take() {
    let mut duo = Duo::connect(1, &path(ms(20), |_| {}));
    let (client, server) = (duo.client, duo.server);
    let at_server = duo.at_server.expect("it is connected");
    duo.world
        .set_frame(client, Duration::from_micros(16_667), Duration::ZERO);
    for number in 0..3000_u32 {
        if number % 3 == 0 {
            duo.send(&[1; 100], SendOptions::within(ms(60)));
        }
        let state = duo
            .world
            .send(server, at_server, &[2; 100], SendOptions::within(ms(60)));
        state.expect("there is room");
        duo.run(ms(7));
    }
    let stats = duo
        .world
        .endpoint(server)
        .session_stats(at_server)
        .expect("it is open");
    assert!(stats.packets_spurious < 10, "{stats:?}");
}

/// Of the snapshots and larger messages of a server that ticks, over 100 ms with 2 % of loss and room for anything, with as much from its client: how many there were, and how many
/// came in time.
fn snapshots(seed: u64, client_frame: Duration, tick: Duration) -> (u64, u64) {
    let lossy = path(ms(100), |channel| {
        channel.loss = LossModel::Uniform(0.02);
    });
    let polled = |config, is_polled| EndpointConfig {
        is_polled,
        ..config
    };
    let server = polled(server_config(), true);
    let client = polled(client_config(), !client_frame.is_zero());
    let mut duo = Duo::connect_with(seed, &lossy, server, client);
    let at_server = duo.at_server.expect("it is connected");
    duo.world
        .set_frame(duo.client, client_frame, Duration::ZERO);
    // What is sent in a tick leaves a millisecond after its look.
    let since_look = duo.world.now().since(Moment(0)).as_nanos() % tick.as_nanos();
    let to_look = tick - Duration::from_nanos(since_look as u64);
    duo.world.set_frame(duo.server, tick, Duration::ZERO);
    duo.run(to_look + ms(1));
    let (mut sent, mut snapshots) = (0, 0_u32);
    for step in 0..60_000_000 / tick.as_micros() as u32 {
        if tick * step < ms(50) * snapshots {
            duo.run(tick);
            continue;
        }
        let mut send = |is_server, len| {
            let options = SendOptions::within(ms(if len < 40_000 { 220 } else { 440 }));
            let (host, session) = match is_server {
                true => (duo.server, at_server),
                false => (duo.client, duo.at_client),
            };
            let message = duo.world.send(host, session, &vec![1; len], options);
            message.expect("there is room");
            sent += u64::from(is_server);
        };
        send(true, 4_000 + snapshots as usize * 7919 % 8_000);
        if snapshots % 2 == 0 {
            send(false, 4_000);
        }
        if snapshots % 10 == 0 {
            send(true, 40_000);
            send(false, 40_000);
        }
        snapshots += 1;
        duo.run(tick);
    }
    duo.run(Duration::from_secs(2));
    let stats = duo.world.endpoint(duo.server).session_stats(at_server);
    (sent, stats.expect("it is open").messages_on_time)
}

/// A regression: a server that ticks each 33 ms sends once a tick, so that nothing showed that its client gathers for a frame: what waited for the client's looks passed for a queue,
/// the losses beside it were congestion, and snapshots came up to 21 s late. A client that is woken by what comes has no frame, but a clock: what that was thought to be off by
/// never emptied, and was rivals'.
#[test]
fn snapshots_of_a_server_that_ticks_are_in_time() {
    let us = Duration::from_micros;
    for (client_frame, tick) in [(16_667, 33_000), (33_333, 16_100), (0, 16_100), (0, 33_000)] {
        let (mut sent, mut in_time) = (0, 0);
        for seed in 1..=3 {
            let (of, came) = snapshots(seed, us(client_frame), us(tick));
            (sent, in_time) = (sent + of, in_time + came);
        }
        println!("{client_frame} {tick}: {in_time} of {sent}");
        assert!(
            in_time * 1000 >= sent * 985,
            "{client_frame} {tick}: {in_time} of {sent}"
        );
    }
}
