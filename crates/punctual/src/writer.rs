//! Messages whose content is not in memory.

use std::io;

use punctual_proto::{MessageId, SendError};

use crate::{Stream, WriteError};

/// A message whose content is handed in piece by piece, made by [`Stream::writer`]. At most 256 KiB of it wait here to be sent;
/// the peer receives it as any other message.
///
/// On threads it is an [`io::Write`], for [`io::copy`] and the like; in tasks use [`append`](Self::append). Dropped before
/// [`finish`](Self::finish) it takes the message back.
///
/// ```no_run
/// # use punctual::{SendOptions, Stream};
/// # use std::{fs::File, io};
/// # fn upload(stream: &Stream) -> Result<(), Box<dyn std::error::Error>> {
/// let mut file = File::open("island.map")?;
/// let len = file.metadata()?.len() as usize;
/// let mut writer = stream.writer(len, SendOptions::default())?;
/// io::copy(&mut file, &mut writer)?;
/// let message = writer.finish()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "when it is dropped the message is taken back"]
pub struct MessageWriter {
    stream: Stream,
    message: MessageId,
    announced: usize,
    missing: usize,
    is_finished: bool,
}

impl MessageWriter {
    pub(crate) const fn new(stream: Stream, message: MessageId, len: usize) -> Self {
        Self {
            stream,
            message,
            announced: len,
            missing: len,
            is_finished: false,
        }
    }

    /// Names the message.
    #[must_use]
    pub const fn message(&self) -> MessageId {
        self.message
    }

    /// Bytes that have not been handed in.
    #[must_use]
    pub const fn missing(&self) -> usize {
        self.missing
    }

    /// Hands in as much of `data` as there is room for now; how many bytes of it. When that is less than all, there is room again
    /// after [`Stream::writable`].
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn try_append(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        if data.len() > self.missing {
            let announced = self.announced;
            return Err(WriteError::TooLong { announced });
        }
        if data.is_empty() {
            return Ok(0);
        }
        let taken = self.stream.append(self.message, data);
        let taken = taken.map_err(|error| match error {
            SendError::Closed { why } => WriteError::Closed { why },
            _ => WriteError::Over,
        })?;
        self.missing -= taken;
        Ok(taken)
    }

    /// Hands in all of `data`, waiting for room. A future that is dropped before its end has handed in a part, which
    /// [`missing`](Self::missing) tells.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn append(&mut self, mut data: &[u8]) -> Result<(), WriteError> {
        loop {
            let taken = self.try_append(data)?;
            data = &data[taken..];
            if data.is_empty() {
                return Ok(());
            }
            self.stream.writable().await;
        }
    }

    /// As [`append`](Self::append), on this thread.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn append_blocking(&mut self, mut data: &[u8]) -> Result<(), WriteError> {
        loop {
            let taken = self.try_append(data)?;
            data = &data[taken..];
            if data.is_empty() {
                return Ok(());
            }
            self.stream.writable_blocking();
        }
    }

    /// All has been handed in; the message goes its way, and its outcome follows. Waits for nothing.
    ///
    /// # Errors
    /// [`WriteError::Incomplete`] when something is missing.
    pub fn finish(mut self) -> Result<MessageId, WriteError> {
        if self.missing > 0 {
            let missing = self.missing;
            return Err(WriteError::Incomplete { missing });
        }
        self.is_finished = true;
        Ok(self.message)
    }
}

impl Drop for MessageWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            self.stream.cancel(self.message);
        }
    }
}

/// Waits for room on this thread.
impl io::Write for MessageWriter {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let part = &data[..data.len().min(self.missing)];
        if part.is_empty() && !data.is_empty() {
            let announced = self.announced;
            return Err(WriteError::TooLong { announced }.into());
        }
        loop {
            let taken = self.try_append(part)?;
            if taken > 0 || part.is_empty() {
                return Ok(taken);
            }
            self.stream.writable_blocking();
        }
    }

    /// Nothing is kept back here.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
