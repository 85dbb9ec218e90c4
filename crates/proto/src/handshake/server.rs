//! The server's side: one HELLO in, one ACCEPT out.

use alloc::vec::Vec;

use super::{
    Entropy, Established, NO_PSK, Parameters, ServerKey, TokenClaims, TokenError, TokenKey,
    builder, prologue,
};
use crate::crypto::{Aead, Algorithm, Secret};
use crate::limits::{MTU_MIN, TOKEN_MAX};
use crate::wire::{
    Accept, ConnectionId, GONE_TOKEN_LEN, HandshakePacket, Hello, Reader, Refusal, Writer,
};

/// What a server admits clients by.
pub(crate) struct Admission<'a> {
    pub(crate) aead: &'a dyn Aead,
    pub(crate) key: &'a ServerKey,
    pub(crate) token_key: Option<&'a TokenKey>,
    pub(crate) now_unix_s: u64,
}

/// A handshake between HELLO and ACCEPT.
pub(crate) struct ServerHandshake {
    noise: snow::HandshakeState,
    source: ConnectionId,
    algorithm: Algorithm,
    parameters: Parameters,
    /// Who the client is, from its token; empty without one.
    pub(crate) identity: Vec<u8>,
}

/// Opens a HELLO and judges its token. This is where the first Diffie-Hellman is spent.
pub(crate) fn read_hello(
    entropy: &mut Entropy,
    admission: &Admission<'_>,
    hello: &Hello<'_>,
) -> Result<ServerHandshake, Refusal> {
    let prologue = prologue(hello.source);
    let mut start = || {
        // The real key is set once the token inside the first message is known.
        builder(entropy)
            .prologue(&prologue)?
            .local_private_key(&admission.key.private)?
            .psk(2, &NO_PSK)?
            .build_responder()
    };
    let mut noise = start().map_err(|_: snow::Error| Refusal::Key)?;
    let mut payload = [0; MTU_MIN as usize];
    let len = noise
        .read_message(hello.noise, &mut payload)
        .map_err(|_| Refusal::Key)?;
    let (offered, parameters, sealed) = read_payload(&payload[..len]).ok_or(Refusal::Key)?;
    let identity = match (admission.token_key, sealed) {
        (None, []) => Vec::new(),
        // The client has mixed its token's key in, which this server cannot know: it would wait for an answer in vain.
        (None, _) => return Err(Refusal::TokenInvalid),
        (Some(_), []) => return Err(Refusal::TokenMissing),
        (Some(key), sealed) => {
            let claims = TokenClaims::open(
                admission.aead,
                key,
                &admission.key.public,
                admission.now_unix_s,
                sealed,
            )
            .map_err(|error| match error {
                TokenError::Expired => Refusal::TokenExpired,
                _ => Refusal::TokenInvalid,
            })?;
            noise.set_psk(2, &claims.psk).map_err(|_| Refusal::Key)?;
            claims.identity
        }
    };
    let preferred = admission.aead.preferred();
    let other = match preferred {
        Algorithm::Aes128Gcm => Algorithm::ChaCha20Poly1305,
        Algorithm::ChaCha20Poly1305 => Algorithm::Aes128Gcm,
    };
    let algorithm = [preferred, other]
        .into_iter()
        .find(|algorithm| offered & algorithm.bit() != 0)
        .ok_or(Refusal::Key)?;
    Ok(ServerHandshake {
        noise,
        source: hello.source,
        algorithm,
        parameters,
        identity,
    })
}

/// What the client says inside its Noise message. More may follow in a later version.
pub(crate) fn read_payload(payload: &[u8]) -> Option<(u8, Parameters, &[u8])> {
    let mut reader = Reader::new(payload);
    let offered = reader.u8().ok()?;
    let parameters = Parameters::decode(&mut reader).ok()?;
    let len = usize::from(reader.u16().ok()?);
    if len > TOKEN_MAX {
        return None;
    }
    Some((offered, parameters, reader.bytes(len).ok()?))
}

impl ServerHandshake {
    /// Writes the ACCEPT and finishes.
    pub(crate) fn accept(
        mut self,
        own: ConnectionId,
        parameters: &Parameters,
        gone_token: &[u8; GONE_TOKEN_LEN],
    ) -> Option<(Established, Vec<u8>)> {
        let mut payload = [0; 64];
        let mut writer = Writer::new(&mut payload);
        writer.u32(own.0);
        writer.u8(self.algorithm.bit());
        parameters.encode(&mut writer);
        writer.bytes(gone_token);
        let len = writer.finish()?;
        let mut message = [0; 192];
        let len = self
            .noise
            .write_message(&payload[..len], &mut message)
            .ok()?;
        let accept = Accept {
            destination: self.source,
            noise: &message[..len],
        };
        let mut packet = [0; 256];
        let len = HandshakePacket::Accept(accept).encode(&mut packet)?;
        let (to_server, to_client) = self.noise.dangerously_get_raw_split();
        let established = Established {
            peer: self.source,
            seal: Secret(to_client),
            open: Secret(to_server),
            algorithm: self.algorithm,
            parameters: self.parameters,
            gone_token: None,
        };
        Some((established, packet[..len].to_vec()))
    }
}
