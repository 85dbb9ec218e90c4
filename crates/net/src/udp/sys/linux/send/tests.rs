//! Answers of the kernel that loopback does not give: the queue goes on after each of them.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::udp::{Ecn, SendLimits};

fn backend() -> Linux {
    Linux {
        ipv6: false,
        segmentation: AtomicBool::new(true),
    }
}

/// A run of three and a single one, to different peers.
fn batch() -> SendBatch {
    let mut batch = SendBatch::new(SendLimits::default());
    for (len, port) in [(100, 1), (100, 1), (40, 1), (70, 2)] {
        batch.commit(len, SocketAddr::from(([127, 0, 0, 1], port)), Ecn::Ect0);
    }
    batch
}

fn refuse(code: i32, together: bool, batch: &mut SendBatch, tally: &mut SocketStats) -> Remedy {
    on_error(io::Error::from_raw_os_error(code), together, batch, tally)
}

fn frames(batch: &SendBatch, together: bool) -> usize {
    Frames::uninit().fill(batch, together, false)
}

#[test]
fn a_full_buffer_keeps_the_queue() {
    let (mut batch, mut tally) = (batch(), SocketStats::default());
    let remedy = refuse(libc::EAGAIN, true, &mut batch, &mut tally);
    assert!(matches!(remedy, Remedy::Wait));
    assert_eq!((batch.len(), tally), (4, SocketStats::default()));
}

#[test]
fn failing_offload_is_switched_off_and_the_run_sent_singly() {
    for code in [libc::EIO, libc::EINVAL] {
        let (backend, mut batch, mut tally) = (backend(), batch(), SocketStats::default());
        assert_eq!(frames(&batch, true), 2);
        refuse(code, true, &mut batch, &mut tally);
        assert_eq!(
            frames(&batch, true),
            4,
            "nothing is lost, and nothing joined"
        );
        backend.on_taken(4, true, &mut batch, &mut tally);
        assert!(batch.is_empty());
        assert!(!backend.segmentation.load(Ordering::Relaxed));
        assert_eq!((tally.datagrams_sent, tally.bytes_sent), (4, 310));
        assert_eq!((tally.segmentation_disabled, tally.gso_messages), (1, 0));
    }
}

#[test]
fn offload_is_not_blamed_for_a_bad_peer() {
    let (backend, mut batch, mut tally) = (backend(), batch(), SocketStats::default());
    for _ in 0..4 {
        // The run, then each of its three datagrams.
        refuse(libc::EINVAL, true, &mut batch, &mut tally);
    }
    backend.on_taken(1, true, &mut batch, &mut tally);
    assert_eq!((tally.refused, tally.datagrams_sent), (3, 1));
    let refusal = batch.take_refusal().expect("the last of them");
    assert_eq!(refusal.to.port(), 1);
    assert_eq!(refusal.why.raw_os_error(), Some(libc::EINVAL));
    assert!(batch.take_refusal().is_none(), "told once");
    assert!(backend.segmentation.load(Ordering::Relaxed));
}

#[test]
fn a_run_too_large_for_the_link_is_tried_singly() {
    let (backend, mut batch, mut tally) = (backend(), batch(), SocketStats::default());
    refuse(libc::EMSGSIZE, true, &mut batch, &mut tally);
    refuse(libc::EMSGSIZE, true, &mut batch, &mut tally);
    refuse(libc::EMSGSIZE, true, &mut batch, &mut tally);
    // The last one is shorter and fits.
    backend.on_taken(2, true, &mut batch, &mut tally);
    assert_eq!((tally.too_large, tally.datagrams_sent), (2, 2));
    assert!(backend.segmentation.load(Ordering::Relaxed));
}

/// A regression: kernels that call segments beyond the device's MTU invalid switched the offload off for good, since the short end of the run passed.
#[test]
fn offload_is_not_blamed_for_a_narrow_link() {
    let (backend, mut batch, mut tally) = (backend(), batch(), SocketStats::default());
    refuse(libc::EINVAL, true, &mut batch, &mut tally);
    refuse(libc::EMSGSIZE, true, &mut batch, &mut tally);
    refuse(libc::EMSGSIZE, true, &mut batch, &mut tally);
    backend.on_taken(2, true, &mut batch, &mut tally);
    assert_eq!((tally.too_large, tally.datagrams_sent), (2, 2));
    assert!(backend.segmentation.load(Ordering::Relaxed));
}

#[test]
fn partial_progress_leaves_the_rest_in_order() {
    let (backend, mut batch, mut tally) = (backend(), batch(), SocketStats::default());
    backend.on_taken(1, true, &mut batch, &mut tally);
    assert_eq!((tally.gso_messages, tally.datagrams_sent), (1, 3));
    let left: Vec<_> = batch.pending().iter().map(|m| m.to.port()).collect();
    assert_eq!(left, [2]);
}

#[test]
fn a_broken_socket_is_given_up() {
    let (mut batch, mut tally) = (batch(), SocketStats::default());
    let remedy = refuse(libc::EBADF, true, &mut batch, &mut tally);
    assert!(matches!(remedy, Remedy::GiveUp(_)));
    assert_eq!(batch.len(), 4);
}
