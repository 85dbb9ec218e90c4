//! Ctrl-C for commands that have something to finish: they look at a flag; a second Ctrl-C ends the program at once.
//!
//! A command that does not call [`watch`] is ended by the signal itself, which shells report as 130 too.

use std::sync::atomic::{AtomicBool, Ordering};

static PRESSED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C sets a flag, see [`is_pressed`].
pub(crate) fn watch() {
    // Fails only when called twice, and then the first call's handler does the same.
    let _ = ctrlc::set_handler(|| {
        if PRESSED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
}

/// Whether Ctrl-C was pressed since [`watch`].
pub(crate) fn is_pressed() -> bool {
    PRESSED.load(Ordering::Relaxed)
}
