//! Threads that go before others, so that what is measured is the network and not the machine's other work.
//!
//! The kernel keeps a twentieth of the time for the others, whatever such threads do. An unprivileged user is refused: then they are
//! threads like the others, and reports say how late they were.

use thread_priority::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// How much the forwarder goes before others that keep real time too, from 1 to 99: after the kernel's own, which have 50.
const FORWARDER: u8 = 20;
/// The same for those who send and receive: after the network.
const ENDPOINTS: u8 = 10;

/// For the thread that moves packets.
pub(super) fn take_forwarders() {
    take(FORWARDER);
}

/// Lets the calling thread, which drives endpoints on an emulated network, run whenever it can; its own threads will, too, unless they
/// call [`give_up_precedence`].
pub fn take_precedence() {
    take(ENDPOINTS);
}

/// Makes the calling thread one like the others.
pub fn give_up_precedence() {
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
    set(policy, 0);
}

fn take(precedence: u8) {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set(policy, precedence);
}

fn set(policy: ThreadSchedulePolicy, precedence: u8) {
    let priority = ThreadPriority::Crossplatform(
        (precedence.try_into()).expect("every number below 100 is a priority"),
    );
    // Refused, it changes nothing.
    let _ = set_thread_priority_and_policy(thread_native_id(), priority, policy);
}
