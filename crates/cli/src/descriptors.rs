//! Open files: whoever plays many clients takes one for each, and many systems allow 1,024 unless asked for more.

/// Files besides the clients' sockets: endpoints, pollers, devices, the standard streams, a report, and some to spare.
const OTHERS: u64 = 64;

/// Asks for as many open files as so many clients need. When the system does not grant them, opening the sockets fails and says so.
#[cfg(unix)]
pub(crate) fn ask_for(clients: u32) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let needed = u64::from(clients) + OTHERS;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        limit.current = Some(limit.maximum.map_or(needed, |maximum| maximum.min(needed)));
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// This system has no such limit.
#[cfg(not(unix))]
pub(crate) fn ask_for(_: u32) {
    let _ = OTHERS;
}
