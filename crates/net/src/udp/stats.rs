//! What a socket has done so far.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the socket was bound. They only grow.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct SocketStats {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// The socket's own tally, shared by the threads that use it. Backends add once a call, not once a datagram.
        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $($name: AtomicU64,)*
        }

        impl Counters {
            pub(super) fn add(&self, delta: &SocketStats) {
                // An atomic addition costs more than the test, and most counters do not move in most calls.
                $(if delta.$name != 0 {
                    self.$name.fetch_add(delta.$name, Ordering::Relaxed);
                })*
            }

            pub(super) fn snapshot(&self) -> SocketStats {
                SocketStats { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// System calls that sent, or tried to.
    send_syscalls,
    /// System calls that received, or tried to.
    recv_syscalls,
    /// Datagrams that the kernel took.
    datagrams_sent,
    /// Their payload.
    bytes_sent,
    /// Datagrams handed to the caller.
    datagrams_received,
    /// Their payload.
    bytes_received,
    /// Sent messages of more than one datagram (segmentation offload).
    gso_messages,
    /// Received messages of more than one datagram (receive offload).
    gro_messages,
    /// Datagrams dropped since they exceed what the link carries (EMSGSIZE).
    too_large,
    /// Datagrams dropped since the kernel refused them for another reason: no route, filtered, wrong family.
    refused,
    /// Calls that ended because the kernel's send buffer was full.
    blocked,
    /// Times that segmentation offload was switched off because the kernel would not do it; at most 1.
    segmentation_disabled,
    /// Received messages dropped because they did not fit the buffer.
    truncated,
    /// Received messages whose control data did not fit, so that ECN may be missing. Never, unless there is a bug.
    truncated_control,
    /// Errors of earlier sends that the kernel reported on a receive, and that were passed over.
    recv_errors,
}
