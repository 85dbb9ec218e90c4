//! Datagrams fresh from the kernel: reusable buffers, and the view that cuts coalesced messages into datagrams again.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::Ecn;

/// Bytes of one buffer: the kernel may hand over a whole run of datagrams as one message of up to 64 KiB.
pub(super) const BUFFER_BYTES: usize = 65_536;

/// From one buffer to the next. A power of two would put the beginnings of all buffers, the only parts that small datagrams
/// touch, into the same few cache sets; 17 lines more spread them.
pub(super) const BUFFER_STRIDE: usize = BUFFER_BYTES + 17 * 64;

/// Most messages that one call receives.
pub(super) const MESSAGES_MAX: usize = 64;

/// Reusable buffers for received datagrams. Nothing is allocated after their creation.
///
/// Each message has 65 KiB of address space; memory becomes resident as the kernel writes it, so a socket whose datagrams
/// come singly keeps about a page for each.
pub struct RecvBatch {
    arena: Box<[u8]>,
    messages_max: usize,
    received: Vec<Message>,
}

/// What came in one buffer: one datagram, or several of `stride` bytes of which the last may be shorter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) from: SocketAddr,
    pub(super) to: Option<IpAddr>,
    pub(super) ecn: Ecn,
    pub(super) len: usize,
    pub(super) stride: usize,
}

impl Message {
    /// What stands for a message that could not be used; it has no datagrams.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "the portable backend does not tell of such")
    )]
    pub(super) const EMPTY: Self = Self {
        from: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        to: None,
        ecn: Ecn::NotEct,
        len: 0,
        stride: 1,
    };

    pub(super) fn datagrams(&self) -> usize {
        self.len.div_ceil(self.stride)
    }
}

impl RecvBatch {
    /// Buffers for `messages` a call, 1 to 64. A message is one datagram, or several that the kernel joined.
    ///
    /// # Panics
    /// When `messages` is out of that range.
    pub fn new(messages: usize) -> Self {
        assert!(
            (1..=MESSAGES_MAX).contains(&messages),
            "a batch takes 1 to 64 messages"
        );
        Self {
            arena: vec![0; messages * BUFFER_STRIDE].into(),
            messages_max: messages,
            received: Vec::with_capacity(messages),
        }
    }

    /// The datagrams of the last [`Socket::recv`](super::Socket::recv), in order of arrival. Empty ones are left out.
    pub fn datagrams(&mut self) -> impl Iterator<Item = Datagram<'_>> {
        let buffers = self.arena.chunks_exact_mut(BUFFER_STRIDE);
        buffers.zip(&self.received).flat_map(|(buffer, message)| {
            let payloads = buffer[..message.len].chunks_mut(message.stride);
            payloads.map(|payload| Datagram {
                from: message.from,
                to: message.to,
                ecn: message.ecn,
                payload,
            })
        })
    }

    /// Whether the last call filled all buffers, so that more is probably waiting. When it did not, asking again before the
    /// next wait is a wasted system call.
    pub fn is_full(&self) -> bool {
        self.received.len() == self.messages_max
    }

    /// The buffers, and the list to fill with what came into each of them.
    pub(super) fn refill(&mut self) -> (std::slice::ChunksExactMut<'_, u8>, &mut Vec<Message>) {
        self.received.clear();
        (
            self.arena.chunks_exact_mut(BUFFER_STRIDE),
            &mut self.received,
        )
    }
}

impl fmt::Debug for RecvBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvBatch")
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}

/// A received datagram.
#[derive(Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Who sent it. An IPv4 peer on a dual-stack socket has its IPv4 address here.
    pub from: SocketAddr,
    /// Which of this host's addresses it was sent to, when the socket is bound to all of them. An IPv4 one is plain.
    pub to: Option<IpAddr>,
    /// The congestion mark that it arrived with.
    pub ecn: Ecn,
    /// Its content, which may be decrypted in place.
    pub payload: &'a mut [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_datagrams_are_cut_at_the_stride() {
        let mut batch = RecvBatch::new(3);
        let (mut buffers, received) = batch.refill();
        buffers.next().unwrap()[..7].copy_from_slice(b"aabbccd");
        buffers.nth(1).unwrap()[..3].copy_from_slice(b"xyz");
        let from = SocketAddr::from(([10, 0, 0, 1], 9));
        let ecn = Ecn::Ce;
        received.push(Message {
            from,
            to: None,
            ecn,
            len: 7,
            stride: 2,
        });
        received.push(Message::EMPTY);
        received.push(Message {
            from,
            to: None,
            ecn,
            len: 3,
            stride: 3,
        });

        assert!(batch.is_full());
        let payloads: Vec<_> = batch.datagrams().map(|d| d.payload.to_vec()).collect();
        assert_eq!(payloads, [&b"aa"[..], b"bb", b"cc", b"d", b"xyz"]);
        assert!(
            batch
                .datagrams()
                .all(|d| d.from == from && d.ecn == Ecn::Ce)
        );
    }
}
