//! What a server makes of a client that knows how to seal its first message, and of bytes that are none.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use punctual_lab::world::LabAead;
use punctual_policy::{Library, PolicyKind};
use punctual_proto::vectors::{decode_hello_payload, seal_hello, token_bytes};
use punctual_proto::wire::{ConnectionId, HandshakePacket};
use punctual_proto::{
    Ecn, Endpoint, EndpointConfig, Instant, ServerConfig, ServerKey, TokenClaims, TokenKey,
};

const SOURCE: ConnectionId = ConnectionId(5);
const TOKEN_KEY: TokenKey = TokenKey([8; 32]);
/// Longest payload that a HELLO with a cookie holds.
const PAYLOAD_MAX: usize = 1100;

fn server(choices: u8) -> Endpoint {
    static POLICIES: OnceLock<Arc<Library>> = OnceLock::new();
    let policies = POLICIES.get_or_init(|| Arc::new(Library::new(PolicyKind::Retransmit)));
    let server = ServerConfig {
        token_key: (choices & 2 != 0).then_some(TOKEN_KEY),
        cookie_threshold: if choices & 4 != 0 { 0 } else { 64 },
        ..ServerConfig::new(key())
    };
    let config = EndpointConfig::server(Arc::new(LabAead), Arc::clone(policies), server);
    Endpoint::new(config, [9; 32])
}

fn key() -> ServerKey {
    ServerKey::from_private([7; 32])
}

/// What the client says: `content`, or some of it with a token in which the rest is.
fn payload(choices: u8, content: &[u8]) -> Vec<u8> {
    let content = &content[..content.len().min(PAYLOAD_MAX)];
    if choices & 8 == 0 {
        return content.to_vec();
    }
    let (said, identity) = content.split_at(content.len().min(7));
    let claims = TokenClaims {
        identity: identity[..identity.len().min(255)].to_vec(),
        expires_unix_s: if choices & 16 != 0 { 0 } else { u64::MAX },
        servers: if choices & 32 != 0 {
            vec![[1; 32]]
        } else {
            Vec::new()
        },
        psk: [3; 32],
    };
    let token = claims.seal(&LabAead, &TOKEN_KEY, [4; 32]);
    let token = token.expect("it is within its bounds");
    let token = token_bytes(&token.sealed);
    let len = u16::try_from(token.len()).expect("a token is short");
    [said, &len.to_be_bytes(), token].concat()
}

/// The answer to a datagram: one at most, and none larger than it.
fn answer(server: &mut Endpoint, now: Instant, datagram: &[u8]) -> Option<Vec<u8>> {
    let from = SocketAddr::from(([10, 0, 0, 1], 1000));
    let mut datagram = datagram.to_vec();
    server.handle_datagram(now, from, Ecn::NotEct, &mut datagram);
    let mut buffer = [0; 2048];
    let answer = server.poll_transmit(now, &mut buffer)?;
    assert!(answer.len <= datagram.len() && answer.to == from);
    let answer = buffer[..answer.len].to_vec();
    assert!(server.poll_transmit(now, &mut buffer).is_none());
    Some(answer)
}

/// A server's answer to what a client says first. The first byte chooses how.
pub fn hello(data: &[u8]) {
    let Some((&choices, content)) = data.split_first() else {
        return;
    };
    let (mut server, now) = (server(choices), Instant::from_micros(1_000_000));
    if choices & 1 != 0 {
        let _ = answer(&mut server, now, content);
        return;
    }
    let payload = payload(choices, content);
    let hello = |cookie: &[u8]| {
        let sealed = seal_hello(&key().public(), SOURCE, cookie, &payload);
        sealed.expect("the payload is short enough")
    };
    let mut last = hello(&[]);
    let mut got = answer(&mut server, now, &last).expect("what opens is answered");
    let asked = match HandshakePacket::decode(&got) {
        Ok(HandshakePacket::Retry(retry)) => Some(retry.cookie.to_vec()),
        _ => None,
    };
    assert_eq!(asked.is_some(), choices & 4 != 0);
    if let Some(cookie) = asked {
        assert_eq!(server.stats().handshakes, 0);
        last = hello(&cookie);
        got = answer(&mut server, now, &last).expect("what opens is answered");
    }
    match HandshakePacket::decode(&got) {
        Ok(HandshakePacket::Accept(_)) => {
            let (offered, ..) = decode_hello_payload(&payload).expect("it was understood");
            assert_ne!(offered, 0);
            assert_eq!(server.sessions(), 1);
            assert_eq!(answer(&mut server, now, &last), Some(got), "it is repeated");
        }
        Ok(HandshakePacket::Refuse(_)) => assert_eq!(server.sessions(), 0),
        other => panic!("{other:?}"),
    }
}
