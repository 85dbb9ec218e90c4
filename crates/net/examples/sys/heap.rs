//! Memory in use.
#![allow(unsafe_code, reason = "a question to C's heap")]

/// Bytes in use in C's heap, which Rust's is a part of: keys of the cipher library and malloc's own bookkeeping included.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn in_use() -> Option<usize> {
    // SAFETY: takes nothing and returns a plain structure.
    let info = unsafe { libc::mallinfo2() };
    Some(info.uordblks + info.hblkhd)
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn in_use() -> Option<usize> {
    None
}
