//! Packet keys: from a traffic secret by HKDF-SHA256, replaced by the next generation on the way (key update).
//!
//! The nonce of packet n is the direction's IV XOR n. Numbers never repeat within a session, and every session has fresh
//! ephemeral keys from both sides, so nonces cannot repeat across restarts or reconnects either.

use alloc::boxed::Box;

use hkdf::Hkdf;
use sha2::Sha256;

use super::{Aead, AeadKey, Algorithm, OpenError};

/// A traffic secret: 32 bytes from which a generation of keys, and the next secret, follow.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// HKDF-Expand with `label` as info.
    pub(crate) fn expand<const N: usize>(&self, label: &[u8]) -> [u8; N] {
        let mut out = [0; N];
        // N is at most 32 here, and 32 bytes are a valid pseudorandom key: neither call can fail.
        let hkdf = Hkdf::<Sha256>::from_prk(&self.0).expect("32 bytes are one hash length");
        hkdf.expand(label, &mut out)
            .expect("the output is far below 255 hash lengths");
        out
    }

    fn next(&self) -> Self {
        Self(self.expand(b"punctual v1 next"))
    }
}

/// HKDF-Extract and -Expand in one: a key for one use from a long-lived secret and a salt.
pub(crate) fn derive<const N: usize>(secret: &[u8], salt: &[u8], label: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    Hkdf::<Sha256>::new(Some(salt), secret)
        .expand(label, &mut out)
        .expect("the output is far below 255 hash lengths");
    out
}

struct Generation {
    key: Box<dyn AeadKey>,
    iv: [u8; 12],
}

impl Generation {
    fn new(aead: &dyn Aead, algorithm: Algorithm, secret: &Secret) -> Self {
        let key: [u8; 32] = secret.expand(b"punctual v1 key");
        Self {
            key: aead.key(algorithm, &key[..algorithm.key_len()]),
            iv: secret.expand(b"punctual v1 iv"),
        }
    }

    fn nonce(&self, number: u64) -> [u8; 12] {
        let mut nonce = self.iv;
        for (byte, part) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= part;
        }
        nonce
    }
}

/// Keys of the direction that is sent.
pub(crate) struct SealKeys {
    generation: Generation,
    secret: Secret,
    /// Key updates so far.
    count: u32,
}

impl SealKeys {
    pub(crate) fn new(aead: &dyn Aead, algorithm: Algorithm, secret: Secret) -> Self {
        Self {
            generation: Generation::new(aead, algorithm, &secret),
            secret,
            count: 0,
        }
    }

    /// Key updates so far.
    pub(crate) const fn generation(&self) -> u32 {
        self.count
    }

    pub(crate) const fn phase(&self) -> bool {
        self.count % 2 == 1
    }

    /// Goes on with the next generation.
    pub(crate) fn update(&mut self, aead: &dyn Aead, algorithm: Algorithm) {
        self.secret = self.secret.next();
        self.generation = Generation::new(aead, algorithm, &self.secret);
        self.count = self.count.wrapping_add(1);
    }

    /// Seals a packet of `header_len` bytes of header and the rest plaintext, followed by room for the tag.
    pub(crate) fn seal(&self, number: u64, packet: &mut [u8], header_len: usize) {
        let (header, rest) = packet.split_at_mut(header_len);
        let (content, tag) = rest.split_at_mut(rest.len() - super::super::wire::TAG_LEN);
        tag.copy_from_slice(&self.generation.key.seal(
            self.generation.nonce(number),
            header,
            content,
        ));
    }
}

/// Keys of the direction that is received: the current generation, the one before while its packets may still come, and the
/// next one while the peer may have begun it.
pub(crate) struct OpenKeys {
    current: Generation,
    secret: Secret,
    /// Key updates so far.
    count: u32,
    /// First packet number seen in the current generation; the previous one serves only below it.
    first_number: u64,
    previous: Option<Generation>,
    /// Made when a packet of the other phase comes, and kept so that forged ones cost no more than a key.
    next: Option<Box<Generation>>,
}

/// What opening a packet showed.
pub(crate) struct Opened {
    pub(crate) len: usize,
    /// The peer has begun a new generation with this packet.
    pub(crate) updated: bool,
}

impl OpenKeys {
    pub(crate) fn new(aead: &dyn Aead, algorithm: Algorithm, secret: Secret) -> Self {
        let current = Generation::new(aead, algorithm, &secret);
        Self {
            current,
            secret,
            count: 0,
            first_number: 0,
            previous: None,
            next: None,
        }
    }

    /// Opens a packet in place: the plaintext then follows the header.
    pub(crate) fn open(
        &mut self,
        aead: &dyn Aead,
        algorithm: Algorithm,
        number: u64,
        phase: bool,
        packet: &mut [u8],
        header_len: usize,
    ) -> Result<Opened, OpenError> {
        let (header, sealed) = packet.split_at_mut(header_len);
        if !self.is_of_next(number, phase) {
            let generation = match &self.previous {
                Some(previous) if phase != self.phase() => previous,
                _ => &self.current,
            };
            let len = (generation.key).open(generation.nonce(number), header, sealed)?;
            return Ok(Opened {
                len,
                updated: false,
            });
        }
        let next = self
            .next
            .get_or_insert_with(|| Box::new(Generation::new(aead, algorithm, &self.secret.next())));
        let len = next.key.open(next.nonce(number), header, sealed)?;
        let next = self.next.take().expect("it was there a line above");
        self.previous = Some(core::mem::replace(&mut self.current, *next));
        self.secret = self.secret.next();
        self.count = self.count.wrapping_add(1);
        self.first_number = number;
        Ok(Opened { len, updated: true })
    }

    /// Key updates so far.
    pub(crate) const fn generation(&self) -> u32 {
        self.count
    }

    /// First packet number seen in the current generation.
    pub(crate) const fn first_number(&self) -> u64 {
        self.first_number
    }

    /// Whether only the next generation can open such a packet.
    pub(crate) const fn is_of_next(&self, number: u64, phase: bool) -> bool {
        let is_of_previous = self.previous.is_some() && number < self.first_number;
        phase != self.phase() && !is_of_previous
    }

    const fn phase(&self) -> bool {
        self.count % 2 == 1
    }

    /// Forgets the generation before the current one, once its last packets cannot come any more.
    pub(crate) fn forget_previous(&mut self) {
        self.previous = None;
    }
}
