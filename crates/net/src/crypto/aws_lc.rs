//! The ciphers as the protocol asks for them.

use punctual_proto::crypto::{self as proto, Aead};

use super::{AeadKey, Algorithm, preferred_algorithm};

/// Ciphers from `aws-lc-rs` for a [`punctual_proto::Endpoint`].
///
/// A key is one box of [`AeadKey`]; the state that it points to is in C's heap (`examples/aead.rs` tells how large).
#[derive(Clone, Copy, Debug, Default)]
pub struct AwsLc;

impl Aead for AwsLc {
    fn key(&self, algorithm: proto::Algorithm, key: &[u8]) -> Box<dyn proto::AeadKey> {
        let algorithm = match algorithm {
            proto::Algorithm::Aes128Gcm => Algorithm::Aes128Gcm,
            proto::Algorithm::ChaCha20Poly1305 => Algorithm::ChaCha20Poly1305,
        };
        let key = AeadKey::new(algorithm, key);
        Box::new(key.expect("the protocol makes keys of the algorithm's length"))
    }

    fn preferred(&self) -> proto::Algorithm {
        match preferred_algorithm() {
            Algorithm::Aes128Gcm => proto::Algorithm::Aes128Gcm,
            Algorithm::ChaCha20Poly1305 => proto::Algorithm::ChaCha20Poly1305,
        }
    }
}

impl proto::AeadKey for AeadKey {
    fn seal(&self, nonce: [u8; 12], header: &[u8], buffer: &mut [u8]) -> [u8; 16] {
        self.seal_in_place(nonce, header, buffer)
    }

    fn open(
        &self,
        nonce: [u8; 12],
        header: &[u8],
        buffer: &mut [u8],
    ) -> Result<usize, proto::OpenError> {
        self.open_in_place(nonce, header, buffer)
            .map_err(|_| proto::OpenError)
    }
}
