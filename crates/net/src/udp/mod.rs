//! Non-blocking UDP sockets that move many datagrams with one system call.
//!
//! ```text
//! SendBatch::space, commit --+                          +--> RecvBatch::datagrams
//!                            v                          |
//!                      Socket::send                Socket::recv        Poller::wait <-- Waker::wake (other threads)
//!                            |                          |                   |
//!                            +---- sys/linux, or sys/portable elsewhere ----+
//! ```
//!
//! On Linux the backend is ours: `sendmmsg` whose entries each may carry many equal datagrams (segmentation offload), and
//! `recvmmsg` into buffers large enough for joined ones. Other crates send one message a call, which gains nothing when
//! each of many peers gets one packet; and releases that ask for more control data than their buffer holds lose ECN on
//! every joined receive. Elsewhere `quinn-udp` does the work behind the same interface.
//!
//! A [`Carrier`] moves datagrams between a socket and a protocol endpoint in steps; a [`Driver`] owns both and takes the steps
//! in their order.
//!
//! A socket that is busy is driven without the poller: send, receive, and look at [`Poller::take_wake`], which is one
//! atomic read, until [`RecvBatch::is_full`] says that nothing more is waiting.

mod carrier;
mod driver;
mod ecn;
mod incoming;
mod options;
mod outgoing;
mod poller;
mod socket;
mod stats;
#[expect(unsafe_code, reason = "system calls; the only place that has them")]
mod sys;

pub use carrier::Carrier;
pub use driver::{Driver, DriverError, Turn};
pub use ecn::Ecn;
pub use incoming::{Datagram, RecvBatch};
pub use options::{Backend, BindError, SocketOptions};
pub use outgoing::{DATAGRAM_MAX, Refusal, SendBatch, SendLimits, Sent};
pub use poller::{Poller, SocketId, Waker, Woke};
pub use socket::{BufferSizes, Socket};
pub use stats::SocketStats;
