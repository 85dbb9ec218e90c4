//! What a message of the demo says of itself: which it is, and when it was sent.

/// Bytes at the beginning of a message.
pub(super) const STAMP_LEN: usize = 16;

/// Marks a message with its number and its time.
pub(super) fn write(message: &mut [u8], number: u64, sent_nanos: u64) {
    message[..8].copy_from_slice(&number.to_le_bytes());
    message[8..STAMP_LEN].copy_from_slice(&sent_nanos.to_le_bytes());
}

/// Number and time of a message.
pub(super) fn read(message: &[u8]) -> Option<(u64, u64)> {
    let (number, rest) = message.split_first_chunk::<8>()?;
    let (sent_nanos, _) = rest.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*number), u64::from_le_bytes(*sent_nanos)))
}
