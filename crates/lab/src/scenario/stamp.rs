//! The mark by which a receiver tells which message it has: the message's number in its stream and session.
//!
//! Four bytes, because that is the least payload of table 1; all else about the message, the tally knows.

/// Bytes of a stamp: no message is smaller.
pub const LEN: usize = 4;

/// Marks a message with its number.
///
/// # Panics
/// If it has less than [`LEN`] bytes.
pub fn write(message: &mut [u8], number: u32) {
    message[..LEN].copy_from_slice(&number.to_le_bytes());
}

/// The number of a message, from its first bytes. None if there are less than [`LEN`].
pub fn read(message: &[u8]) -> Option<u32> {
    message
        .first_chunk()
        .map(|bytes| u32::from_le_bytes(*bytes))
}
