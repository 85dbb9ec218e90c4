//! What the fuzzer calls, as plain functions: they take bytes, and panic when something is wrong.
//!
//! - [`decode`]: every decoder of the protocol; what was read is written and read again, and must be equal.
//! - [`hello`]: a server's answer to a datagram, Noise included (slow: a Diffie-Hellman a case).
//! - [`reassemble`]: symbols in any order, with losses and repetitions, against a model: every message arrives once.
//! - [`trace`]: files of recorded networks.
//! - `session`: whole sessions as sequences of operations. Its interpreter belongs to `crates/lab`, next to the virtual
//!   network; add it here as one line and a file in `fuzz_targets/`.
//!
//! Two ways to run them:
//!
//! ```text
//! cargo test                                                      some seconds, deterministic, stable toolchain
//! cargo +nightly fuzz run decode --features libfuzzer -- -max_len=1500     for as long as you like
//! ```

mod decode;
mod reassemble;

pub use decode::{decode, hello};
pub use reassemble::reassemble;

/// Reads a file of a recorded network.
pub fn trace(data: &[u8]) {
    // An error is an answer; the bounds on lines, bytes and samples are in the reader.
    let _ = punctual_lab::trace::Trace::read(data, "fuzzed");
}
