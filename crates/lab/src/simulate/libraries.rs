//! Tables that several runs use.

use std::sync::{Arc, Mutex, PoisonError};

use punctual_policy::{Library, PolicyKind};

/// One [`Library`] of each kind of policy, for any number of runs and threads. What a run needs is built before it begins, so that runs
/// are the same whoever else uses the tables.
#[derive(Debug, Default)]
pub struct Libraries(Mutex<Vec<Arc<Library>>>);

impl Libraries {
    /// The library of a kind.
    pub(super) fn of(&self, kind: PolicyKind) -> Arc<Library> {
        let mut libraries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = libraries.iter().find(|library| library.kind() == kind) {
            return Arc::clone(library);
        }
        let library = Arc::new(Library::new(kind));
        libraries.push(Arc::clone(&library));
        library
    }
}
