//! A chat room in one process, as tasks on a tiny executor; any other does too. `cargo run -p punctual --example async_chat`

use std::error::Error;
use std::pin::Pin;
use std::time::Duration;

use futures_lite::future;
use punctual::{
    Config, Delivery, Endpoint, SendOptions, ServerKey, Session, SessionId, Stream, StreamConfig,
};

const NAMES: [&str; 3] = ["ada", "grace", "edsger"];

fn main() -> Result<(), Box<dyn Error>> {
    future::block_on(async {
        let address = "127.0.0.1:0".parse()?;
        let server = Endpoint::server(Config::default(), address, ServerKey::generate()?)?;
        let url = server.url("127.0.0.1").expect("it is a server");
        let client = Endpoint::client(Config::default())?;

        let mut guests = Vec::new();
        let mut members = Vec::new();
        for name in NAMES {
            let session = client.connect(&url).await?;
            let member = server.accept().await?;
            let out = member.open_stream(StreamConfig::new(Delivery::Reliable))?;
            members.push((member, out));
            guests.push((name, session));
        }
        // Everybody at once: the room passes on what it hears, the guests greet and listen.
        let room = serve(&members);
        let talk = async {
            for (name, session) in &guests {
                greet(name, session).await?;
            }
            for (name, session) in &guests {
                listen(name, session).await?;
            }
            Ok(())
        };
        future::or(room, talk).await
    })
}

/// Passes every message on to everybody.
async fn serve(members: &[(Session, Stream)]) -> Result<(), Box<dyn Error>> {
    loop {
        // Any of them may be next.
        let (first, rest) = members.split_first().expect("there are members");
        let heard = rest.iter().fold(wait(first), |others, it| {
            Box::pin(future::or(others, wait(it)))
        });
        let (at, message) = heard.await?;
        for (_, out) in members {
            out.send(&message, SendOptions::within(Duration::from_millis(100)))?;
        }
        println!("room: passed on a message of {at:?}");
    }
}

type Heard<'a> = Pin<Box<dyn Future<Output = Result<(SessionId, Vec<u8>), Box<dyn Error>>> + 'a>>;

fn wait((member, _): &(Session, Stream)) -> Heard<'_> {
    Box::pin(async move { Ok((member.id(), member.recv().await?.data)) })
}

async fn greet(name: &str, session: &Session) -> Result<(), Box<dyn Error>> {
    let out = session.open_stream(StreamConfig::new(Delivery::Reliable))?;
    out.send(
        format!("{name} is here"),
        SendOptions::within(Duration::from_millis(100)),
    )?;
    let (_, outcome) = out.next_outcome().await?;
    println!("{name}: {outcome:?}");
    Ok(())
}

async fn listen(name: &str, session: &Session) -> Result<(), Box<dyn Error>> {
    for _ in NAMES {
        let message = session.recv().await?;
        println!("{name} hears: {}", String::from_utf8_lossy(&message));
    }
    Ok(())
}
