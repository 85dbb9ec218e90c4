//! Randomness from the operating system. The protocol draws everything from the seed that it is given; this is the seed.

use std::fmt;

/// 32 random bytes, fit for keys. May block once, early in the boot of a machine, until the kernel has gathered enough.
pub fn seed() -> Result<[u8; 32], EntropyError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(EntropyError)?;
    Ok(bytes)
}

/// The operating system gave no randomness. Nothing secret can be done on such a machine; do not go on.
#[derive(Clone, Copy, Debug)]
pub struct EntropyError(getrandom::Error);

impl fmt::Display for EntropyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the operating system gave no random bytes: {}", self.0)
    }
}

impl std::error::Error for EntropyError {}

#[cfg(test)]
mod tests {
    #[test]
    fn seeds_differ() {
        assert_ne!(super::seed().unwrap(), super::seed().unwrap());
    }
}
