//! Connect tokens: a game's backend says who may connect, until when and to which servers, and gives both sides a key.
//!
//! The backend and its servers share a 32-byte [`TokenKey`]. What the server must know is sealed under it ([`SealedToken`]);
//! the client carries that unread and holds the pre-shared key beside it ([`ConnectToken`]).

use alloc::vec::Vec;

use crate::crypto::{Aead, Algorithm};
use crate::limits::TOKEN_MAX;
use crate::wire::{Reader, TAG_LEN, Writer};

/// Longest identity, in bytes.
const IDENTITY_MAX: usize = 255;
/// Most servers that a token names.
const SERVERS_MAX: usize = 8;
const SALT_LEN: usize = 32;

/// Shared by the backend that seals tokens and the servers that open them.
#[derive(Clone)]
pub struct TokenKey(pub [u8; 32]);

impl core::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("TokenKey(..)")
    }
}

/// What a token says to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenClaims {
    /// Who the client is, in the game's own terms; at most 255 bytes.
    pub identity: Vec<u8>,
    /// Seconds since 1970 from which on the token is refused.
    pub expires_unix_s: u64,
    /// Public keys of the servers that may accept it; empty means any server that holds the token key. At most 8.
    pub servers: Vec<[u8; 32]>,
    /// Mixed into the handshake: whoever does not know it cannot use the token.
    pub psk: [u8; 32],
}

/// A token as the client carries it to the server: it cannot read it.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedToken(pub(crate) Vec<u8>);

/// What a client gets from its backend.
#[derive(Clone)]
pub struct ConnectToken {
    /// For the server.
    pub sealed: SealedToken,
    /// For the client.
    pub psk: [u8; 32],
}

impl core::fmt::Debug for SealedToken {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SealedToken({} bytes)", self.0.len())
    }
}

impl core::fmt::Debug for ConnectToken {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ConnectToken")
            .field("sealed", &self.sealed)
            .finish_non_exhaustive()
    }
}

/// Why a token could not be made or was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenError {
    /// The identity or the list of servers is too long.
    TooLarge,
    /// It does not open under the token key, is malformed, or names other servers.
    Invalid,
    /// Its time is over.
    Expired,
}

impl core::fmt::Display for TokenError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the token's identity (at most 255 bytes) or list of servers (at most 8) is too long",
            Self::Invalid => "the connect token was not sealed for this server",
            Self::Expired => "the connect token has expired",
        })
    }
}

impl core::error::Error for TokenError {}

impl ConnectToken {
    /// Bytes to hand to a client: the pre-shared key, then the sealed part.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.psk.to_vec();
        bytes.extend_from_slice(&self.sealed.0);
        bytes
    }

    /// Reads what [`ConnectToken::to_bytes`] wrote.
    ///
    /// # Errors
    /// `Invalid` when it is too short or too long to be one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TokenError> {
        let (psk, sealed) = bytes.split_first_chunk::<32>().ok_or(TokenError::Invalid)?;
        if sealed.len() < SALT_LEN + TAG_LEN || sealed.len() > TOKEN_MAX {
            return Err(TokenError::Invalid);
        }
        Ok(Self {
            sealed: SealedToken(sealed.to_vec()),
            psk: *psk,
        })
    }
}

impl TokenClaims {
    /// Seals the claims for servers that hold `key`. `salt` must be 32 fresh random bytes: each token has a key of its own,
    /// derived from it, so that no nonce is ever used twice.
    ///
    /// # Errors
    /// `TooLarge` when identity or servers are over their bounds.
    pub fn seal(
        &self,
        aead: &dyn Aead,
        key: &TokenKey,
        salt: [u8; 32],
    ) -> Result<ConnectToken, TokenError> {
        if self.identity.len() > IDENTITY_MAX || self.servers.len() > SERVERS_MAX {
            return Err(TokenError::TooLarge);
        }
        let mut buffer = [0; TOKEN_MAX];
        let mut writer = Writer::new(&mut buffer);
        writer.bytes(&salt);
        writer.u64(self.expires_unix_s);
        writer.bytes(&self.psk);
        writer.u8(self.servers.len() as u8);
        for server in &self.servers {
            writer.bytes(server);
        }
        writer.u8(self.identity.len() as u8);
        writer.bytes(&self.identity);
        let end = writer.finish().ok_or(TokenError::TooLarge)?;
        let tag = token_key(aead, key, &salt).seal([0; 12], &salt, &mut buffer[SALT_LEN..end]);
        let mut sealed = buffer[..end].to_vec();
        sealed.extend_from_slice(&tag);
        Ok(ConnectToken {
            sealed: SealedToken(sealed),
            psk: self.psk,
        })
    }

    /// Opens and checks a token on the server.
    ///
    /// # Errors
    /// `Invalid` or `Expired`.
    pub(crate) fn open(
        aead: &dyn Aead,
        key: &TokenKey,
        server: &[u8; 32],
        now_unix_s: u64,
        sealed: &[u8],
    ) -> Result<Self, TokenError> {
        if sealed.len() > TOKEN_MAX {
            return Err(TokenError::Invalid);
        }
        let (salt, rest) = sealed
            .split_first_chunk::<SALT_LEN>()
            .ok_or(TokenError::Invalid)?;
        let mut plain = rest.to_vec();
        let len = token_key(aead, key, salt)
            .open([0; 12], salt, &mut plain)
            .map_err(|_| TokenError::Invalid)?;
        let claims = Self::decode(&plain[..len]).ok_or(TokenError::Invalid)?;
        if !claims.servers.is_empty() && !claims.servers.contains(server) {
            return Err(TokenError::Invalid);
        }
        if now_unix_s >= claims.expires_unix_s {
            return Err(TokenError::Expired);
        }
        Ok(claims)
    }

    pub(crate) fn decode(plain: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(plain);
        let expires_unix_s = reader.u64().ok()?;
        let psk = reader.array().ok()?;
        let count = usize::from(reader.u8().ok()?);
        if count > SERVERS_MAX {
            return None;
        }
        let mut servers = Vec::with_capacity(count);
        for _ in 0..count {
            servers.push(reader.array().ok()?);
        }
        let identity_len = usize::from(reader.u8().ok()?);
        let identity = reader.bytes(identity_len).ok()?.to_vec();
        Some(Self {
            identity,
            expires_unix_s,
            servers,
            psk,
        })
    }
}

fn token_key(
    aead: &dyn Aead,
    key: &TokenKey,
    salt: &[u8; 32],
) -> alloc::boxed::Box<dyn crate::crypto::AeadKey> {
    // ChaCha20-Poly1305 everywhere: a backend need not know what its servers' processors prefer.
    let bytes: [u8; 32] = crate::crypto::derive(&key.0, salt, b"punctual v1 token");
    aead.key(Algorithm::ChaCha20Poly1305, &bytes)
}
