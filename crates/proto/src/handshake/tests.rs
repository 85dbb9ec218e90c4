//! Both ends of a handshake against each other, honest and not.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::*;
use crate::crypto::Algorithm;
use crate::crypto::tests::TestAead;
use crate::limits::TOKEN_MAX;
use crate::wire::{ConnectionId, HandshakePacket, Refusal, Retry, Writer};

const NOW: u64 = 1_000_000;
const AEAD: TestAead = TestAead(Algorithm::ChaCha20Poly1305);

struct Server {
    key: ServerKey,
    token_key: Option<TokenKey>,
    entropy: Entropy,
}

impl Server {
    fn new(token_key: Option<TokenKey>) -> Self {
        Self {
            key: ServerKey::from_private([3; 32]),
            token_key,
            entropy: Entropy::from_seed([4; 32]),
        }
    }

    fn answer(&mut self, hello: &[u8]) -> Result<(Established, Vec<u8>), Refusal> {
        let Ok(HandshakePacket::Hello(hello)) = HandshakePacket::decode(hello) else {
            panic!("these tests send well-formed HELLOs");
        };
        let admission = Admission {
            aead: &AEAD,
            key: &self.key,
            token_key: self.token_key.as_ref(),
            now_unix_s: NOW,
        };
        let handshake = read_hello(&mut self.entropy, &admission, &hello)?;
        Ok(handshake
            .accept(ConnectionId(77), &parameters(), &[5; 16])
            .expect("an ACCEPT fits"))
    }
}

fn parameters() -> Parameters {
    Parameters {
        datagram_max: 1400,
        idle_timeout: Duration::from_secs(20),
    }
}

fn client(server_key: [u8; 32], token: Option<&ConnectToken>, seed: u8) -> ClientHandshake {
    let mut entropy = Entropy::from_seed([seed; 32]);
    ClientHandshake::new(
        &mut entropy,
        ConnectionId(5),
        &server_key,
        token,
        3,
        &parameters(),
    )
    .expect("the key has 32 bytes")
}

fn hello(client: &ClientHandshake) -> Vec<u8> {
    let mut hello = vec![0; 1200];
    assert_eq!(client.encode_hello(&mut hello), Some(1200));
    hello
}

fn finish(client: &mut ClientHandshake, accept: &[u8]) -> Option<Established> {
    let Ok(HandshakePacket::Accept(accept)) = HandshakePacket::decode(accept) else {
        return None;
    };
    client.handle_accept(&accept)
}

fn claims() -> TokenClaims {
    TokenClaims {
        identity: b"player".to_vec(),
        expires_unix_s: NOW + 1,
        servers: vec![ServerKey::from_private([3; 32]).public()],
        psk: [6; 32],
    }
}

const TOKEN_KEY: TokenKey = TokenKey([8; 32]);

fn sealed(claims: &TokenClaims) -> ConnectToken {
    claims
        .seal(&AEAD, &TOKEN_KEY, [9; 32])
        .expect("within bounds")
}

fn refusal_of(token: Option<&ConnectToken>) -> Option<Refusal> {
    let mut server = Server::new(Some(TOKEN_KEY));
    let client = client(server.key.public(), token, 1);
    server.answer(&hello(&client)).err()
}

#[test]
fn both_sides_agree() {
    for token in [None, Some(sealed(&claims()))] {
        let mut server = Server::new(token.as_ref().map(|_| TOKEN_KEY));
        let mut client = client(server.key.public(), token.as_ref(), 1);
        let (at_server, accept) = server.answer(&hello(&client)).expect("it is welcome");
        let at_client = finish(&mut client, &accept).expect("it is the server");
        assert!(at_client.seal == at_server.open && at_client.open == at_server.seal);
        assert!(at_client.seal != at_client.open);
        assert_eq!(
            (at_client.peer, at_server.peer),
            (ConnectionId(77), ConnectionId(5))
        );
        assert_eq!(
            at_client.algorithm,
            Algorithm::ChaCha20Poly1305,
            "the server's preference"
        );
        assert_eq!(at_client.parameters, parameters());
        assert_eq!(at_server.parameters, parameters());
        assert_eq!(at_client.gone_token, Some([5; 16]));
        assert!(finish(&mut client, &accept).is_none(), "once is enough");
    }
}

#[test]
fn a_client_with_another_servers_key_is_refused() {
    let mut server = Server::new(None);
    let client = client(ServerKey::from_private([99; 32]).public(), None, 1);
    assert_eq!(server.answer(&hello(&client)).err(), Some(Refusal::Key));
}

#[test]
fn another_connection_id_or_version_in_the_clear_does_not_open() {
    let mut server = Server::new(None);
    let mut hello = hello(&client(server.key.public(), None, 1));
    hello[8] ^= 1;
    assert_eq!(
        server.answer(&hello).err(),
        Some(Refusal::Key),
        "the id is in the prologue"
    );
}

#[test]
fn who_does_not_know_the_psk_cannot_use_a_token() {
    let mut stolen = sealed(&claims());
    stolen.psk = [0; 32];
    let mut server = Server::new(Some(TOKEN_KEY));
    let mut client = client(server.key.public(), Some(&stolen), 1);
    let (_, accept) = server
        .answer(&hello(&client))
        .expect("the server cannot tell yet");
    assert!(finish(&mut client, &accept).is_none());
}

#[test]
fn every_changed_bit_of_either_message_is_noticed() {
    let mut server = Server::new(None);
    let honest = client(server.key.public(), None, 1);
    let hello = hello(&honest);
    let noise = 9 + 1 + 2;
    let Ok(HandshakePacket::Hello(packet)) = HandshakePacket::decode(&hello) else {
        panic!("it is one")
    };
    for at in noise..noise + packet.noise.len() {
        let mut changed = hello.clone();
        changed[at] ^= 0x20;
        assert_eq!(
            server.answer(&changed).err(),
            Some(Refusal::Key),
            "byte {at}"
        );
    }
    let (_, accept) = server.answer(&hello).expect("it is welcome");
    // A client goes on waiting after forged answers, and takes the true one.
    let mut client = client(server.key.public(), None, 1);
    for at in 11..accept.len() {
        let mut changed = accept.clone();
        changed[at] ^= 0x20;
        assert!(finish(&mut client, &changed).is_none(), "byte {at}");
    }
    for len in 11..accept.len() {
        let mut short = accept[..len].to_vec();
        short[9..11].copy_from_slice(&((len - 11) as u16).to_be_bytes());
        assert!(finish(&mut client, &short).is_none());
    }
    assert!(finish(&mut client, &accept).is_some());
}

/// A HELLO sent again by an observer makes a session that nobody can use, under keys that were never used before.
#[test]
fn nonce_reuse_by_replayed_hello() {
    let mut server = Server::new(None);
    let mut client = client(server.key.public(), None, 1);
    let hello = hello(&client);
    let (first, first_accept) = server.answer(&hello).expect("it is welcome");
    let (second, second_accept) = server.answer(&hello).expect("it is as good as the first");
    assert!(first.seal != second.seal && first.open != second.open);
    assert_ne!(first_accept, second_accept);
    let taken = finish(&mut client, &second_accept).expect("either answer is right");
    assert!(taken.seal == second.open);
    assert!(finish(&mut client, &first_accept).is_none());
}

/// Two clients, or one that starts again, never share keys, even with one token.
#[test]
fn nonce_reuse_by_reused_token() {
    let token = sealed(&claims());
    let mut server = Server::new(Some(TOKEN_KEY));
    let mut secrets = Vec::new();
    for seed in 1..4 {
        let mut client = client(server.key.public(), Some(&token), seed);
        let (_, accept) = server
            .answer(&hello(&client))
            .expect("tokens are not used up");
        let established = finish(&mut client, &accept).expect("it is the server");
        secrets.extend([established.seal.0, established.open.0]);
    }
    secrets.sort_unstable();
    secrets.dedup();
    assert_eq!(secrets.len(), 6);
}

#[test]
fn tokens_are_judged() {
    assert_eq!(refusal_of(None), Some(Refusal::TokenMissing));
    assert_eq!(refusal_of(Some(&sealed(&claims()))), None);
    // From that second on: PROTOCOL.md#tokens.
    let expired = TokenClaims {
        expires_unix_s: NOW,
        ..claims()
    };
    assert_eq!(
        refusal_of(Some(&sealed(&expired))),
        Some(Refusal::TokenExpired)
    );
    let other_server = TokenClaims {
        servers: vec![[1; 32]],
        ..claims()
    };
    assert_eq!(
        refusal_of(Some(&sealed(&other_server))),
        Some(Refusal::TokenInvalid)
    );
    let any_server = TokenClaims {
        servers: Vec::new(),
        ..claims()
    };
    assert_eq!(refusal_of(Some(&sealed(&any_server))), None);
    let other_key = claims()
        .seal(&AEAD, &TokenKey([1; 32]), [9; 32])
        .expect("within bounds");
    assert_eq!(refusal_of(Some(&other_key)), Some(Refusal::TokenInvalid));
    let token = sealed(&claims());
    for at in 0..token.sealed.0.len() {
        let mut changed = token.clone();
        changed.sealed.0[at] ^= 1;
        assert_eq!(
            refusal_of(Some(&changed)),
            Some(Refusal::TokenInvalid),
            "byte {at}"
        );
    }
    for len in 1..token.sealed.0.len() {
        let mut short = token.clone();
        short.sealed.0.truncate(len);
        assert_eq!(
            refusal_of(Some(&short)),
            Some(Refusal::TokenInvalid),
            "{len} bytes"
        );
    }
}

#[test]
fn a_token_for_a_server_that_takes_none_is_refused_and_not_left_to_time_out() {
    let mut server = Server::new(None);
    let client = client(server.key.public(), Some(&sealed(&claims())), 1);
    assert_eq!(
        server.answer(&hello(&client)).err(),
        Some(Refusal::TokenInvalid)
    );
}

#[test]
fn oversized_tokens() {
    let long = TokenClaims {
        identity: vec![0; 256],
        ..claims()
    };
    assert_eq!(
        long.seal(&AEAD, &TOKEN_KEY, [9; 32]).err(),
        Some(TokenError::TooLarge)
    );
    let many = TokenClaims {
        servers: vec![[0; 32]; 9],
        ..claims()
    };
    assert_eq!(
        many.seal(&AEAD, &TOKEN_KEY, [9; 32]).err(),
        Some(TokenError::TooLarge)
    );
    let largest = TokenClaims {
        identity: vec![1; 255],
        servers: vec![ServerKey::from_private([3; 32]).public(); 8],
        ..claims()
    };
    let token = sealed(&largest);
    assert!(token.sealed.0.len() <= TOKEN_MAX);
    assert_eq!(
        refusal_of(Some(&token)),
        None,
        "the largest token fits a HELLO"
    );
    let bytes = token.to_bytes();
    let read = ConnectToken::from_bytes(&bytes).expect("it was written so");
    assert!(read.psk == token.psk && read.sealed == token.sealed);
    assert!(ConnectToken::from_bytes(&[0; 32 + 47]).is_err());
    assert!(ConnectToken::from_bytes(&[0; 32 + TOKEN_MAX + 1]).is_err());
    let opened = TokenClaims::open(&AEAD, &TOKEN_KEY, &[0; 32], NOW, &[0; TOKEN_MAX + 1]);
    assert_eq!(opened, Err(TokenError::Invalid));
    // A HELLO that carries the most of everything.
    let server = Server::new(Some(TOKEN_KEY));
    let mut client = client(
        server.key.public(),
        Some(&ConnectToken {
            sealed: SealedToken(vec![0; TOKEN_MAX]),
            psk: [0; 32],
        }),
        1,
    );
    assert!(client.handle_retry(&Retry {
        destination: ConnectionId(5),
        cookie: &[1; 64]
    }));
    assert_eq!(hello(&client).len(), 1200);
}

/// Goal: no server's key is an error, whatever its bytes.   Method: keys of low order, not reduced, and of ones, with the longest token.
#[test]
fn any_bytes_are_a_key() {
    let longest = ConnectToken {
        sealed: SealedToken(vec![0; TOKEN_MAX]),
        psk: [0; 32],
    };
    let mut one = [0; 32];
    one[0] = 1;
    for key in [[0; 32], one, [0x7f; 32], [0xff; 32]] {
        assert_eq!(hello(&client(key, Some(&longest), 1)).len(), 1200);
    }
}

#[test]
fn a_client_takes_few_cookies() {
    let mut client = client([1; 32], None, 1);
    let mut retry = |cookie: &[u8]| {
        client.handle_retry(&Retry {
            destination: ConnectionId(5),
            cookie,
        })
    };
    assert!(!retry(&[]));
    assert!(!retry(&[0; 65]));
    assert!(retry(b"a forged one"));
    assert!(!retry(b"a forged one"), "nothing new");
    assert!(
        retry(b"the server's"),
        "a forged RETRY does not shut the server's out"
    );
    assert!(retry(b"its next, after the address changed"));
    assert!(retry(b"4"));
    assert!(!retry(b"5"), "nobody can keep the client busy");
}

/// A regression: what a later server says behind the fields of this version was refused from 129 bytes on.
#[test]
fn what_follows_in_an_accept_is_ignored() {
    for more in [0, 100, 120, 1000] {
        let key = ServerKey::from_private([3; 32]);
        let mut client = client(key.public(), None, 1);
        let hello = hello(&client);
        let Ok(HandshakePacket::Hello(hello)) = HandshakePacket::decode(&hello) else {
            panic!("it is a HELLO");
        };
        let mut noise = builder(&mut Entropy::from_seed([4; 32]))
            .prologue(&prologue(hello.source))
            .and_then(|builder| builder.local_private_key(&key.private))
            .and_then(|builder| builder.psk(2, &NO_PSK))
            .and_then(snow::Builder::build_responder)
            .unwrap();
        noise.read_message(hello.noise, &mut [0; 1200]).unwrap();
        let mut payload = [0; 1100];
        let mut writer = Writer::new(&mut payload);
        writer.u32(77);
        writer.u8(Algorithm::ChaCha20Poly1305.bit());
        parameters().encode(&mut writer);
        let len = writer.finish().unwrap() + more;
        let mut message = [0; 1400];
        let len = noise.write_message(&payload[..len], &mut message).unwrap();
        let accept = crate::wire::Accept {
            destination: hello.source,
            noise: &message[..len],
        };
        let established = client.handle_accept(&accept).expect("it opens");
        assert_eq!(established.peer, ConnectionId(77));
    }
}

#[test]
fn a_server_takes_only_what_was_offered() {
    for (offered, expected) in [
        (1, Some(Algorithm::Aes128Gcm)),
        (2, Some(Algorithm::ChaCha20Poly1305)),
        (0, None),
        (4, None),
    ] {
        let mut server = Server::new(None);
        let mut entropy = Entropy::from_seed([1; 32]);
        let key = server.key.public();
        let mut client = ClientHandshake::new(
            &mut entropy,
            ConnectionId(5),
            &key,
            None,
            offered,
            &parameters(),
        )
        .expect("the key has 32 bytes");
        let answer = server.answer(&hello(&client));
        assert_eq!(
            answer
                .as_ref()
                .ok()
                .map(|(established, _)| established.algorithm),
            expected
        );
        if let Ok((_, accept)) = answer {
            assert_eq!(
                finish(&mut client, &accept).map(|established| established.algorithm),
                expected
            );
        }
    }
}
