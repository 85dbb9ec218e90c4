//! How a client knows that it is its server that knows nothing of a session: by a token that needs no memory on the server (after RFC 9000 section 10.3).
//!
//! It follows from the server's key, so that a restart does not change it, from the session's id, and from the client's address: whoever has another server of the
//! same key say it of an id that it has seen gets a token for its own address.

use core::net::SocketAddr;

use super::{ServerKey, address_bytes, is_same};
use crate::crypto::derive;
use crate::wire::{ConnectionId, GONE_TOKEN_LEN, Gone};

impl ServerKey {
    /// Told a client of this address in the ACCEPT, and to whoever asks for the session from there when there is none.
    pub(crate) fn gone_token(&self, id: ConnectionId, remote: SocketAddr) -> [u8; GONE_TOKEN_LEN] {
        let mut of = [0; 4 + 18];
        of[..4].copy_from_slice(&id.0.to_be_bytes());
        of[4..].copy_from_slice(&address_bytes(remote));
        derive(&self.private, &of, b"punctual v1 gone")
    }
}

impl Gone {
    /// Whether it has this token.
    pub(crate) fn has(&self, token: &[u8; GONE_TOKEN_LEN]) -> bool {
        is_same(&self.token, token)
    }
}
