//! A peer that holds its session's keys and says what it likes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use punctual_lab::world::LabAead;
use punctual_proto::crypto::{Aead, AeadKey, Algorithm, OpenError};

/// Frames, each of the next packet that has room for them.
pub(crate) type Lies = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// Seals what a dishonest peer wants to say instead of what its endpoint says.
pub(crate) struct LyingAead(pub(crate) Lies);

struct LyingKey {
    honest: Box<dyn AeadKey>,
    lies: Lies,
}

impl Aead for LyingAead {
    fn key(&self, algorithm: Algorithm, key: &[u8]) -> Box<dyn AeadKey> {
        Box::new(LyingKey {
            honest: LabAead.key(algorithm, key),
            lies: Arc::clone(&self.0),
        })
    }

    fn preferred(&self) -> Algorithm {
        LabAead.preferred()
    }
}

impl AeadKey for LyingKey {
    fn seal(&self, nonce: [u8; 12], header: &[u8], buffer: &mut [u8]) -> [u8; 16] {
        let mut lies = self.lies.lock().unwrap();
        if let Some(lie) = lies.pop_front_if(|lie| lie.len() <= buffer.len()) {
            buffer.fill(0);
            buffer[..lie.len()].copy_from_slice(&lie);
        }
        self.honest.seal(nonce, header, buffer)
    }

    fn open(&self, nonce: [u8; 12], header: &[u8], buffer: &mut [u8]) -> Result<usize, OpenError> {
        self.honest.open(nonce, header, buffer)
    }
}
