//! Reading and writing with a bound: integers are big-endian, variable ones as in RFC 9000 section 16.

use super::DecodeError;

/// Reads values from a slice; every read is checked.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes not yet read.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// `Truncated` when fewer are left.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// All that is left.
    pub const fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest;
        self.rest = &[];
        rest
    }

    /// The next `N` bytes as an array.
    ///
    /// # Errors
    /// `Truncated` when fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    /// One byte.
    ///
    /// # Errors
    /// `Truncated` at the end.
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes.
    ///
    /// # Errors
    /// `Truncated` at the end.
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Four bytes.
    ///
    /// # Errors
    /// `Truncated` at the end.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Eight bytes.
    ///
    /// # Errors
    /// `Truncated` at the end.
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    /// A variable-length integer of RFC 9000 section 16: 1, 2, 4 or 8 bytes, up to 2^62 - 1.
    ///
    /// # Errors
    /// `Truncated` at the end.
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        let first = *self.rest.first().ok_or(DecodeError::Truncated)?;
        let value = match first >> 6 {
            0 => u64::from(self.u8()?),
            1 => u64::from(self.u16()? & 0x3fff),
            2 => u64::from(self.u32()? & 0x3fff_ffff),
            _ => self.u64()? & 0x3fff_ffff_ffff_ffff,
        };
        Ok(value)
    }
}

/// Writes values into a slice. Writing past the end is remembered and reported by [`Writer::finish`], never a panic.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    len: usize,
    overflow: bool,
}

impl<'a> Writer<'a> {
    /// Writes from the start of `buffer`.
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self {
            buffer,
            len: 0,
            overflow: false,
        }
    }

    /// Bytes written.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that still fit.
    #[must_use]
    pub const fn room(&self) -> usize {
        self.buffer.len() - self.len
    }

    /// Appends `bytes`.
    pub fn bytes(&mut self, bytes: &[u8]) {
        if let Some(space) = self.space(bytes.len()) {
            space.copy_from_slice(bytes);
        }
    }

    /// The next `len` bytes to be filled by the caller; `None` (and remembered) when they do not fit.
    pub fn space(&mut self, len: usize) -> Option<&mut [u8]> {
        if len > self.room() {
            self.overflow = true;
            return None;
        }
        let start = self.len;
        self.len += len;
        Some(&mut self.buffer[start..self.len])
    }

    /// Appends one byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    /// Appends two bytes.
    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    /// Appends four bytes.
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    /// Appends eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    /// Appends a variable-length integer (RFC 9000 section 16); values of 2^62 and more count as overflow.
    pub fn varint(&mut self, value: u64) {
        match value {
            0..0x40 => self.u8(value as u8),
            0x40..0x4000 => self.u16(value as u16 | 0x4000),
            0x4000..0x4000_0000 => self.u32(value as u32 | 0x8000_0000),
            0x4000_0000..0x4000_0000_0000_0000 => self.u64(value | 0xc000_0000_0000_0000),
            _ => self.overflow = true,
        }
    }

    /// The length written, or `None` when something did not fit.
    #[must_use]
    pub const fn finish(self) -> Option<usize> {
        if self.overflow { None } else { Some(self.len) }
    }
}

/// The largest variable-length integer.
pub(super) const VARINT_MAX: u64 = (1 << 62) - 1;

/// Bytes that `value` takes as a variable-length integer.
pub(crate) const fn varint_len(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_of_rfc_9000_appendix_a() {
        // The four examples of RFC 9000, appendix A.1.
        let examples: [(&[u8], u64); 4] = [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ];
        for (bytes, value) in examples {
            assert_eq!(Reader::new(bytes).varint(), Ok(value));
            let mut buffer = [0; 8];
            let mut writer = Writer::new(&mut buffer);
            writer.varint(value);
            assert_eq!(varint_len(value), bytes.len());
            assert_eq!(writer.finish(), Some(bytes.len()));
            assert_eq!(&buffer[..bytes.len()], bytes);
        }
    }

    #[test]
    fn what_does_not_fit_is_reported() {
        let mut buffer = [0; 3];
        let mut writer = Writer::new(&mut buffer);
        writer.u16(7);
        writer.u16(7);
        assert_eq!(writer.finish(), None);
        assert_eq!(
            Reader::new(&[0x80, 1]).varint(),
            Err(DecodeError::Truncated)
        );
    }
}
