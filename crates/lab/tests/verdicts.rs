//! What a sender says of its messages, against the world's clock.

mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use punctual_lab::channel::{Capacity, CapacityTrace, LossModel, PathSpec, RateSpec};
use punctual_lab::world::{HostId, Moment};
use punctual_policy::PolicyKind;
use punctual_proto::{
    Delivery, EndpointConfig, MessageId, Outcome, SendOptions, SessionId, StreamConfig, StreamId,
};
use support::{Duo, client_config, library, ms, path, server_config};

/// A client that sends to a server that may look at its network once a frame, and may send as well.
struct Scene {
    network: PathSpec,
    messages: u32,
    every: Duration,
    deadline: Duration,
    delivery: Delivery,
    frame: Duration,
    /// How long after its look the server sends, its answers as well.
    work: Option<Duration>,
    /// A message of the server's after so many of the client's.
    back_every: Option<u32>,
}

impl Scene {
    /// A message each so many milliseconds, to be there within `deadline_ms`.
    fn new(network: PathSpec, every_ms: u64, deadline_ms: u64) -> Self {
        Self {
            network,
            messages: 2000,
            every: ms(every_ms),
            deadline: ms(deadline_ms),
            delivery: Delivery::Reliable,
            frame: Duration::ZERO,
            work: None,
            back_every: None,
        }
    }

    fn play(&self) -> (Told, Duo) {
        let server = EndpointConfig {
            is_polled: self.work.is_some(),
            ..server_config()
        };
        let mut duo = Duo::connect_with(3, &self.network, server, client_config());
        let (server, at_server) = (duo.server, duo.at_server.expect("it is connected"));
        if !self.frame.is_zero() {
            duo.world.set_frame(server, self.frame, Duration::ZERO);
        }
        if let Some(work) = self.work {
            duo.world.set_work(server, work);
        }
        let from = (duo.client, duo.at_client);
        let mut sent = Sent::on(duo.open(StreamConfig::new(self.delivery)));
        for number in 0..self.messages {
            sent.send(&mut duo, from, number, self.deadline);
            duo.run(self.every / 2);
            if self.back_every.is_some_and(|every| number % every == 0) {
                let state = duo
                    .world
                    .send(server, at_server, &[7; 25], SendOptions::default());
                state.expect("there is room");
            }
            duo.run(self.every - self.every / 2);
        }
        duo.run(Duration::from_secs(5));
        (sent.compare(&duo, from.0, self.deadline), duo)
    }
}

/// When each message was sent, and which, on a stream.
struct Sent {
    stream: StreamId,
    messages: HashMap<MessageId, (u32, Moment)>,
}

/// How many messages were late, and of how many it was said wrongly.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    late: u32,
    late_said_on_time: u32,
    on_time_said_late: u32,
    on_time_said_dropped: u32,
    bound_exceeded: u32,
}

impl Sent {
    fn on(stream: StreamId) -> Self {
        Self {
            stream,
            messages: HashMap::new(),
        }
    }

    fn send(&mut self, duo: &mut Duo, from: (HostId, SessionId), number: u32, deadline: Duration) {
        let at = duo.world.now();
        let options = SendOptions::within(deadline);
        let message = duo.world.with_endpoint(from.0, |endpoint, now| {
            endpoint.send(now, from.1, self.stream, &number.to_be_bytes(), options)
        });
        self.messages
            .insert(message.expect("there is room"), (number, at));
    }

    fn compare(&self, duo: &Duo, from: HostId, deadline: Duration) -> Told {
        let arrived = duo.received.iter().filter(|(_, host, _)| *host != from);
        let arrived: HashMap<_, _> = arrived
            .map(|(at, _, data)| (data.as_slice(), *at))
            .collect();
        let mut told = Told::default();
        let outcomes = duo.outcomes.iter().zip(&duo.outcomes_of);
        for ((message, outcome), _) in outcomes.filter(|(_, host)| **host == from) {
            let Some((number, sent_at)) = self.messages.get(message) else {
                continue;
            };
            let took = arrived.get(number.to_be_bytes().as_slice());
            let took = took.map(|at| at.since(*sent_at));
            let is_late = took.is_none_or(|took| took > deadline);
            let (is_said_late, latency, bound) = match outcome {
                Outcome::OnTime { latency, bound } => (false, latency, bound),
                Outcome::Late { latency, bound, .. } => (true, latency, bound),
                _ => {
                    told.on_time_said_dropped += u32::from(!is_late);
                    continue;
                }
            };
            let took = took.expect("what is said to have come has");
            told.late += u32::from(is_late);
            told.late_said_on_time += u32::from(is_late && !is_said_late);
            told.on_time_said_late += u32::from(!is_late && is_said_late);
            told.bound_exceeded += u32::from(latency.abs_diff(took) > *bound + ms(1));
        }
        told
    }
}

/// A round trip of 40 ms, of whose answers such a share is lost.
fn with_answers_lost(share: f64) -> PathSpec {
    let mut network = path(ms(40), |_| {});
    Arc::make_mut(&mut network.backward).loss = LossModel::Uniform(share);
    network
}

/// The same, and the way out stands still for a second in every five; the way back as well, or not.
fn held(answers_lost: f64, back: bool) -> PathSpec {
    let mut network = with_answers_lost(answers_lost);
    let capacity = CapacityTrace::new((0..4000).chain([5000]).collect());
    let rate = RateSpec {
        capacity: Capacity::Trace(Arc::new(capacity.expect("it moves"))),
        queue_bytes: 1_000_000,
    };
    Arc::make_mut(&mut network.backward).rate = back.then(|| rate.clone());
    Arc::make_mut(&mut network.forward).rate = Some(rate);
    network
}

/// A regression: of packets that were held and came together, all but the newest were taken to have taken as long as ever, and 86 of 1,000 messages that
/// came up to a second late were said to be on time.   Method: the way out, or both, stand still for a second in every five; answers are lost as well.
#[test]
fn what_was_held_is_not_said_to_be_on_time() {
    // Where answers are lost, nothing tells of the first of what was held whether its answer was, or it was held.
    for (answers_lost, both, back_every, undecidable) in [
        (0.0, true, None, 0),
        (0.1, true, None, 4),
        (0.0, false, Some(1), 0),
        (0.0, false, Some(4), 0),
        (0.1, false, Some(2), 12),
    ] {
        let scene = Scene {
            back_every,
            ..Scene::new(held(answers_lost, both), 25, 150)
        };
        let (told, _) = scene.play();
        let wrong = told.late_said_on_time + told.on_time_said_late;
        assert!(told.late > 300 && wrong <= undecidable, "{told:?}");
        assert!(told.bound_exceeded <= 1, "{told:?}");
    }
}

/// A regression (of the mend of the one above): with answers lost, a tenth of what a frame loop had taken in in time was said to be late, and redundancy paid
/// for it.
#[test]
fn what_a_loop_gathers_is_not_said_to_be_late() {
    for (frame_ms, every_ms, deadline_ms) in [(33, 16, 56), (33, 8, 56), (16, 8, 39), (50, 16, 73)]
    {
        let scene = Scene {
            messages: 4000,
            frame: ms(frame_ms),
            ..Scene::new(with_answers_lost(0.1), every_ms, deadline_ms)
        };
        let (told, _) = scene.play();
        assert_eq!((told.late, told.bound_exceeded), (0, 0), "{told:?}");
        assert!(
            told.on_time_said_late <= 40,
            "{frame_ms} {every_ms}: {told:?}"
        );
    }
}

/// A regression: where both sides send, the newest packet of an acknowledgement is often one that asked for none, and then nothing was known of when the
/// others had come: messages that a loop of 33 ms had taken in after 53 were said to be there within 40, and the round trip was a quarter too short.
#[test]
fn where_both_send_the_newest_packet_tells_when_it_came() {
    let scene = Scene {
        frame: ms(33),
        back_every: Some(1),
        ..Scene::new(path(ms(40), |_| {}), 33, 40)
    };
    let (told, duo) = scene.play();
    assert_eq!(told.late, 2000);
    assert_eq!(told.late_said_on_time, 0, "{told:?}");
    let now = duo.world.local_time(duo.client);
    let client = duo.world.endpoint(duo.client);
    let report = client.path_report(now, duo.at_client).expect("it is open");
    assert!(report.rtt > ms(55), "{:?}", report.rtt);
}

/// Goal: what waits for the end of a loop's frame came at its beginning, in whatever order it came.
#[test]
fn what_is_answered_at_the_end_of_a_frame_came_at_its_beginning() {
    let mut network = path(ms(40), |_| {});
    Arc::make_mut(&mut network.forward).jitter = ms(20);
    let play = |work| {
        let scene = Scene {
            messages: 4000,
            frame: ms(33),
            work,
            ..Scene::new(network.clone(), 7, 50)
        };
        let (told, duo) = scene.play();
        (told, duo.stats())
    };
    let ((at_once, _), (at_the_end, stats)) = (play(None), play(Some(ms(8))));
    println!("{at_once:?} {at_the_end:?}");
    assert!(at_the_end.late > 1000, "{at_the_end:?}");
    assert!(at_the_end.late_said_on_time <= at_once.late_said_on_time + 5);
    let wrong = at_the_end.on_time_said_late + at_the_end.bound_exceeded;
    assert_eq!(wrong, 0, "{at_the_end:?}");
    // Its rounds wait for answers as long as they take.
    assert!(stats.packets_spurious < 200, "{stats:?}");
}

/// A regression: the last acknowledgement before a silence of more than 2^31 microseconds passed for one that had left half an hour after the message, which
/// was then said to have come with the next, and not a millisecond sooner.
#[test]
fn an_acknowledgement_of_long_ago_is_not_one_of_the_future() {
    let mut beyond = 0;
    for seed in 0..60 {
        let mut network = path(ms(40), |_| {});
        Arc::make_mut(&mut network.forward).loss = LossModel::Uniform(0.08);
        let mut duo = Duo::connect(seed, &network);
        let Some(at_server) = duo.at_server else {
            continue;
        };
        let (from, deadline) = ((duo.server, at_server), ms(60));
        for number in 1000..1100 {
            Sent::on(StreamId::DEFAULT).send(&mut duo, from, number, deadline);
            duo.run(ms(100));
        }
        duo.run(Duration::from_secs(40 * 60));
        let mut sent = Sent::on(StreamId::DEFAULT);
        for number in 0..5 {
            sent.send(&mut duo, from, number, deadline);
            duo.run(ms(30));
        }
        duo.run(Duration::from_secs(5));
        beyond += sent.compare(&duo, from.0, deadline).bound_exceeded;
    }
    assert_eq!(beyond, 0);
}

/// A regression: lost packets were forgotten after three seconds, so that after ten without answers the arrival of what was sent again counted: of 200
/// messages that had all come in time 138 were said to be late, by up to ten seconds.
#[test]
fn what_came_while_answers_were_away_is_not_late() {
    for away_s in [2, 10, 27] {
        let mut network = path(ms(60), |_| {});
        let away = (Duration::from_secs(10), Duration::from_secs(10 + away_s));
        Arc::make_mut(&mut network.backward).blackouts = vec![away];
        let scene = Scene {
            messages: 1000,
            ..Scene::new(network, 50, 150)
        };
        let (told, duo) = scene.play();
        assert_eq!(told, Told::default(), "{away_s} s");
        assert!(duo.closed.is_empty());
    }
}

/// A regression: what is sent once was given up when its round ended without an answer, and of 3,600 messages that had come in time 169 were said to be
/// dropped, since two answers in a row were lost.
#[test]
fn what_is_sent_once_waits_for_a_second_answer() {
    let mut network = with_answers_lost(0.1);
    Arc::make_mut(&mut network.forward).loss = LossModel::Uniform(0.05);
    for back_every in [None, Some(1)] {
        let scene = Scene {
            delivery: Delivery::Unreliable,
            back_every,
            ..Scene::new(network.clone(), 33, 60)
        };
        let (told, _) = scene.play();

        assert!(told.on_time_said_dropped <= 30, "{told:?}");
        let wrong = told.late_said_on_time + told.on_time_said_late + told.bound_exceeded;
        assert!(wrong <= 2, "{told:?}");
    }
}

/// A regression: of two messages that share their packets the second was settled twice when the round of the first was over, which ended its wait for a second answer:
/// it was said to be dropped, and an answer to the same packets said in time that the first had come.
#[test]
fn what_shares_its_packets_waits_for_a_second_answer_as_well() {
    let mut network = path(ms(40), |_| {});
    // What answers every sixth pair.
    let away = (0..40_u64).map(|lap| (ms(2000 + 198 * lap), ms(2025 + 198 * lap)));
    Arc::make_mut(&mut network.backward).blackouts = away.collect();
    let mut client = EndpointConfig {
        policies: library(PolicyKind::Fixed(1)),
        ..client_config()
    };
    client.thin_streams.bundling = false;
    let mut duo = Duo::connect_with(3, &network, server_config(), client);
    let (from, deadline) = ((duo.client, duo.at_client), ms(60));
    let mut sent = Sent::on(duo.open(StreamConfig::new(Delivery::Unreliable)));
    for number in (0..600).step_by(2) {
        let at = duo.world.now();
        let options = SendOptions::within(deadline);
        // They leave together, and so do their repair symbols.
        let both = duo.world.with_endpoint(from.0, |endpoint, now| {
            [number, number + 1].map(|number: u32| {
                let content = number.to_be_bytes();
                let message = endpoint.send(now, from.1, sent.stream, &content, options);
                (message.expect("there is room"), (number, at))
            })
        });
        sent.messages.extend(both);
        duo.run(ms(33));
    }
    duo.run(Duration::from_secs(5));
    let told = sent.compare(&duo, from.0, deadline);
    assert_eq!(told, Told::default());
}

/// A regression: what an acknowledgement that was kept is the first to name was said to have come last, and messages that were on time to be late. Where the side that tells has a queue.
#[test]
fn what_was_told_late_did_not_come_late() {
    static BULK: [u8; 6_000] = [7; 6_000];
    let mut network = path(ms(60), |_| {});
    Arc::make_mut(&mut network.backward).rate = Some(RateSpec::constant(256_000, 6_400));
    let mut duo = Duo::connect(3, &network);
    let (server, at_server) = (duo.server, duo.at_server.expect("it is connected"));
    let (from, deadline) = ((duo.client, duo.at_client), ms(45));
    let mut sent = Sent::on(StreamId::DEFAULT);
    for number in 0..4000 {
        // So many that the way back is never empty.
        if number % 36 == 0 {
            let bulk = duo
                .world
                .send(server, at_server, &BULK, SendOptions::default());
            bulk.expect("there is room");
        }
        sent.send(&mut duo, from, number, deadline);
        duo.run(ms(5));
    }
    duo.run(Duration::from_secs(5));
    let told = sent.compare(&duo, from.0, deadline);
    println!("{told:?} {:?}", duo.stats().packets_received);
    assert!(duo.stats().packets_received < 3_500, "nothing was kept");
    assert_eq!(told, Told::default());
}

/// A regression: of the first messages of a session it was said how long they had taken within microseconds, where both ways vary by milliseconds; and where an answer had been
/// overtaken, what left within 5 ms of another was said to have come with it.
#[test]
fn bounds_hold_from_the_first_message_on() {
    let (mut sent_in_all, mut beyond) = (0, 0);
    for seed in 0..40 {
        let network = path(ms(60), |channel| channel.jitter = ms(20));
        let mut duo = Duo::connect(seed, &network);
        let (from, deadline) = ((duo.client, duo.at_client), ms(100));
        let mut sent = Sent::on(StreamId::DEFAULT);
        for number in 0..30 {
            sent.send(&mut duo, from, number, deadline);
            duo.run(ms(if number % 3 == 0 { 14 } else { 3 }));
        }
        duo.run(Duration::from_secs(3));
        beyond += sent.compare(&duo, from.0, deadline).bound_exceeded;
        sent_in_all += 30;
    }
    println!("{beyond} of {sent_in_all}");
    assert!(beyond * 50 < sent_in_all, "{beyond} of {sent_in_all}");
}
