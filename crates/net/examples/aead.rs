//! What a packet key holds and what a packet costs. Run with
//! `cargo run --release -p punctual-net --example aead`.
//!
//! The cipher library allocates with C's `malloc`, which a Rust allocator does not see; so the C library is asked. It
//! counts what both take, its own bookkeeping (8 bytes an allocation, rounded up to 16) included.

#[path = "sys/heap.rs"]
mod heap;

use std::hint::black_box;
use std::time::Instant;

use punctual_net::crypto::{AeadKey, Algorithm, preferred_algorithm};

const KEYS: usize = 1_000;
const ROUNDS: u32 = 200_000;
/// The best of several, since other programs disturb single ones.
const REPEATS: usize = 7;

fn main() {
    println!("preferred here: {:?}", preferred_algorithm());
    for algorithm in [Algorithm::Aes128Gcm, Algorithm::ChaCha20Poly1305] {
        let key = AeadKey::new(algorithm, &[7; 32][..algorithm.key_bytes()]).expect("right length");
        println!("{algorithm:?}");
        println!("  size of the value   {:>6} bytes", size_of::<AeadKey>());
        match heap_of_a_key(algorithm) {
            Some(bytes) => println!("  heap of a key       {bytes:>6} bytes"),
            None => println!("  heap of a key       unknown on this system"),
        }
        if let Some(bytes) = heap_of_use(&key) {
            println!("  heap left by use    {bytes:>6} bytes");
        }
        for len in [100, 1_000] {
            let (seal, open) = (time_seal(&key, len), time_open(&key, len));
            println!("  {len:>5} bytes: seal {seal:>6.0} ns, open {open:>6.0} ns");
        }
    }
}

fn heap_of_a_key(algorithm: Algorithm) -> Option<usize> {
    let material = [7; 32];
    let mut keys = Vec::with_capacity(KEYS);
    let before = heap::in_use()?;
    for _ in 0..KEYS {
        keys.push(AeadKey::new(algorithm, &material[..algorithm.key_bytes()]).ok()?);
    }
    let held = heap::in_use()? - before;
    black_box(&keys);
    Some(held.div_ceil(KEYS))
}

fn heap_of_use(key: &AeadKey) -> Option<usize> {
    let mut packet = [0; 116];
    let before = heap::in_use()?;
    for counter in 0..1_000 {
        let tag = key.seal_in_place(nonce(counter), b"header", &mut packet[..100]);
        packet[100..].copy_from_slice(&tag);
        key.open_in_place(nonce(counter), b"header", &mut packet)
            .ok()?;
    }
    Some(heap::in_use()?.saturating_sub(before))
}

fn time_seal(key: &AeadKey, len: usize) -> f64 {
    let mut packet = vec![0; len];
    best_of(|round| {
        let tag = key.seal_in_place(nonce(round), b"twelve bytes", black_box(&mut packet));
        black_box(tag);
    })
}

fn time_open(key: &AeadKey, len: usize) -> f64 {
    let mut sealed = vec![0; len];
    let tag = key.seal_in_place(nonce(0), b"twelve bytes", &mut sealed);
    sealed.extend_from_slice(&tag);
    let mut packet = sealed.clone();
    // Opening destroys the ciphertext; the copy that restores it takes some 10 ns and is part of the figure.
    best_of(|_| {
        packet.copy_from_slice(&sealed);
        let opened = key.open_in_place(nonce(0), b"twelve bytes", black_box(&mut packet));
        assert_eq!(opened, Ok(len));
    })
}

fn best_of(mut operation: impl FnMut(u32)) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let start = Instant::now();
        for round in 0..ROUNDS {
            operation(round);
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(ROUNDS));
    }
    best
}

fn nonce(counter: u32) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[8..].copy_from_slice(&counter.to_be_bytes());
    nonce
}
