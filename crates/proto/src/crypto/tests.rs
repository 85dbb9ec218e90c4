//! Key updates and nonces, with a cipher that is only for tests.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use sha2::{Digest, Sha256};

use super::*;

/// SHA-256 as stream cipher and as tag: slow, and as strict as a real AEAD about key, nonce, header and content.
#[derive(Clone, Copy)]
pub(crate) struct TestAead(pub(crate) Algorithm);

struct TestKey(Vec<u8>);

impl Aead for TestAead {
    fn key(&self, algorithm: Algorithm, key: &[u8]) -> Box<dyn AeadKey> {
        assert_eq!(key.len(), algorithm.key_len());
        Box::new(TestKey(key.to_vec()))
    }

    fn preferred(&self) -> Algorithm {
        self.0
    }
}

impl TestKey {
    fn hash(&self, parts: [&[u8]; 3]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(&self.0);
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }

    fn mask(&self, nonce: [u8; 12], buffer: &mut [u8]) {
        for (index, chunk) in buffer.chunks_mut(32).enumerate() {
            let stream = self.hash([&nonce, &(index as u64).to_be_bytes(), b"stream"]);
            chunk
                .iter_mut()
                .zip(stream)
                .for_each(|(byte, part)| *byte ^= part);
        }
    }

    fn tag(&self, nonce: [u8; 12], header: &[u8], content: &[u8]) -> [u8; 16] {
        let hash = self.hash([&nonce, header, content]);
        core::array::from_fn(|i| hash[i])
    }
}

impl AeadKey for TestKey {
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

const BOTH: [Algorithm; 2] = [Algorithm::Aes128Gcm, Algorithm::ChaCha20Poly1305];
const HEADER: &[u8] = b"header.";

struct Pair {
    aead: TestAead,
    algorithm: Algorithm,
    seal: SealKeys,
    open: OpenKeys,
}

impl Pair {
    fn new(algorithm: Algorithm) -> Self {
        let aead = TestAead(algorithm);
        Self {
            aead,
            algorithm,
            seal: SealKeys::new(&aead, algorithm, Secret([7; 32])),
            open: OpenKeys::new(&aead, algorithm, Secret([7; 32])),
        }
    }

    fn sealed(&self, number: u64) -> (u64, bool, Vec<u8>) {
        let mut packet = HEADER.to_vec();
        packet.extend_from_slice(&number.to_be_bytes());
        packet.resize(packet.len() + 16, 0);
        self.seal.seal(number, &mut packet, HEADER.len());
        (number, self.seal.phase(), packet)
    }

    fn update(&mut self) {
        self.seal.update(&self.aead, self.algorithm);
    }

    /// Whether the packet opens, and if so whether it began a generation.
    fn open(&mut self, (number, phase, packet): &(u64, bool, Vec<u8>)) -> Option<bool> {
        let mut packet = packet.clone();
        let is_of_next = self.open.is_of_next(*number, *phase);
        let opened = self
            .open
            .open(
                &self.aead,
                self.algorithm,
                *number,
                *phase,
                &mut packet,
                HEADER.len(),
            )
            .ok()?;
        assert_eq!(
            packet[HEADER.len()..HEADER.len() + opened.len],
            number.to_be_bytes()
        );
        assert_eq!(opened.updated, is_of_next);
        Some(opened.updated)
    }
}

#[test]
fn packets_open_across_updates_in_any_order() {
    for algorithm in BOTH {
        let mut pair = Pair::new(algorithm);
        let early = pair.sealed(0);
        let late = pair.sealed(1);
        pair.update();
        let first_of_next = pair.sealed(2);
        let second_of_next = pair.sealed(3);
        assert_eq!(pair.open(&early), Some(false));
        assert_eq!(pair.open(&second_of_next), Some(true));
        assert_eq!(pair.open(&first_of_next), Some(false));
        assert_eq!(
            pair.open(&late),
            Some(false),
            "sealed before the update, and late"
        );
        pair.open.forget_previous();
        assert_eq!(pair.open(&late), None, "too late");
        for number in 4..20 {
            pair.update();
            let packet = pair.sealed(number);
            assert_eq!(pair.open(&packet), Some(true));
            assert_eq!(pair.open.generation(), pair.seal.generation());
        }
    }
}

#[test]
fn a_forged_phase_changes_nothing() {
    let mut pair = Pair::new(Algorithm::ChaCha20Poly1305);
    let (number, phase, packet) = pair.sealed(0);
    for _ in 0..100 {
        assert_eq!(pair.open(&(number, !phase, packet.clone())), None);
    }
    assert_eq!(pair.open.generation(), 0);
    assert_eq!(pair.open(&(number, phase, packet)), Some(false));
    pair.update();
    let packet = pair.sealed(1);
    assert_eq!(
        pair.open(&packet),
        Some(true),
        "the key prepared for the forged ones serves the real one"
    );
}

#[test]
fn a_changed_packet_does_not_open() {
    for algorithm in BOTH {
        let mut pair = Pair::new(algorithm);
        let (number, phase, packet) = pair.sealed(5);
        for byte in 0..packet.len() {
            let mut changed = packet.clone();
            changed[byte] ^= 0x10;
            assert_eq!(pair.open(&(number, phase, changed)), None);
        }
        for other in [4, 6, 5 + (1 << 16), 5 + (1 << 32)] {
            assert_eq!(
                pair.open(&(other, phase, packet.clone())),
                None,
                "another number, another nonce"
            );
        }
        for len in HEADER.len()..packet.len() {
            assert_eq!(pair.open(&(number, phase, packet[..len].to_vec())), None);
        }
        assert_eq!(pair.open(&(number, phase, packet)), Some(false));
    }
}

/// Keys and nonces that were used.
type Used = std::sync::Mutex<BTreeSet<(Vec<u8>, [u8; 12])>>;

/// A key that writes down the nonces that it is used with.
struct NonceLog(alloc::sync::Arc<Used>);

struct NonceLogKey {
    key: Vec<u8>,
    log: alloc::sync::Arc<Used>,
}

impl Aead for NonceLog {
    fn key(&self, _: Algorithm, key: &[u8]) -> Box<dyn AeadKey> {
        Box::new(NonceLogKey {
            key: key.to_vec(),
            log: self.0.clone(),
        })
    }

    fn preferred(&self) -> Algorithm {
        Algorithm::Aes128Gcm
    }
}

impl AeadKey for NonceLogKey {
    fn seal(&self, nonce: [u8; 12], _: &[u8], _: &mut [u8]) -> [u8; 16] {
        let is_new = self
            .log
            .lock()
            .expect("no test panics with it")
            .insert((self.key.clone(), nonce));
        assert!(is_new, "a nonce was used twice with one key");
        [0; 16]
    }

    fn open(&self, _: [u8; 12], _: &[u8], _: &mut [u8]) -> Result<usize, OpenError> {
        Err(OpenError)
    }
}

/// netcode and yojimbo used nonces twice after restarts and with reused tokens. Numbers do not repeat within a direction, and
/// no two directions, generations or sessions share a key.
#[test]
fn nonce_reuse() {
    let log = NonceLog(alloc::sync::Arc::default());
    for secret in [[1; 32], [2; 32]] {
        let mut keys = SealKeys::new(&log, Algorithm::Aes128Gcm, Secret(secret));
        let numbers = (0..40u64)
            .chain((0..40).map(|i| (1 << 32) - 20 + i))
            .chain([1 << 40, (1 << 62) - 1]);
        for (index, number) in numbers.enumerate() {
            keys.seal(number, &mut [0; 40], 7);
            if index % 10 == 9 {
                keys.update(&log, Algorithm::Aes128Gcm);
            }
        }
    }
    let used = log.0.lock().expect("no test panics with it");
    assert_eq!(used.len(), 2 * 82);
    let keys: BTreeSet<_> = used.iter().map(|(key, _)| key).collect();
    assert_eq!(
        keys.len(),
        2 * 9,
        "a key for each generation of each secret"
    );
}
