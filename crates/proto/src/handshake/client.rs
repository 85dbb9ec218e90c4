//! The client's side: it expects RETRY or ACCEPT, and sends its HELLO again until one of them comes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{ConnectToken, Entropy, NO_PSK, Parameters, builder, prologue};
use crate::crypto::{Algorithm, Secret};
use crate::limits::MTU_MAX;
use crate::wire::{
    Accept, ConnectionId, GONE_TOKEN_LEN, HandshakePacket, Hello, Reader, Retry, Writer,
};

/// Longest cookie that a client returns.
const COOKIE_MAX: usize = 64;
/// Cookies that a client takes before its HELLO goes again by itself. More than one, because a RETRY is not authenticated (a forged one must not
/// shut the client out) and because a cookie grows old or the client's address changes under it; few, so that nobody can
/// keep the client sending.
const COOKIES_MAX: u8 = 4;

/// Keys and parameters of a finished handshake.
pub(crate) struct Established {
    pub(crate) peer: ConnectionId,
    pub(crate) seal: Secret,
    pub(crate) open: Secret,
    pub(crate) algorithm: Algorithm,
    pub(crate) parameters: Parameters,
    /// A client's: what its server will say when it knows nothing of the session.
    pub(crate) gone_token: Option<[u8; GONE_TOKEN_LEN]>,
}

/// A client's handshake that expects RETRY or ACCEPT.
pub(crate) struct ClientHandshake {
    noise: Box<snow::HandshakeState>,
    first_message: Vec<u8>,
    cookie: Vec<u8>,
    cookies_taken: u8,
    offered: u8,
    source: ConnectionId,
}

impl ClientHandshake {
    pub(crate) fn new(
        entropy: &mut Entropy,
        source: ConnectionId,
        server_key: &[u8; 32],
        token: Option<&ConnectToken>,
        offered: u8,
        parameters: &Parameters,
    ) -> Result<Self, snow::Error> {
        let psk = token.map_or(NO_PSK, |token| token.psk);
        let prologue = prologue(source);
        let mut noise = builder(entropy)
            .prologue(&prologue)?
            .remote_public_key(server_key)?
            .psk(2, &psk)?
            .build_initiator()?;
        let mut payload = [0; crate::limits::TOKEN_MAX + 32];
        let mut writer = Writer::new(&mut payload);
        writer.u8(offered);
        parameters.encode(&mut writer);
        let sealed: &[u8] = token.map_or(&[], |token| &token.sealed.0);
        writer.u16(sealed.len() as u16);
        writer.bytes(sealed);
        let len = writer.finish().ok_or(snow::Error::Input)?;
        let mut message = [0; crate::limits::MTU_MIN as usize];
        let len = noise.write_message(&payload[..len], &mut message)?;
        Ok(Self {
            noise: Box::new(noise),
            first_message: message[..len].to_vec(),
            cookie: Vec::new(),
            cookies_taken: 0,
            offered,
            source,
        })
    }

    /// Writes the HELLO, with the cookie once there is one.
    pub(crate) fn encode_hello(&self, buffer: &mut [u8]) -> Option<usize> {
        let hello = Hello {
            source: self.source,
            cookie: &self.cookie,
            noise: &self.first_message,
        };
        HandshakePacket::Hello(hello).encode(buffer)
    }

    /// A server asks for its cookie back: `true` when the HELLO is to go again with it.
    pub(crate) fn handle_retry(&mut self, retry: &Retry<'_>) -> bool {
        let is_usable =
            (1..=COOKIE_MAX).contains(&retry.cookie.len()) && retry.cookie != self.cookie;
        if !is_usable || self.cookies_taken >= COOKIES_MAX {
            return false;
        }
        self.cookies_taken += 1;
        self.cookie = retry.cookie.to_vec();
        true
    }

    /// The HELLO goes again because nothing came of it: what was forged before has only cost time.
    pub(crate) const fn on_repeated(&mut self) {
        self.cookies_taken = 0;
    }

    /// The server's answer. One that does not open was not from the server, and is as if it had not come.
    pub(crate) fn handle_accept(&mut self, accept: &Accept<'_>) -> Option<Established> {
        let mut payload = [0; MTU_MAX as usize];
        let len = self.noise.read_message(accept.noise, &mut payload).ok()?;
        let accepted = read_payload(&payload[..len])?;
        if self.offered & accepted.algorithm.bit() == 0 {
            return None;
        }
        let (to_server, to_client) = self.noise.dangerously_get_raw_split();
        Some(Established {
            peer: accepted.peer,
            seal: Secret(to_server),
            open: Secret(to_client),
            algorithm: accepted.algorithm,
            parameters: accepted.parameters,
            gone_token: accepted.gone_token,
        })
    }
}

/// What the server says inside its Noise message. More may follow in a later version.
pub(crate) struct Accepted {
    pub(crate) peer: ConnectionId,
    pub(crate) algorithm: Algorithm,
    pub(crate) parameters: Parameters,
    /// Servers of a first draft of this version do not say it.
    pub(crate) gone_token: Option<[u8; GONE_TOKEN_LEN]>,
}

pub(crate) fn read_payload(payload: &[u8]) -> Option<Accepted> {
    let mut reader = Reader::new(payload);
    Some(Accepted {
        peer: ConnectionId(reader.u32().ok()?),
        algorithm: Algorithm::from_bit(reader.u8().ok()?)?,
        parameters: Parameters::decode(&mut reader).ok()?,
        gone_token: reader.array().ok(),
    })
}
