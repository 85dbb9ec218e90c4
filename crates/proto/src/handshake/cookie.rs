//! The stateless cookie: proof that a client receives at the address it sends from, before any state or Diffie-Hellman.

use core::net::SocketAddr;

use super::{address_bytes, is_same};
use crate::crypto::Secret;
use crate::limits::COOKIE_TIME;
use crate::time::{Instant, nanos};
use crate::wire::ConnectionId;

/// Makes and checks cookies. The secret never leaves the endpoint.
pub(crate) struct CookieJar {
    secret: Secret,
}

/// Bytes of a cookie.
pub(crate) const COOKIE_LEN: usize = 16;

impl CookieJar {
    pub(crate) const fn new(secret: [u8; 32]) -> Self {
        Self {
            secret: Secret(secret),
        }
    }

    /// A number that only this endpoint knows before it is seen.
    pub(crate) fn first_generation(&self) -> u8 {
        let [generation] = self.secret.expand(b"generation");
        generation
    }

    pub(crate) fn bake(
        &self,
        now: Instant,
        from: SocketAddr,
        source: ConnectionId,
    ) -> [u8; COOKIE_LEN] {
        self.cookie(slot(now), from, source)
    }

    /// Whether the cookie was baked for this address in this or the last slot.
    pub(crate) fn is_ours(
        &self,
        now: Instant,
        from: SocketAddr,
        source: ConnectionId,
        cookie: &[u8],
    ) -> bool {
        let Ok(cookie) = <[u8; COOKIE_LEN]>::try_from(cookie) else {
            return false;
        };
        let slot = slot(now);
        [slot, slot.wrapping_sub(1)]
            .into_iter()
            .any(|slot| is_same(&self.cookie(slot, from, source), &cookie))
    }

    fn cookie(&self, slot: u64, from: SocketAddr, source: ConnectionId) -> [u8; COOKIE_LEN] {
        let mut info = [0; 8 + 18 + 4];
        info[..8].copy_from_slice(&slot.to_be_bytes());
        info[8..26].copy_from_slice(&address_bytes(from));
        info[26..].copy_from_slice(&source.0.to_be_bytes());
        self.secret.expand(&info)
    }
}

const fn slot(now: Instant) -> u64 {
    now.as_nanos() / nanos(COOKIE_TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_its_address_and_time_only() {
        let jar = CookieJar::new([7; 32]);
        let from: SocketAddr = "127.0.0.1:1000".parse().unwrap();
        let other: SocketAddr = "127.0.0.1:1001".parse().unwrap();
        let now = Instant::from_micros(123_000_000);
        let cookie = jar.bake(now, from, ConnectionId(1));
        assert!(jar.is_ours(now, from, ConnectionId(1), &cookie));
        assert!(jar.is_ours(now + COOKIE_TIME, from, ConnectionId(1), &cookie));
        assert!(!jar.is_ours(now + 2 * COOKIE_TIME, from, ConnectionId(1), &cookie));
        assert!(!jar.is_ours(now, other, ConnectionId(1), &cookie));
        assert!(!jar.is_ours(now, from, ConnectionId(2), &cookie));
        assert!(!jar.is_ours(now, from, ConnectionId(1), &cookie[1..]));
    }
}
