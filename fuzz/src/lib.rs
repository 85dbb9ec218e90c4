//! What the fuzzer calls, as plain functions: they take bytes, and panic when something is wrong.
//!
//! - [`decode`]: every decoder of the protocol; what was read is written and read again, and must be equal.
//! - [`hello`]: a server's answer to whatever a client's first message says, sealed as it should be: cookies, tokens, Noise (slow: some Diffie-Hellmans a case).
//! - [`reassemble`]: symbols in any order, with losses and repetitions, against a model: every message arrives once.
//! - [`trace`]: files of recorded networks.
//! - [`session`]: whole sessions as operations over a hostile network; the interpreter is `punctual_lab::storm`.
//!
//! Two ways to run them:
//!
//! ```text
//! cargo test                                                      some seconds, deterministic, stable toolchain
//! cargo +nightly fuzz run decode --features libfuzzer -- -max_len=1500     for as long as you like
//! ```

mod decode;
mod hello;
mod reassemble;

pub use decode::decode;
pub use hello::hello;
pub use reassemble::reassemble;

/// A storm whose choices are `data`.
pub fn session(data: &[u8]) {
    let mut choices = punctual_lab::storm::ByteChoices::new(data);
    if let Err(broken) = punctual_lab::storm::storm(0, &mut choices) {
        panic!("{broken}");
    }
}

/// Reads a file of a recorded network.
pub fn trace(data: &[u8]) {
    // An error is an answer; the bounds on lines, bytes and samples are in the reader.
    let _ = punctual_lab::trace::Trace::read(data, "fuzzed");
}
