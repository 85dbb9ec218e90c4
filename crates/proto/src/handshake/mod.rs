//! Noise_NKpsk2_25519_ChaChaPoly_SHA256 over HELLO and ACCEPT (PROTOCOL.md#handshake).
//!
//! The client knows the server's public key. A connect token, sealed by the game's backend, carries who the client is and a
//! pre-shared key that only a client that was given the token knows. Nothing of Noise is written here by hand: `snow` does
//! it, with its randomness drawn from the endpoint's seed.

mod client;
mod cookie;
mod gone;
mod parameters;
mod rng;
mod server;
#[cfg(test)]
mod tests;
mod token;

use core::net::{IpAddr, SocketAddr};

pub use token::{ConnectToken, SealedToken, TokenClaims, TokenError, TokenKey};

#[cfg(feature = "vectors")]
pub(crate) use client::read_payload as read_accept_payload;
pub(crate) use client::{ClientHandshake, Established};
pub(crate) use cookie::CookieJar;
pub(crate) use parameters::Parameters;
pub(crate) use rng::Entropy;
#[cfg(feature = "vectors")]
pub(crate) use server::read_payload as read_hello_payload;
pub(crate) use server::{Admission, ServerHandshake, read_hello};

const PATTERN: &str = "Noise_NKpsk2_25519_ChaChaPoly_SHA256";
/// Used where there is no token.
pub(crate) const NO_PSK: [u8; 32] = [0; 32];

/// A server's long-term key pair (X25519).
#[derive(Clone)]
pub struct ServerKey {
    private: [u8; 32],
    public: [u8; 32],
}

impl core::fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ServerKey")
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

impl ServerKey {
    /// The key pair of 32 random bytes.
    #[must_use]
    pub fn from_private(private: [u8; 32]) -> Self {
        use snow::resolvers::CryptoResolver;
        let mut dh = snow::resolvers::DefaultResolver
            .resolve_dh(&snow::params::DHChoice::Curve25519)
            .expect("the feature use-curve25519 is on");
        dh.set(&private);
        let mut public = [0; 32];
        public.copy_from_slice(dh.pubkey());
        Self { private, public }
    }

    /// What clients must know.
    #[must_use]
    pub const fn public(&self) -> [u8; 32] {
        self.public
    }

    /// What must stay on the server.
    #[must_use]
    pub const fn private(&self) -> [u8; 32] {
        self.private
    }
}

pub(crate) fn builder<'a>(entropy: &mut Entropy) -> snow::Builder<'a> {
    let params = PATTERN
        .parse()
        .expect("the pattern is a constant that snow knows");
    snow::Builder::with_resolver(params, entropy.resolver())
}

/// What both sides mix in besides the messages: nobody can pass one version or connection id off as another.
pub(crate) fn prologue(source: crate::wire::ConnectionId) -> [u8; 16] {
    let mut prologue = *b"punctual\0\0\0\0\0\0\0\0";
    prologue[8..12].copy_from_slice(&crate::wire::VERSION.to_be_bytes());
    prologue[12..].copy_from_slice(&source.0.to_be_bytes());
    prologue
}

/// An address and its port; of IPv4 as IPv6 maps it.
fn address_bytes(address: SocketAddr) -> [u8; 18] {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(&ip.octets());
    bytes[16..].copy_from_slice(&address.port().to_be_bytes());
    bytes
}

/// Compared without an early exit, so that time tells nothing of a guess.
fn is_same<const N: usize>(ours: &[u8; N], theirs: &[u8; N]) -> bool {
    let differs = ours
        .iter()
        .zip(theirs)
        .fold(0, |difference, (a, b)| difference | (a ^ b));
    differs == 0
}
