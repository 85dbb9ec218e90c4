//! What the application holds of a measurement of its own.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{MeasureOptionError, MeasureProgress, Measured, Watched};
use crate::OpenError;
use crate::session::Handle;
use crate::signal::Signal;

/// A measurement that runs in a session. Dropping it stops it; what was measured is uploaded all the same.
pub struct Measurement {
    session: Arc<Handle>,
    watched: Arc<Signal<Watched>>,
}

impl Measurement {
    pub(crate) const fn new(session: Arc<Handle>, watched: Arc<Signal<Watched>>) -> Self {
        Self { session, watched }
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> MeasureProgress {
        let progress = self.watched.lock().progress;
        progress.unwrap_or(MeasureProgress::new())
    }

    /// Begins no new message and sends nothing again. The result follows within about three seconds and the time of the upload.
    pub fn stop(&self) {
        let Handle { core, id, .. } = &*self.session;
        core.lock().stop_measuring(core.now(), *id, &self.watched);
        core.wake();
    }

    /// Waits for the end. The result is handed over once.
    pub async fn result(&self) -> Measured {
        self.watched.wait(|watched| watched.result.take()).await
    }

    /// As [`result`](Self::result), on this thread. Waits for ever when the result was taken before.
    #[must_use]
    pub fn result_blocking(&self) -> Measured {
        let result = self
            .watched
            .wait_blocking(None, |watched| watched.result.take());
        result.expect("it waits without end")
    }

    /// As [`result_blocking`](Self::result_blocking), for as long as `patience`; `None` while it goes on.
    #[must_use]
    pub fn result_timeout(&self, patience: Duration) -> Option<Measured> {
        let until = Instant::now().checked_add(patience);
        self.watched
            .wait_blocking(until, |watched| watched.result.take())
    }
}

impl Drop for Measurement {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Measurement")
            .field("session", &self.session.id)
            .field("progress", &self.progress())
            .finish_non_exhaustive()
    }
}

/// Why a measurement did not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MeasureError {
    /// An option is out of its range.
    Option(MeasureOptionError),
    /// Its streams (numbers 1,022 and 1,023) could not be opened: the session measures already, is a client's of a server that measures
    /// it, uses the numbers itself, or is over.
    Stream(OpenError),
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(error) => error.fmt(f),
            Self::Stream(error) => write!(
                f,
                "the session cannot measure now ({error}): it may measure already"
            ),
        }
    }
}

impl std::error::Error for MeasureError {}
