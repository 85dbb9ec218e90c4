//! Content that the application lends: what it has written for it runs where it may call the endpoint, and where a panic of it ends nobody's session.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use crate::SharedContent;

/// Content that the protocol has no more use for, and that was not let go of yet: under the endpoint's lock nothing of the application is dropped.
#[derive(Default)]
pub(crate) struct Returned(Mutex<Vec<SharedContent>>);

impl Returned {
    fn add(&self, content: SharedContent) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(content);
    }

    /// Lets go of it. To be called without the endpoint's lock.
    pub(crate) fn let_go(&self) {
        let all = core::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for content in all {
            // (Whoever panics has been told of it by the panic hook.)
            let _ = catch_unwind(AssertUnwindSafe(|| drop(content)));
        }
    }
}

/// The application's content, as the protocol holds it.
struct Lent {
    content: Option<SharedContent>,
    to: Arc<Returned>,
}

/// So that the protocol can read it without a panic, and returns it to `to`.
pub(crate) fn lend(content: SharedContent, to: &Arc<Returned>) -> SharedContent {
    Arc::new(Lent {
        content: Some(content),
        to: Arc::clone(to),
    })
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        let Some(content) = &self.content else {
            return &[];
        };
        // (What it lacks is zeros.)
        catch_unwind(AssertUnwindSafe(|| (**content).as_ref())).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(content) = self.content.take() {
            self.to.add(content);
        }
    }
}
