//! How a client asks for a session, and what others can make it do meanwhile.

mod support;

use punctual_proto::wire::{HandshakePacket, Retry};
use punctual_proto::{ConnectOptions, Ecn, Endpoint, Instant};
use support::ms;

/// Who guesses a client's port and connection id had it send its HELLO twice as often as it does by itself, besides an answer to each of four RETRYs.
#[test]
fn a_forged_retry_does_not_bring_the_next_hello_forward() {
    let start = Instant::from_nanos(1_000_000_000);
    let sent_at = |forges: bool| {
        let mut client = Endpoint::new(support::client_config(), [1; 32]);
        let options = ConnectOptions {
            remote: "10.0.0.2:1".parse().unwrap(),
            server_key: support::key().public(),
            token: None,
        };
        client.connect(start, &options).expect("there is room");
        let (mut buffer, mut cookies) = ([0; 2048], 0_u32);
        let (mut sent, mut answered) = (Vec::new(), 0_usize);
        for at in (0..4000).map(ms) {
            let now = start + at;
            client.handle_timeout(now);
            let mut was_answer = false;
            while let Some(hello) = client.poll_transmit(now, &mut buffer) {
                let packet = HandshakePacket::decode(&buffer[..hello.len]);
                let Ok(HandshakePacket::Hello(hello)) = packet else {
                    panic!("a HELLO")
                };
                match was_answer {
                    true => answered += 1,
                    false => sent.push(at),
                }
                let id = hello.source;
                if forges {
                    cookies += 1;
                    let cookie = cookies.to_be_bytes();
                    let mut retry = [0; 64];
                    let packet = HandshakePacket::Retry(Retry {
                        destination: id,
                        cookie: &cookie,
                    });
                    let len = packet.encode(&mut retry).expect("there is room");
                    client.handle_datagram(now, options.remote, Ecn::NotEct, &mut retry[..len]);
                    was_answer = true;
                }
            }
        }
        (sent, answered)
    };
    let (honest, _) = sent_at(false);
    let (attacked, answered) = sent_at(true);
    assert_eq!(honest, [0, 250, 750, 1750, 2750, 3750].map(ms));
    assert_eq!(attacked, honest);
    assert!(answered <= 4 * honest.len(), "{answered}");
}
