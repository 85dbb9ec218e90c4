//! What a message costs the protocol itself, with 1 and with 64 streams: no sockets, no ciphers, no loss; both ends in one thread.
//!
//! `cargo run --release -p punctual-lab --example message_cost`: nanoseconds for accepting, scheduling, sending, receiving and
//! acknowledging a message of 1,000 bytes, each a packet (a tenth of the time is the virtual network's). The difference between
//! the two lines is what scheduling among streams costs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_lab::channel::{PathSpec, RttSplit};
use punctual_lab::world::{LabAead, World};
use punctual_policy::{Library, PolicyKind};
use punctual_proto::{
    Delivery, EndpointConfig, Event, SendOptions, ServerConfig, ServerKey, StreamConfig, StreamId,
};

const MESSAGES: usize = 200_000;
const TICK: usize = 64;

fn main() {
    for round in 0..5 {
        for streams in [1, 64] {
            println!(
                "{round}: {streams:2} streams: {:.0} ns a message",
                cost(streams, false)
            );
        }
        println!(
            "{round}:  1 stream, deadline: {:.0} ns a message",
            cost(1, true)
        );
    }
}

/// Nanoseconds a message.
fn cost(streams: u16, has_deadline: bool) -> f64 {
    let library = Arc::new(Library::new(PolicyKind::default()));
    library.prepare(SendOptions::default().miss_target(), 1..=8);
    let key = ServerKey::from_private([3; 32]);
    let mut world = World::new(1);
    let server = world.add_server(EndpointConfig::server(
        Arc::new(LabAead),
        library.clone(),
        ServerConfig::new(key.clone()),
    ));
    let path = PathSpec::fixed("even", Duration::from_millis(10), RttSplit::EVEN);
    let client = world.add_client(EndpointConfig::client(Arc::new(LabAead), library), &path);
    let session = world
        .connect(client, server, key.public())
        .expect("a new endpoint has room");
    world.run(world.now().after(Duration::from_secs(1)), |_, _| {});
    let ids: Vec<StreamId> = world.with_endpoint(client, |endpoint, _| {
        (0..streams)
            .map(|_| {
                endpoint
                    .open_stream(session, StreamConfig::new(Delivery::Reliable))
                    .expect("few streams")
            })
            .collect()
    });
    let options = if has_deadline {
        SendOptions::within(Duration::from_millis(100))
    } else {
        SendOptions::default()
    };
    let mut received = 0;
    let started = Instant::now();
    for tick in 0..MESSAGES / TICK {
        world.with_endpoint(client, |endpoint, now| {
            for number in 0..TICK {
                let stream = ids[(tick + number) % ids.len()];
                endpoint
                    .send(now, session, stream, &[1; 1000], options)
                    .expect("there is room");
            }
        });
        let until = world.now().after(Duration::from_millis(12));
        world.run(until, |world, happening| {
            if let Event::Message { data, .. } = happening.event {
                received += 1;
                world.recycle(happening.host, data);
            }
        });
    }
    let took = started.elapsed();
    assert!(received > MESSAGES * 9 / 10, "{received}");
    took.as_secs_f64() * 1e9 / MESSAGES as f64
}
