//! Lines of a file, one at a time, with bounds.

use std::io::{self, BufRead, Read};

use super::TraceErrorKind;

/// Longest line; those of all formats are below 200 bytes.
const LINE_BYTES: u64 = 4096;
/// What some programs begin UTF-8 files with, and nobody sees.
const MARK: &[u8] = "\u{feff}".as_bytes();
/// Most lines. At a line each 15 ms this is 8 days.
const LINES: u64 = 50_000_000;
/// Most bytes.
pub(super) const FILE_BYTES: u64 = 2 << 30;
/// Most samples of a ping log (24 bytes each), which can state more lost probes than it has lines.
pub(super) const SAMPLES: u64 = 20_000_000;
/// Most probes lost in a row: at one each 15 ms, four hours.
pub(super) const PROBES_LOST_IN_A_ROW: u64 = 1_000_000;

/// Reads lines; skips empty ones and comments (`#`).
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: io::Take<R>,
    line: Vec<u8>,
    number: u64,
    /// The current line was looked at but not taken.
    is_peeked: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader: reader.take(FILE_BYTES + 1),
            line: Vec::new(),
            number: 0,
            is_peeked: false,
        }
    }

    /// The number of the current line, from 1.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// The next line, which stays the next line.
    pub(super) fn peek(&mut self) -> Result<Option<&str>, TraceErrorKind> {
        let is_there = self.next()?.is_some();
        self.is_peeked = is_there;
        if is_there {
            self.text().map(Some)
        } else {
            Ok(None)
        }
    }

    /// The next line, trimmed; None at the end.
    pub(super) fn next(&mut self) -> Result<Option<&str>, TraceErrorKind> {
        if self.is_peeked {
            self.is_peeked = false;
            return self.text().map(Some);
        }
        loop {
            self.line.clear();
            let mut bounded = (&mut self.reader).take(LINE_BYTES + 1);
            let read = bounded
                .read_until(b'\n', &mut self.line)
                .map_err(TraceErrorKind::Read)?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if self.number == 1 && self.line.starts_with(MARK) {
                self.line.drain(..MARK.len());
            }
            if read as u64 > LINE_BYTES {
                return Err(TraceErrorKind::LineTooLong { limit: LINE_BYTES });
            }
            if self.reader.limit() == 0 {
                return Err(TraceErrorKind::TooLarge {
                    what: "bytes",
                    limit: FILE_BYTES,
                });
            }
            if self.number > LINES {
                return Err(TraceErrorKind::TooLarge {
                    what: "lines",
                    limit: LINES,
                });
            }
            let is_content = |line: &[u8]| !line.is_empty() && line[0] != b'#';
            if is_content(self.line.trim_ascii()) {
                return self.text().map(Some);
            }
        }
    }

    fn text(&self) -> Result<&str, TraceErrorKind> {
        std::str::from_utf8(self.line.trim_ascii()).map_err(|_| TraceErrorKind::NotText)
    }
}

/// Whether the first byte that is not white space is `{`. Takes the white space.
pub(super) fn begins_with_brace(reader: &mut impl BufRead) -> io::Result<bool> {
    // Only spaces of the first buffer: a file that begins with more is no JSON that anyone wrote, and lines taken here
    // would be missing from the line numbers.
    let buffer = reader.fill_buf()?;
    Ok(buffer.trim_ascii_start().first() == Some(&b'{'))
}
