//! Datagrams on their way to the kernel: one arena, filled in place, in which neighbours that look alike become one message.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use super::Ecn;

/// Payload of a datagram that fits an Ethernet frame over IPv4: 1500 - 20 - 8.
pub const DATAGRAM_MAX: usize = 1472;

/// Most datagrams in one message, which every Linux that can split takes. At 64 the call costs each of them little.
const SEGMENTS_MAX: usize = 64;

/// Most bytes in one message: 65,535 less the IPv4 and UDP headers.
const MESSAGE_MAX: usize = 65_507;

/// How much a [`SendBatch`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendLimits {
    /// Datagrams; default 64. The memory is reserved once, `datagrams * datagram_bytes_max`, and touched as it is used.
    pub datagrams: usize,
    /// Bytes of the largest datagram; default [`DATAGRAM_MAX`]. More only for links with larger frames.
    pub datagram_bytes_max: usize,
}

impl Default for SendLimits {
    fn default() -> Self {
        Self {
            datagrams: 64,
            datagram_bytes_max: DATAGRAM_MAX,
        }
    }
}

/// A reusable queue of outgoing datagrams. Nothing is allocated after its creation.
///
/// Write into [`space`](Self::space), then [`commit`](Self::commit). Consecutive datagrams of equal size to the same
/// address with the same ECN leave as one message where the kernel can split it; the last of them may be shorter.
/// What the kernel could not take stays queued, in order; room returns once everything has left.
pub struct SendBatch {
    arena: Box<[u8]>,
    limits: SendLimits,
    /// Bytes of the arena in use, sent ones included.
    filled: usize,
    /// Datagrams committed since the batch was last empty.
    committed: usize,
    messages: Vec<Message>,
    /// Messages before this one have left.
    head: usize,
    refusal: Option<Refusal>,
}

/// A datagram that the kernel would not take, and for which there is no other remedy than to drop it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// Where it was to go.
    pub to: SocketAddr,
    /// Why it could not: there is no route, a filter forbids it.
    pub why: io::Error,
}

/// Consecutive datagrams that may leave together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    start: usize,
    len: usize,
    pub(super) segment_bytes: usize,
    pub(super) to: SocketAddr,
    /// The own address that it leaves from; `None` leaves it to the system.
    pub(super) from: Option<IpAddr>,
    pub(super) ecn: Ecn,
    pub(super) split: Split,
}

/// Whether the datagrams of a message must leave one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Split {
    /// They may leave together.
    No,
    /// The kernel refused the message; no blame on segmentation offload.
    Yes,
    /// The kernel refused the message. If it takes a datagram of it alone, segmentation offload does not work here.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "the portable backend learns it by itself")
    )]
    SuspectOffload,
}

impl Message {
    pub(super) fn datagrams(&self) -> usize {
        self.len.div_ceil(self.segment_bytes)
    }

    /// Whether more than one datagram leaves at once.
    pub(super) fn is_coalesced(&self) -> bool {
        self.split == Split::No && self.len > self.segment_bytes
    }

    /// Whether its first datagram is as long as they get: a shorter one, the last, passes where those before were too large.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "the portable backend does not split")
    )]
    pub(super) const fn is_full(&self) -> bool {
        self.len >= self.segment_bytes
    }

    fn may_grow_by(&self, len: usize, to: SocketAddr, from: Option<IpAddr>, ecn: Ecn) -> bool {
        self.split == Split::No
            && len <= self.segment_bytes
            // A shorter datagram ends the message: all before the last are equal.
            && self.len.is_multiple_of(self.segment_bytes)
            && self.datagrams() < SEGMENTS_MAX
            && self.len + len <= MESSAGE_MAX
            && self.ecn == ecn
            && self.to == to
            && self.from == from
    }
}

impl SendBatch {
    /// An empty batch.
    ///
    /// # Panics
    /// When a limit is zero, or a datagram may exceed 65,535 bytes.
    pub fn new(limits: SendLimits) -> Self {
        assert!(limits.datagrams > 0, "a batch holds at least one datagram");
        assert!(
            (1..=65_535).contains(&limits.datagram_bytes_max),
            "a datagram has 1 to 65,535 bytes"
        );
        Self {
            arena: vec![0; limits.datagrams * limits.datagram_bytes_max].into(),
            limits,
            filled: 0,
            committed: 0,
            messages: Vec::with_capacity(limits.datagrams),
            head: 0,
            refusal: None,
        }
    }

    /// Where to write the next datagram, [`SendLimits::datagram_bytes_max`] bytes; `None` when the batch is full. Old
    /// bytes may stand there.
    pub fn space(&mut self) -> Option<&mut [u8]> {
        if self.committed == self.limits.datagrams {
            return None;
        }
        let end = self.filled + self.limits.datagram_bytes_max;
        Some(&mut self.arena[self.filled..end])
    }

    /// Queues the first `len` bytes of [`space`](Self::space) as one datagram.
    ///
    /// # Panics
    /// When there is no space, or `len` is zero or exceeds it.
    pub fn commit(&mut self, len: usize, to: SocketAddr, ecn: Ecn) {
        self.commit_from(None, len, to, ecn);
    }

    /// As [`commit`](Self::commit), to leave from this one of the host's addresses: for sockets that are bound to all of them. A
    /// datagram from an address that the host does not have is refused.
    ///
    /// # Panics
    /// As [`commit`](Self::commit).
    pub fn commit_from(&mut self, from: Option<IpAddr>, len: usize, to: SocketAddr, ecn: Ecn) {
        assert!(self.committed < self.limits.datagrams, "the batch is full");
        assert!(
            (1..=self.limits.datagram_bytes_max).contains(&len),
            "the datagram must lie in the space given"
        );
        match self.messages[self.head..].last_mut() {
            Some(last) if last.may_grow_by(len, to, from, ecn) => last.len += len,
            _ => self.messages.push(Message {
                start: self.filled,
                len,
                segment_bytes: len,
                to,
                from,
                ecn,
                split: Split::No,
            }),
        }
        self.filled += len;
        self.committed += 1;
    }

    /// Datagrams not yet taken by the kernel.
    pub fn len(&self) -> usize {
        self.pending().iter().map(Message::datagrams).sum()
    }

    /// Whether nothing is left to send.
    pub fn is_empty(&self) -> bool {
        self.head == self.messages.len()
    }

    /// Forgets what is queued.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.head = 0;
        self.filled = 0;
        self.committed = 0;
    }

    pub(super) fn pending(&self) -> &[Message] {
        &self.messages[self.head..]
    }

    pub(super) fn front_mut(&mut self) -> Option<&mut Message> {
        self.messages.get_mut(self.head)
    }

    pub(super) fn payload(&self, message: &Message) -> &[u8] {
        &self.arena[message.start..message.start + message.len]
    }

    /// The first datagram of the first message is given up, since the kernel refused it.
    pub(super) fn refuse(&mut self, why: io::Error) {
        if let Some(to) = self.pending().first().map(|message| message.to) {
            self.refusal = Some(Refusal { to, why });
        }
        self.remove(1);
    }

    /// The latest refusal since this was last asked; one of a datagram that was larger than the link takes is none.
    pub fn take_refusal(&mut self) -> Option<Refusal> {
        self.refusal.take()
    }

    /// The first `datagrams` of the first message have left or are given up. Returns their bytes.
    pub(super) fn remove(&mut self, datagrams: usize) -> usize {
        let Some(front) = self.messages.get_mut(self.head) else {
            return 0;
        };
        let bytes = front.len.min(datagrams * front.segment_bytes);
        front.start += bytes;
        front.len -= bytes;
        if front.len == 0 {
            self.head += 1;
            if self.is_empty() {
                self.clear();
            }
        }
        bytes
    }
}

impl fmt::Debug for SendBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendBatch")
            .field("limits", &self.limits)
            .field("pending", &self.pending())
            .finish_non_exhaustive()
    }
}

/// What a call of [`Socket::send`](super::Socket::send) achieved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Datagrams that the kernel took.
    pub datagrams: usize,
    /// Their payload.
    pub bytes: usize,
    /// Datagrams dropped because they exceed what the link carries. To the protocol they are lost, as a probe of the path
    /// MTU that went too far.
    pub too_large: usize,
    /// Datagrams dropped because the kernel refused them for another reason. To the protocol they are lost.
    pub refused: usize,
    /// The kernel's buffer is full: the rest stays in the batch. Wait until the socket is writable, then send again.
    pub blocked: bool,
}

#[cfg(test)]
mod tests;
