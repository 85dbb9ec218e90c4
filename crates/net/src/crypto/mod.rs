//! Seals and opens packets: AES-128-GCM and ChaCha20-Poly1305 from `aws-lc-rs`.
//!
//! The nonce is the caller's: it must never repeat under one key, for then both confidentiality and authenticity are lost.
//! Nothing here allocates after [`AeadKey::new`]; `examples/aead.rs` measures what a key holds and what a packet costs.

mod aws_lc;

use std::fmt;

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};

pub use aws_lc::AwsLc;

/// Bytes of the tag that follows every sealed packet.
pub const TAG_BYTES: usize = 16;

/// The ciphers that both sides know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// AES-128-GCM: the faster one where the processor has instructions for it.
    Aes128Gcm,
    /// ChaCha20-Poly1305: runs in constant time on any processor.
    ChaCha20Poly1305,
}

impl Algorithm {
    /// Bytes of key that it takes.
    pub fn key_bytes(self) -> usize {
        self.implementation().key_len()
    }

    fn implementation(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes128Gcm => &aead::AES_128_GCM,
            Self::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        }
    }
}

/// The algorithm that is faster on this processor: AES where it has instructions for AES and carry-less multiplication.
pub fn preferred_algorithm() -> Algorithm {
    if has_aes_instructions() {
        Algorithm::Aes128Gcm
    } else {
        Algorithm::ChaCha20Poly1305
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn has_aes_instructions() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn has_aes_instructions() -> bool {
    // On this architecture the feature `aes` covers the polynomial multiplication too.
    std::arch::is_aarch64_feature_detected!("aes")
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes_instructions() -> bool {
    false
}

/// One key, expanded once, for either direction.
pub struct AeadKey {
    key: LessSafeKey,
}

impl AeadKey {
    /// Expands `key`.
    ///
    /// # Errors
    /// When `key` is not [`Algorithm::key_bytes`] long.
    pub fn new(algorithm: Algorithm, key: &[u8]) -> Result<Self, KeyError> {
        let unbound = UnboundKey::new(algorithm.implementation(), key).map_err(|_| KeyError {
            expected: algorithm.key_bytes(),
            given: key.len(),
        })?;
        Ok(Self {
            key: LessSafeKey::new(unbound),
        })
    }

    /// Encrypts `plaintext` where it stands and returns the tag over it and `aad`.
    pub fn seal_in_place(
        &self,
        nonce: [u8; 12],
        aad: &[u8],
        plaintext: &mut [u8],
    ) -> [u8; TAG_BYTES] {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::from(aad), plaintext)
            .expect("a packet is far below the 64 GiB that one nonce may cover");
        tag.as_ref()
            .try_into()
            .expect("both algorithms have tags of 16 bytes")
    }

    /// Checks and decrypts `sealed` (ciphertext, then tag) where it stands; the plaintext is its first bytes, as many as
    /// returned. On error the buffer's content is undefined and must not be used.
    ///
    /// # Errors
    /// When the packet is shorter than a tag, or was not sealed with this key, nonce and `aad`.
    pub fn open_in_place(
        &self,
        nonce: [u8; 12],
        aad: &[u8],
        sealed: &mut [u8],
    ) -> Result<usize, OpenError> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let plaintext = self
            .key
            .open_in_place(nonce, Aad::from(aad), sealed)
            .map_err(|_| OpenError)?;
        Ok(plaintext.len())
    }
}

impl fmt::Debug for AeadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the key itself.
        f.debug_struct("AeadKey").finish_non_exhaustive()
    }
}

/// The key given has the wrong length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyError {
    /// Bytes that the algorithm takes.
    pub expected: usize,
    /// Bytes given.
    pub given: usize,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, given } = self;
        write!(
            f,
            "the key has {given} bytes, the algorithm takes {expected}"
        )
    }
}

impl std::error::Error for KeyError {}

/// The packet was not sealed by who holds the key, or was damaged. Drop it; more cannot and must not be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenError;

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the packet does not authenticate")
    }
}

impl std::error::Error for OpenError {}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Algorithm; 2] = [Algorithm::Aes128Gcm, Algorithm::ChaCha20Poly1305];

    fn key(algorithm: Algorithm) -> AeadKey {
        AeadKey::new(algorithm, &[7; 32][..algorithm.key_bytes()]).unwrap()
    }

    #[test]
    fn opens_what_it_sealed_and_nothing_else() {
        for algorithm in BOTH {
            let key = key(algorithm);
            let mut packet = *b"move north......................";
            let tag = key.seal_in_place([1; 12], b"header", &mut packet[..10]);
            packet[10..26].copy_from_slice(&tag);
            let sealed = &packet[..26];

            let mut copy = sealed.to_vec();
            assert_eq!(key.open_in_place([1; 12], b"header", &mut copy), Ok(10));
            assert_eq!(&copy[..10], b"move north");

            let mut copy = sealed.to_vec();
            copy[3] ^= 1;
            assert_eq!(
                key.open_in_place([1; 12], b"header", &mut copy),
                Err(OpenError)
            );
            assert_eq!(
                key.open_in_place([2; 12], b"header", &mut sealed.to_vec()),
                Err(OpenError)
            );
            assert_eq!(
                key.open_in_place([1; 12], b"heading", &mut sealed.to_vec()),
                Err(OpenError)
            );
            assert_eq!(
                key.open_in_place([1; 12], b"", &mut [0; 15]),
                Err(OpenError)
            );
        }
    }

    /// NIST's GCM test case 1: zero key, zero nonce, nothing sealed.
    #[test]
    fn agrees_with_the_published_vector() {
        let key = AeadKey::new(Algorithm::Aes128Gcm, &[0; 16]).unwrap();
        let tag = key.seal_in_place([0; 12], &[], &mut []);
        assert_eq!(
            u128::from_be_bytes(tag),
            0x58e2_fcce_fa7e_3061_367f_1d57_a4e7_455a
        );
    }

    #[test]
    fn refuses_keys_of_the_wrong_length() {
        for algorithm in BOTH {
            let error = AeadKey::new(algorithm, &[0; 5]).unwrap_err();
            assert_eq!(
                error,
                KeyError {
                    expected: algorithm.key_bytes(),
                    given: 5
                }
            );
        }
    }
}
