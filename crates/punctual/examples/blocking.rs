//! Server and client in one process, with threads and blocking calls. `cargo run -p punctual --example blocking`

use std::error::Error;
use std::thread;
use std::time::Duration;

use punctual::{
    Config, Delivery, Endpoint, Outcome, SendOptions, ServerKey, Session, StreamConfig,
};

fn main() -> Result<(), Box<dyn Error>> {
    let address = "127.0.0.1:0".parse()?;
    let server = Endpoint::server(Config::default(), address, ServerKey::generate()?)?;
    let url = server.url("127.0.0.1").expect("it is a server");
    println!("serving at {url}");

    let accepting = server.clone();
    let echo = thread::spawn(move || {
        let session = accepting.accept_blocking()?;
        echo_all(&session)
    });

    let client = Endpoint::client(Config::default())?;
    let session = client.connect_blocking(&url)?;
    let stream = session.open_stream(StreamConfig::new(Delivery::Reliable))?;
    for round in 0..5 {
        let options = SendOptions::within(Duration::from_millis(100)).on_time(0.999);
        stream.send(format!("message {round}"), options)?;
        let answer = session.recv_blocking()?;
        let (message, outcome) = stream.next_outcome_blocking()?;
        let text = String::from_utf8_lossy(&answer);
        match outcome {
            Outcome::OnTime { latency, bound } => {
                println!("{message:?}: echo {text:?}, one way {latency:?} +- {bound:?}");
            }
            other => println!("{message:?}: {other:?}"),
        }
    }
    println!("session over: {}", session.finish_blocking());
    let echoed = echo.join().expect("the echo thread does not panic");
    println!(
        "the server echoed {} messages",
        echoed.map_err(|error| error.to_string())?
    );
    Ok(())
}

fn echo_all(session: &Session) -> Result<u32, Box<dyn Error + Send + Sync>> {
    let mut count = 0;
    let back = session.open_stream(StreamConfig::new(Delivery::Reliable))?;
    // Ends with the session, which is how this example ends.
    while let Ok(message) = session.recv_blocking() {
        back.send_blocking(&*message, SendOptions::default())?;
        count += 1;
    }
    Ok(count)
}
