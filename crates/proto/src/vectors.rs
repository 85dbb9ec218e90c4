//! A narrow way inside, for test vectors (`cargo xtask vectors`) and fuzzing. Behind the feature `vectors`, which no shipped
//! crate turns on; nothing here is promised to stay.
//!
//! Everything runs the code that ships: no encoding, key or code is made a second time here.

use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use rand_chacha::ChaCha12Rng;
use rand_core::{RngCore, SeedableRng};

use crate::crypto::{Aead, Algorithm, OpenKeys, SealKeys, Secret, derive};
use crate::handshake::{
    Admission, ClientHandshake, ConnectToken, CookieJar, Entropy, NO_PSK, Parameters, SealedToken,
    ServerKey, TokenClaims, TokenError, TokenKey, builder, prologue, read_accept_payload,
    read_hello, read_hello_payload,
};
use crate::message::{Block, Cut, Inbox, Ready, Room, Share, Taken};
use crate::pool::Pool;
use crate::schedule::{Entry, Item, NO_DEADLINE, Reach, Schedule, UNIT};
use crate::stream::{Arrived, Incoming, StreamId, Verdict};
use crate::time::Instant;
use crate::wire::{
    ConnectionId, Gone, HandshakePacket, Header, Hello, Order, Refusal, Retry, Symbol, Writer,
};

/// What HKDF makes of a traffic secret.
pub struct PacketKeys {
    pub key: Vec<u8>,
    pub iv: [u8; 12],
    pub next_secret: [u8; 32],
}

#[must_use]
pub fn packet_keys(algorithm: Algorithm, secret: [u8; 32]) -> PacketKeys {
    let secret = Secret(secret);
    let key: [u8; 32] = secret.expand(b"punctual v1 key");
    PacketKeys {
        key: key[..algorithm.key_len()].to_vec(),
        iv: secret.expand(b"punctual v1 iv"),
        next_secret: secret.expand(b"punctual v1 next"),
    }
}

/// A protected packet: header, content sealed under key generation `updates`, tag.
#[must_use]
pub fn seal_packet(
    aead: &dyn Aead,
    algorithm: Algorithm,
    secret: [u8; 32],
    updates: u32,
    header: &Header,
    number: u64,
    content: &[u8],
) -> Vec<u8> {
    let mut keys = SealKeys::new(aead, algorithm, Secret(secret));
    for _ in 0..updates {
        keys.update(aead, algorithm);
    }
    assert_eq!(
        keys.phase(),
        header.key_phase,
        "the phase is that of the generation"
    );
    let len = header.encoded_len() + content.len() + crate::wire::TAG_LEN;
    let mut packet = alloc::vec![0; len];
    let mut writer = Writer::new(&mut packet);
    header.encode(&mut writer);
    writer.bytes(content);
    keys.seal(number, &mut packet, header.encoded_len());
    packet
}

/// Opens packets in the order given, as a session does.
pub struct PacketOpener {
    keys: OpenKeys,
    algorithm: Algorithm,
}

impl PacketOpener {
    #[must_use]
    pub fn new(aead: &dyn Aead, algorithm: Algorithm, secret: [u8; 32]) -> Self {
        Self {
            keys: OpenKeys::new(aead, algorithm, Secret(secret)),
            algorithm,
        }
    }

    /// The content, and whether the packet began a new key generation.
    pub fn open(
        &mut self,
        aead: &dyn Aead,
        expected: u64,
        packet: &[u8],
    ) -> Option<(Vec<u8>, bool)> {
        let header = Header::decode(packet).ok()?;
        let (number, start) = (header.number(expected), header.encoded_len());
        let mut packet = packet.to_vec();
        let opened = self
            .keys
            .open(
                aead,
                self.algorithm,
                number,
                header.key_phase,
                &mut packet,
                start,
            )
            .ok()?;
        Some((packet[start..start + opened.len].to_vec(), opened.updated))
    }
}

/// What a handshake of fixed seeds is made from.
pub struct HandshakeScript<'a> {
    pub aead: &'a dyn Aead,
    pub client_seed: [u8; 32],
    pub server_seed: [u8; 32],
    pub server_key: &'a ServerKey,
    pub token_key: Option<&'a TokenKey>,
    pub token: Option<&'a ConnectToken>,
    pub now_unix_s: u64,
    pub client_id: ConnectionId,
    pub server_id: ConnectionId,
    /// As the server sees it.
    pub client_address: SocketAddr,
    pub cookie: &'a [u8],
    /// Bits of [`Algorithm`] that the client offers.
    pub offered: u8,
    /// Largest datagram and idle timeout of each side.
    pub client_parameters: (u16, Duration),
    pub server_parameters: (u16, Duration),
}

/// What came of it.
pub struct HandshakeTranscript {
    pub client_ephemeral: [u8; 32],
    pub server_ephemeral: [u8; 32],
    pub hello: Vec<u8>,
    pub accept: Vec<u8>,
    /// Traffic secrets: client to server, server to client.
    pub to_server: [u8; 32],
    pub to_client: [u8; 32],
    pub algorithm: Algorithm,
    pub identity: Vec<u8>,
}

impl HandshakeScript<'_> {
    /// What the server says of the session once it knows nothing of it.
    #[must_use]
    pub fn gone(&self) -> Gone {
        Gone {
            source: self.server_id,
            token: self
                .server_key
                .gone_token(self.server_id, self.client_address),
        }
    }

    /// Runs it. `None` when the client does not accept; `tamper` may change both messages under way.
    ///
    /// # Errors
    /// What the server refused with.
    pub fn run(
        &self,
        tamper: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Result<Option<HandshakeTranscript>, Refusal> {
        let parameters = |(datagram_max, idle_timeout)| Parameters {
            datagram_max,
            idle_timeout,
        };
        let mut entropy = Entropy::from_seed(self.client_seed);
        let mut client = ClientHandshake::new(
            &mut entropy,
            self.client_id,
            &self.server_key.public(),
            self.token,
            self.offered,
            &parameters(self.client_parameters),
        )
        .map_err(|_| Refusal::Key)?;
        if !self.cookie.is_empty() {
            let retry = Retry {
                destination: self.client_id,
                cookie: self.cookie,
            };
            assert!(
                client.handle_retry(&retry),
                "the script's cookie is acceptable"
            );
        }
        let mut hello = alloc::vec![0; 1200];
        client
            .encode_hello(&mut hello)
            .expect("a HELLO fits its 1,200 bytes");
        tamper(&mut hello);
        let mut entropy = Entropy::from_seed(self.server_seed);
        let admission = Admission {
            aead: self.aead,
            key: self.server_key,
            token_key: self.token_key,
            now_unix_s: self.now_unix_s,
        };
        let Ok(HandshakePacket::Hello(packet)) = HandshakePacket::decode(&hello) else {
            return Err(Refusal::Key);
        };
        let mut server = read_hello(&mut entropy, &admission, &packet)?;
        let identity = core::mem::take(&mut server.identity);
        let (at_server, mut accept) = server
            .accept(
                self.server_id,
                &parameters(self.server_parameters),
                &self.gone().token,
            )
            .ok_or(Refusal::Key)?;
        tamper(&mut accept);
        let Ok(HandshakePacket::Accept(packet)) = HandshakePacket::decode(&accept) else {
            return Ok(None);
        };
        let Some(at_client) = client.handle_accept(&packet) else {
            return Ok(None);
        };
        assert_eq!(at_client.peer, self.server_id);
        assert_eq!(at_server.peer, self.client_id);
        assert_eq!(at_client.seal.0, at_server.open.0);
        assert_eq!(at_client.open.0, at_server.seal.0);
        assert_eq!(at_client.algorithm, at_server.algorithm);
        assert_eq!(at_client.gone_token, Some(self.gone().token));
        Ok(Some(HandshakeTranscript {
            client_ephemeral: ephemeral(self.client_seed),
            server_ephemeral: ephemeral(self.server_seed),
            hello,
            accept,
            to_server: at_client.seal.0,
            to_client: at_client.open.0,
            algorithm: at_client.algorithm,
            identity,
        }))
    }
}

/// The ephemeral key of the first handshake of an endpoint with this seed (only its test vectors depend on this).
fn ephemeral(seed: [u8; 32]) -> [u8; 32] {
    let seed: [u8; 32] = Entropy::from_seed(seed).array();
    let mut key = [0; 32];
    ChaCha12Rng::from_seed(seed).fill_bytes(&mut key);
    key
}

/// A HELLO whose Noise message holds this payload, whatever it is; `None` when it is too long.
#[must_use]
pub fn seal_hello(
    server_public: &[u8; 32],
    source: ConnectionId,
    cookie: &[u8],
    payload: &[u8],
) -> Option<Vec<u8>> {
    let prologue = prologue(source);
    let mut noise = builder(&mut Entropy::from_seed([1; 32]))
        .prologue(&prologue)
        .and_then(|builder| builder.remote_public_key(server_public))
        .and_then(|builder| builder.psk(2, &NO_PSK))
        .and_then(snow::Builder::build_initiator)
        .ok()?;
    let mut message = [0; 1200];
    let len = noise.write_message(payload, &mut message).ok()?;
    let mut datagram = alloc::vec![0; 1200];
    let hello = Hello {
        source,
        cookie,
        noise: &message[..len],
    };
    HandshakePacket::Hello(hello).encode(&mut datagram)?;
    Some(datagram)
}

/// The payload of a HELLO: offered algorithms, datagram size, idle timeout in ms, sealed token.
#[must_use]
pub fn decode_hello_payload(payload: &[u8]) -> Option<(u8, u16, u64, Vec<u8>)> {
    let (offered, parameters, token) = read_hello_payload(payload)?;
    let idle = parameters.idle_timeout.as_millis() as u64;
    Some((offered, parameters.datagram_max, idle, token.to_vec()))
}

/// The payload of an ACCEPT: connection id, algorithm, datagram size, idle timeout in ms.
#[must_use]
pub fn decode_accept_payload(payload: &[u8]) -> Option<(u32, u8, u16, u64)> {
    let accepted = read_accept_payload(payload)?;
    let parameters = accepted.parameters;
    let idle = parameters.idle_timeout.as_millis() as u64;
    let chosen = accepted.algorithm.bit();
    Some((accepted.peer.0, chosen, parameters.datagram_max, idle))
}

/// The bit of an algorithm in a handshake.
#[must_use]
pub fn algorithm_bit(algorithm: Algorithm) -> u8 {
    algorithm.bit()
}

/// The bytes of a sealed token.
#[must_use]
pub fn token_bytes(token: &SealedToken) -> &[u8] {
    &token.0
}

/// The key that seals one token.
#[must_use]
pub fn token_seal_key(key: &TokenKey, salt: &[u8; 32]) -> [u8; 32] {
    derive(&key.0, salt, b"punctual v1 token")
}

/// Opens a token as a server does.
///
/// # Errors
/// As the server refuses it.
pub fn open_token(
    aead: &dyn Aead,
    key: &TokenKey,
    server: &[u8; 32],
    now_unix_s: u64,
    sealed: &[u8],
) -> Result<TokenClaims, TokenError> {
    TokenClaims::open(aead, key, server, now_unix_s, sealed)
}

/// What a token says, once it is opened.
#[must_use]
pub fn decode_claims(plain: &[u8]) -> Option<TokenClaims> {
    TokenClaims::decode(plain)
}

/// The cookie for an address.
#[must_use]
pub fn cookie(secret: [u8; 32], now: Instant, from: SocketAddr, source: ConnectionId) -> [u8; 16] {
    CookieJar::new(secret).bake(now, from, source)
}

/// Symbol `esi` of a block (preamble and content) of `source_symbols` symbols of `symbol_len` bytes.
#[must_use]
pub fn symbol(block: &[u8], source_symbols: u8, symbol_len: usize, esi: u8) -> Vec<u8> {
    let block = Block::new(
        0,
        0,
        Cut {
            source_symbols,
            symbol_len,
        },
        block.to_vec(),
    );
    let mut out = alloc::vec![0; symbol_len];
    block.symbols.write_symbol(esi, &mut out);
    out
}

/// What a receiver made of a symbol.
#[derive(Debug, PartialEq, Eq)]
pub enum Reassembled {
    /// Nothing to hand on: kept, or not needed.
    Nothing,
    /// No room, or not from these days: its packet is not acknowledged.
    Refused,
    /// It contradicts what came before.
    Malformed,
    /// Messages, each with its stream; pieces of one larger than `WHOLE_MAX` count as messages.
    Messages(Vec<(u16, Vec<u8>)>),
}

/// The receiving side of messages, without a session around it.
pub struct Reassembly {
    inbox: Inbox,
    pool: Pool,
}

impl Default for Reassembly {
    fn default() -> Self {
        Self {
            inbox: Inbox::default(),
            pool: Pool::new(1 << 16),
        }
    }
}

impl Reassembly {
    pub fn handle_symbol(&mut self, symbol: &Symbol<'_>) -> Reassembled {
        let room = Room {
            waiting_bytes: 0,
            unfinished_bytes: 0,
            share: Share::ALL,
        };
        match self.inbox.handle_symbol(symbol, room, &mut self.pool) {
            Taken::Kept | Taken::Duplicate => Reassembled::Nothing,
            Taken::Refused => Reassembled::Refused,
            Taken::Malformed => Reassembled::Malformed,
            Taken::Ready => {
                let ready = core::iter::from_fn(|| self.inbox.pop_ready());
                let messages = ready.filter_map(|ready| match ready {
                    Ready::Message(arrived) => Some((arrived.stream, arrived.data)),
                    Ready::Piece { head, data, .. } => Some((head.stream, data)),
                    Ready::Aborted { .. } => None,
                });
                Reassembled::Messages(messages.collect())
            }
        }
    }

    pub fn handle_abandon(&mut self, first: u64, count: u64) {
        self.inbox.handle_abandon(first, count, &mut self.pool);
        while self.inbox.pop_ready().is_some() {}
    }
}

/// What the receiver's streams do with complete messages, each named by a byte.
#[derive(Default)]
pub struct StreamOrder {
    incoming: Incoming,
}

impl StreamOrder {
    /// A message is complete: which are handed on now.
    pub fn arrive(&mut self, stream: u16, order: Order, first_block: u64, message: u8) -> Vec<u8> {
        let mut handed_on = Vec::new();
        match self.incoming.judge(stream, order, first_block) {
            Verdict::Now => {
                self.incoming.on_handed_on(stream, order, first_block);
                if !matches!(order, Order::Void(_)) {
                    handed_on.push(message);
                }
                while let Some(data) = self.incoming.next(stream) {
                    handed_on.extend(data);
                }
            }
            Verdict::Later => self.incoming.wait(Arrived {
                stream,
                order,
                first_block,
                data: alloc::vec![message],
            }),
            Verdict::Never | Verdict::Malformed => {}
        }
        handed_on
    }
}

/// The schedule of a session with something to send on each of many streams, to measure what an entry costs.
pub struct ScheduleLoad {
    schedule: Schedule,
    streams: u16,
    next: u64,
}

impl ScheduleLoad {
    #[must_use]
    pub fn new(streams: u16) -> Self {
        let mut load = Self {
            schedule: Schedule::default(),
            streams,
            next: 0,
        };
        for stream in 0..streams {
            load.schedule.open(StreamId(stream), 1 + stream % 4);
            load.accept(stream);
        }
        load
    }

    fn accept(&mut self, stream: u16) {
        self.next += 1;
        // Every other stream's messages have a deadline.
        let deadline = if stream.is_multiple_of(2) {
            NO_DEADLINE
        } else {
            Instant::from_micros(self.next + 100_000)
        };
        let entry = Entry {
            unimportance: 127,
            rank: deadline,
            position: self.next,
            item: Item::Message(self.next as u32),
            deadline,
            is_live: deadline != NO_DEADLINE,
            is_begun: false,
            bytes: 1000,
            needed_bytes: 1000,
        };
        self.schedule.push(StreamId(stream), entry);
    }

    /// Accepts a message and sends the one whose turn it is, a packet of its own: looks for it, looks for more that fits, charges
    /// its stream, and takes it out. Answers which stream's it was.
    pub fn message(&mut self) -> u16 {
        self.accept((self.next % u64::from(self.streams)) as u16);
        let Some((stream, entry)) = self.schedule.find(Reach::First, |_| true) else {
            return 0;
        };
        let more = self.schedule.find(Reach::Spare, |entry| entry.bytes < 400);
        debug_assert!(more.is_none());
        self.schedule.remove(stream, &entry);
        self.schedule.charge(stream, 1100 * UNIT);
        stream.0
    }
}
