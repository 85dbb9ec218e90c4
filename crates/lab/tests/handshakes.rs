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

/// The repetition of a first HELLO whose RETRY took almost as long met the answer to the second: two HELLOs for one, and no round trip was known.
#[test]
fn an_answer_to_a_cookie_is_waited_for_as_long_as_that_to_the_first() {
    let start = Instant::from_nanos(1_000_000_000);
    let mut client = Endpoint::new(support::client_config(), [1; 32]);
    let remote = "10.0.0.2:1".parse().unwrap();
    let server_key = support::key().public();
    let options = ConnectOptions {
        remote,
        server_key,
        token: None,
    };
    client.connect(start, &options).expect("there is room");
    let (mut buffer, mut sent) = ([0; 2048], Vec::new());
    for at in (0..600).map(ms) {
        let now = start + at;
        client.handle_timeout(now);
        while let Some(left) = client.poll_transmit(now, &mut buffer) {
            sent.push(at);
            let Ok(HandshakePacket::Hello(hello)) = HandshakePacket::decode(&buffer[..left.len])
            else {
                panic!("a HELLO")
            };
            assert_eq!(hello.cookie.is_empty(), at < ms(200), "{at:?}");
        }
        if at == ms(200) {
            let HandshakePacket::Hello(hello) = HandshakePacket::decode(&buffer).unwrap() else {
                panic!("it was one")
            };
            let retry = HandshakePacket::Retry(Retry {
                destination: hello.source,
                cookie: &[7; 16],
            });
            let mut answer = [0; 64];
            let len = retry.encode(&mut answer).expect("there is room");
            client.handle_datagram(now, remote, Ecn::NotEct, &mut answer[..len]);
            while client.poll_transmit(now, &mut buffer).is_some() {
                sent.push(at);
            }
        }
    }
    assert_eq!(sent, [0, 200, 450].map(ms));
}
