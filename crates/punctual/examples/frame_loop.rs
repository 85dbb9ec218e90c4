//! A game's loop: no threads, one poll a frame. `cargo run -p punctual --example frame_loop`

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use punctual::{CloseCode, Config, Event, Outcome, SendOptions, ServerKey, StreamId, frame};

const FRAME: Duration = Duration::from_micros(16_667);
const FRAMES: u32 = 60;

fn main() -> Result<(), Box<dyn Error>> {
    let address = "127.0.0.1:0".parse()?;
    let mut server = frame::Endpoint::server(Config::default(), address, ServerKey::generate()?)?;
    let mut client = frame::Endpoint::client(Config::default())?;
    let session = client.connect(server.url("127.0.0.1").expect("it is a server"))?;
    let (mut is_connected, mut latencies) = (false, Vec::new());

    let start = Instant::now();
    for frame in 1..=FRAMES {
        client.poll()?;
        while let Some((_, event)) = client.next_event() {
            match event {
                Event::Connected { .. } => is_connected = true,
                Event::Outcome {
                    outcome: Outcome::OnTime { latency, bound },
                    ..
                } => {
                    latencies.push((latency, bound));
                }
                Event::Closed { why } => return Err(why.to_string().into()),
                _ => {}
            }
        }
        if is_connected {
            let position = frame.to_be_bytes();
            client.send(
                session,
                StreamId::DEFAULT,
                &position,
                SendOptions::within(Duration::from_millis(100)),
            )?;
        }
        client.flush()?;

        server.poll()?;
        while server.next_event().is_some() {}

        // The rest of the frame: simulate, draw, wait for the display.
        thread::sleep((FRAME * frame).saturating_sub(start.elapsed()));
    }
    latencies.sort();
    let count = latencies.len();
    match latencies.get(count / 2) {
        Some((median, bound)) => println!(
            "{count} inputs on time in {FRAMES} frames, median latency {median:?} +- {bound:?}"
        ),
        None => println!("no input was on time in {FRAMES} frames"),
    }
    client.close(session, CloseCode::DONE, "game over");
    client.flush()?;
    Ok(())
}
