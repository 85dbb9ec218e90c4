//! Sealing and opening packets. The ciphers are plugged in from outside ([`Aead`]); this folder holds how keys are made, used
//! and replaced (PROTOCOL.md#keys).

mod keys;
#[cfg(test)]
pub(crate) mod tests;

pub use keys::Secret;
pub(crate) use keys::{OpenKeys, SealKeys, derive};

use alloc::boxed::Box;

/// An AEAD algorithm of the protocol. Both have 12-byte nonces and 16-byte tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// AES-128-GCM, for processors with AES instructions.
    Aes128Gcm,
    /// ChaCha20-Poly1305, for all others.
    ChaCha20Poly1305,
}

impl Algorithm {
    /// Bytes of a key.
    #[must_use]
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::ChaCha20Poly1305 => 32,
        }
    }

    pub(crate) const fn bit(self) -> u8 {
        match self {
            Self::Aes128Gcm => 1,
            Self::ChaCha20Poly1305 => 2,
        }
    }

    pub(crate) const fn from_bit(bit: u8) -> Option<Self> {
        match bit {
            1 => Some(Self::Aes128Gcm),
            2 => Some(Self::ChaCha20Poly1305),
            _ => None,
        }
    }
}

/// The bytes did not open: wrong key, or changed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenError;

impl core::fmt::Display for OpenError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the packet is not authentic")
    }
}

impl core::error::Error for OpenError {}

/// A key of one direction.
pub trait AeadKey: Send + Sync {
    /// Encrypts `buffer` in place and returns the tag, which also covers `header`.
    fn seal(&self, nonce: [u8; 12], header: &[u8], buffer: &mut [u8]) -> [u8; 16];

    /// Decrypts `buffer` (ciphertext, then tag) in place and returns the length of the plaintext at its start.
    ///
    /// # Errors
    /// When the tag does not match; the content of `buffer` is then unspecified.
    fn open(&self, nonce: [u8; 12], header: &[u8], buffer: &mut [u8]) -> Result<usize, OpenError>;
}

/// Where keys come from: `aws-lc-rs` in the program, something fast and insecure in the simulator.
pub trait Aead: Send + Sync {
    /// Makes a key. `key` has the algorithm's [`Algorithm::key_len`].
    fn key(&self, algorithm: Algorithm, key: &[u8]) -> Box<dyn AeadKey>;

    /// What is fastest on this machine; a server follows its own preference among what the client offers.
    fn preferred(&self) -> Algorithm;
}
