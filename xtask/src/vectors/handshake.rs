//! Whole handshakes from fixed seeds, connect tokens, cookies.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use punctual_net::crypto::AwsLc;
use punctual_proto::crypto::{Aead, AeadKey, Algorithm};
use punctual_proto::vectors::{
    HandshakeScript, algorithm_bit, cookie, open_token, token_bytes, token_seal_key,
};
use punctual_proto::wire::ConnectionId;
use punctual_proto::{ConnectToken, Instant, ServerKey, TokenClaims, TokenKey};
use serde_json::{Value, json};

use super::{hex, key, noise};

/// The real ciphers with a preference that does not depend on this machine.
pub(super) struct Preferring(pub(super) Algorithm);

impl Aead for Preferring {
    fn key(&self, algorithm: Algorithm, key: &[u8]) -> Box<dyn AeadKey> {
        AwsLc.key(algorithm, key)
    }

    fn preferred(&self) -> Algorithm {
        self.0
    }
}

const NOW_UNIX_S: u64 = 1_800_000_000;

fn claims(server: &ServerKey) -> TokenClaims {
    TokenClaims {
        identity: b"player-7".to_vec(),
        expires_unix_s: NOW_UNIX_S + 60,
        servers: vec![key(20), server.public()],
        psk: key(21),
    }
}

pub(super) fn handshakes() -> Value {
    let server_key = ServerKey::from_private(key(10));
    let token_key = TokenKey(key(11));
    let aead = Preferring(Algorithm::Aes128Gcm);
    let token = claims(&server_key)
        .seal(&aead, &token_key, key(12))
        .expect("the claims keep their bounds");
    let plain = HandshakeScript {
        aead: &aead,
        client_seed: key(13),
        server_seed: key(14),
        server_key: &server_key,
        token_key: None,
        token: None,
        now_unix_s: NOW_UNIX_S,
        client_id: ConnectionId(0x0004_0001),
        server_id: ConnectionId(0x0c00_0102),
        client_address: "192.0.2.7:50000".parse().expect("it is an address"),
        cookie: &[],
        offered: 3,
        client_parameters: (1472, Duration::from_secs(30)),
        server_parameters: (1400, Duration::from_millis(12_345)),
    };
    let sixteen = noise(15, 16);
    let with_token = HandshakeScript {
        client_seed: key(16),
        server_seed: key(17),
        token_key: Some(&token_key),
        token: Some(&token),
        client_address: "[2001:db8::7]:443".parse().expect("it is an address"),
        cookie: &sixteen,
        offered: 2,
        ..plain
    };
    let handshakes = [transcript(&plain), transcript(&with_token)];
    json!({ "handshakes": handshakes, "server_private": hex(&server_key.private()), "server_public": hex(&server_key.public()) })
}

/// As a token or cookie has it: of IPv4 as IPv6 maps it.
const fn ip_bytes(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

fn transcript(script: &HandshakeScript<'_>) -> Value {
    let outcome = script
        .run(&mut |_| ())
        .expect("the server accepts")
        .expect("the client accepts");
    let sealed = script
        .token
        .map_or(&[][..], |token| token_bytes(&token.sealed));
    json!({
        "client_ephemeral_private": hex(&outcome.client_ephemeral),
        "server_ephemeral_private": hex(&outcome.server_ephemeral),
        "psk": hex(&script.token.map_or([0; 32], |token| token.psk)),
        "client_id": script.client_id.0,
        "server_id": script.server_id.0,
        "cookie": hex(script.cookie),
        "offered": script.offered,
        "chosen": algorithm_bit(outcome.algorithm),
        "client_datagram_max": script.client_parameters.0,
        "client_idle_timeout_ms": script.client_parameters.1.as_millis() as u64,
        "server_datagram_max": script.server_parameters.0,
        "server_idle_timeout_ms": script.server_parameters.1.as_millis() as u64,
        "sealed_token": hex(sealed),
        "client_ip": hex(&ip_bytes(script.client_address.ip())),
        "client_port": script.client_address.port(),
        "gone": hex(&script.gone().encode()),
        "identity": String::from_utf8_lossy(&outcome.identity),
        "hello": hex(&outcome.hello),
        "accept": hex(&outcome.accept),
        "client_to_server_secret": hex(&outcome.to_server),
        "server_to_client_secret": hex(&outcome.to_client),
    })
}

pub(super) fn tokens() -> Value {
    let aead = Preferring(Algorithm::ChaCha20Poly1305);
    let token_key = TokenKey(key(30));
    let server = ServerKey::from_private(key(31));
    let anonymous = TokenClaims {
        identity: Vec::new(),
        expires_unix_s: u64::MAX,
        servers: Vec::new(),
        psk: key(32),
    };
    let largest = TokenClaims {
        identity: noise(33, 255),
        expires_unix_s: NOW_UNIX_S,
        servers: (0..8).map(|i| key(34 + i)).collect(),
        psk: key(42),
    };
    let mut tokens = Vec::new();
    for (index, claims) in [claims(&server), anonymous, largest]
        .into_iter()
        .enumerate()
    {
        let salt = key(50 + index as u64);
        let token = claims
            .seal(&aead, &token_key, salt)
            .expect("the claims keep their bounds");
        let sealed = token_bytes(&token.sealed);
        let server = claims.servers.last().copied().unwrap_or_default();
        let opened = open_token(
            &aead,
            &token_key,
            &server,
            claims.expires_unix_s - 1,
            sealed,
        );
        assert_eq!(opened.as_ref(), Ok(&claims));
        let bytes = token.to_bytes();
        assert!(ConnectToken::from_bytes(&bytes).is_ok());
        tokens.push(json!({
            "salt": hex(&salt),
            "sealing_key": hex(&token_seal_key(&token_key, &salt)),
            "expires_unix_s": claims.expires_unix_s,
            "psk": hex(&claims.psk),
            "servers": claims.servers.iter().map(|server| hex(server)).collect::<Vec<_>>(),
            "identity": hex(&claims.identity),
            "sealed": hex(sealed),
            "connect_token": hex(&bytes),
        }));
    }
    json!({ "token_key": hex(&token_key.0), "tokens": tokens })
}

pub(super) fn cookies() -> Value {
    let secret = key(60);
    let addresses = [
        "192.0.2.7:40000",
        "[2001:db8::9]:1",
        "[::ffff:192.0.2.7]:40000",
    ];
    let mut cookies = Vec::new();
    for address in addresses {
        for (now_us, source) in [(0, 0), (9_999_999, 7), (10_000_000, 0xffff_ffffu32)] {
            let from: SocketAddr = address.parse().expect("an address");
            let bytes = cookie(
                secret,
                Instant::from_micros(now_us),
                from,
                ConnectionId(source),
            );
            cookies.push(json!({
                "slot": now_us / 10_000_000, "ip": hex(&ip_bytes(from.ip())), "port": from.port(), "source": source,
                "cookie": hex(&bytes),
            }));
        }
    }
    json!({ "secret": hex(&secret), "cookies": cookies })
}
