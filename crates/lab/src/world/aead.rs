//! A stand-in for the ciphers: fast, reproducible, and not secure. It keeps what the protocol relies on: another key, another
//! nonce, another header or a changed byte, and the packet does not open; the content is not readable by accident either.

use punctual_proto::crypto::{Aead, AeadKey, Algorithm, OpenError};

/// Makes keys for the virtual network.
#[derive(Debug, Clone, Copy, Default)]
pub struct LabAead;

struct LabKey([u64; 2]);

impl Aead for LabAead {
    fn key(&self, algorithm: Algorithm, key: &[u8]) -> Box<dyn AeadKey> {
        let seed = match algorithm {
            Algorithm::Aes128Gcm => 1,
            Algorithm::ChaCha20Poly1305 => 2,
        };
        Box::new(LabKey([digest(seed, key), digest(seed + 2, key)]))
    }

    fn preferred(&self) -> Algorithm {
        Algorithm::Aes128Gcm
    }
}

impl LabKey {
    fn tag(&self, nonce: [u8; 12], header: &[u8], content: &[u8]) -> [u8; 16] {
        let start = digest(self.0[0], &nonce) ^ digest(self.0[1], header);
        let sum = digest(start, content);
        let mut tag = [0; 16];
        tag[..8].copy_from_slice(&sum.to_le_bytes());
        tag[8..].copy_from_slice(&mix(sum ^ self.0[1]).to_le_bytes());
        tag
    }

    fn mask(&self, nonce: [u8; 12], buffer: &mut [u8]) {
        let mask = digest(self.0[1], &nonce);
        let (words, rest) = buffer.as_chunks_mut::<8>();
        for word in words {
            *word = (u64::from_le_bytes(*word) ^ mask).to_le_bytes();
        }
        for (byte, part) in rest.iter_mut().zip(mask.to_le_bytes()) {
            *byte ^= part;
        }
    }
}

impl AeadKey for LabKey {
    fn seal(&self, nonce: [u8; 12], header: &[u8], buffer: &mut [u8]) -> [u8; 16] {
        self.mask(nonce, buffer);
        self.tag(nonce, header, buffer)
    }

    fn open(&self, nonce: [u8; 12], header: &[u8], buffer: &mut [u8]) -> Result<usize, OpenError> {
        let len = buffer.len().checked_sub(16).ok_or(OpenError)?;
        let (content, tag) = buffer.split_at_mut(len);
        if self.tag(nonce, header, content) != tag {
            return Err(OpenError);
        }
        self.mask(nonce, content);
        Ok(len)
    }
}

/// Four lanes of multiply-and-rotate, so that a packet costs tens of nanoseconds.
fn digest(seed: u64, bytes: &[u8]) -> u64 {
    let mut lanes = [
        seed ^ 0x9e37_79b9_7f4a_7c15,
        seed.rotate_left(17),
        !seed,
        seed.wrapping_mul(0xff51_afd7_ed55_8ccd),
    ];
    let (blocks, rest) = bytes.as_chunks::<32>();
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = (*lane ^ u64::from_le_bytes(*word))
                .wrapping_mul(0xbf58_476d_1ce4_e5b9)
                .rotate_left(29);
        }
    }
    for (index, &byte) in rest.iter().enumerate() {
        lanes[index % 4] = (lanes[index % 4] ^ u64::from(byte))
            .wrapping_mul(0xbf58_476d_1ce4_e5b9)
            .rotate_left(29);
    }
    lanes
        .into_iter()
        .fold(bytes.len() as u64, |sum, lane| mix(sum ^ lane))
}

const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
