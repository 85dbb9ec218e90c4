//! Requests to end (Ctrl-C, SIGTERM), for commands that have something to finish: they look at a flag; a second request ends the program at once.
//!
//! A command that does not call [`watch`] is ended by the signal itself, which shells report as 130 or 143.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

static REQUESTED: AtomicBool = AtomicBool::new(false);
/// By which signal.
static BY: AtomicUsize = AtomicUsize::new(SIGINT as usize);
/// What nobody looks at.
static LEFT_TO_OTHERS: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C and SIGTERM set a flag, see [`is_requested`].
pub(crate) fn watch() {
    // Handlers add up: those of a second call would take the first request for a second one.
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        on(SIGINT);
        on(SIGTERM);
    });
}

/// From now on SIGTERM sets the flag, and Ctrl-C is for a program that this one runs. (Ignored, it would be ignored by that one too.)
pub(crate) fn watch_and_leave_ctrl_c() {
    // Like all of this it fails only for signals that cannot be caught.
    let _ = flag::register(SIGINT, &LEFT_TO_OTHERS);
    on(SIGTERM);
}

fn on(signal: i32) {
    let _ = flag::register_conditional_shutdown(signal, 128 + signal, &REQUESTED);
    let _ = flag::register_usize(signal, &BY, signal as usize);
    let _ = flag::register(signal, &REQUESTED);
}

/// The code to end with after that, as shells report a program that the signal has ended.
pub(crate) fn exit_code() -> u8 {
    128 + BY.load(Ordering::Relaxed) as u8
}

/// Whether an end was requested, or a Ctrl-C was left to a program that did not run yet.
pub(crate) fn is_requested_of_anybody() -> bool {
    is_requested() || LEFT_TO_OTHERS.load(Ordering::Relaxed)
}

/// Whether an end was requested since [`watch`].
pub(crate) fn is_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
