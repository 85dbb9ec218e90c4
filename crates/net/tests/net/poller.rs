//! The poller ends its wait for the right reason. How long it took is not looked at: a busy machine would fail.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::support::{LOOPBACK_V4, put};
use punctual_net::udp::{Ecn, Poller, SendBatch, SendLimits, Socket, SocketOptions, Woke};

/// Reaching it fails the test that waits so long.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(10));

fn socket() -> Arc<Socket> {
    let options = SocketOptions::default();
    Arc::new(Socket::bind(LOOPBACK_V4.parse().unwrap(), &options).unwrap())
}

fn send_one(from: &Socket, to: &Socket) {
    let mut batch = SendBatch::new(SendLimits::default());
    put(&mut batch, 1, 20, to.local_addr(), Ecn::NotEct);
    assert_eq!(from.send(&mut batch).unwrap().datagrams, 1);
}

#[test]
fn times_pass_and_nothing_is_reported() {
    let mut poller = Poller::new().unwrap();
    poller.watch(socket()).unwrap();
    for timeout in [Duration::ZERO, Duration::from_micros(300)] {
        assert_eq!(poller.wait(Some(timeout)).unwrap(), Woke::default());
    }
}

#[test]
fn datagrams_end_the_wait_until_they_are_received() {
    let (quiet, busy) = (socket(), socket());
    let mut poller = Poller::new().unwrap();
    let quiet_id = poller.watch(Arc::clone(&quiet)).unwrap();
    let busy_id = poller.watch(Arc::clone(&busy)).unwrap();
    send_one(&quiet, &busy);
    for _ in 0..2 {
        assert_eq!(poller.wait(PATIENCE).unwrap().sockets, 1);
        assert!(poller.is_readable(busy_id) && !poller.is_readable(quiet_id));
    }
    let mut batch = punctual_net::udp::RecvBatch::new(4);
    assert_eq!(busy.recv(&mut batch).unwrap(), 1);
    assert!(!batch.is_full());
    assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap().sockets, 0);

    send_one(&quiet, &busy);
    poller.unwatch(busy_id);
    assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap().sockets, 0);
    assert_eq!(Arc::strong_count(&busy), 1, "the poller lets go of it");
}

#[test]
fn room_to_send_is_reported_when_asked_for() {
    let mut poller = Poller::new().unwrap();
    let id = poller.watch(socket()).unwrap();
    poller.watch_writable(id, true).unwrap();
    assert_eq!(poller.wait(PATIENCE).unwrap().sockets, 1);
    assert!(poller.is_writable(id) && !poller.is_readable(id));
    poller.watch_writable(id, false).unwrap();
    assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap().sockets, 0);
}

#[test]
fn other_threads_end_the_wait() {
    let mut poller = Poller::new().unwrap();
    // Many rounds, so that the call falls before, into and after the beginning of the wait.
    for _ in 0..500 {
        let waker = poller.waker();
        let caller = thread::spawn(move || waker.wake());
        // A call of the last round may still be on its way to the kernel and end a wait for nothing.
        while !poller.wait(PATIENCE).unwrap().called {}
        caller.join().unwrap();
    }
}

#[test]
fn calls_while_busy_are_remembered_once() {
    let mut poller = Poller::new().unwrap();
    let waker = poller.waker();
    assert!(!poller.take_wake());
    waker.wake();
    waker.wake();
    assert!(poller.take_wake());
    assert!(!poller.take_wake());
    waker.wake();
    assert!(poller.wait(None).unwrap().called, "it must not sleep");
    assert!(!poller.wait(Some(Duration::ZERO)).unwrap().called);
}
