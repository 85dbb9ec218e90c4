//! A limited rate with a drop-tail queue: the only part of a channel that depends on what is sent.

use std::sync::Arc;

use super::playback::CapacityTrace;
use super::{Capacity, RateSpec};
use crate::chance::Chance;

#[derive(Debug, Clone)]
pub(crate) enum Queue {
    Constant(ConstantQueue),
    Schedule(ScheduleQueue),
}

impl Queue {
    pub(super) fn new(rate: &RateSpec, shared: Chance) -> Self {
        match &rate.capacity {
            Capacity::Constant { bits_per_second } => {
                Self::Constant(ConstantQueue::new(*bits_per_second, rate.queue_bytes))
            }
            Capacity::Trace(trace) => Self::Schedule(ScheduleQueue {
                offset_us: trace.offset_us(shared),
                trace: Arc::clone(trace),
                queue_bytes: rate.queue_bytes,
                served: 0,
            }),
        }
    }

    /// Microseconds from sending until the packet has left the queue; None when the queue is full.
    pub(crate) fn wait_us(&mut self, sent_us: u64, bytes: usize) -> Option<u64> {
        match self {
            Self::Constant(queue) => queue.wait_us(sent_us, bytes as u64),
            Self::Schedule(queue) => queue.wait_us(sent_us, bytes as u64),
        }
    }
}

/// A constant rate: the time at which all that was accepted will have been sent says everything.
#[derive(Debug, Clone)]
pub(crate) struct ConstantQueue {
    ns_per_byte: f64,
    /// The queue's length in time at this rate; includes the packet that is being sent.
    queue_ns: u64,
    busy_until_ns: u64,
}

impl ConstantQueue {
    pub(crate) fn new(bits_per_second: u64, queue_bytes: u64) -> Self {
        Self {
            ns_per_byte: 8e9 / bits_per_second as f64,
            queue_ns: (queue_bytes as f64 * 8e9 / bits_per_second as f64) as u64,
            busy_until_ns: 0,
        }
    }

    /// Nanoseconds that what was accepted still takes to leave.
    pub(crate) const fn backlog_ns(&self, now_ns: u64) -> u64 {
        self.busy_until_ns.saturating_sub(now_ns)
    }

    /// Nanoseconds that this many bytes take to leave.
    pub(crate) fn service_ns(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.ns_per_byte) as u64
    }

    /// Nanoseconds from now until a packet of `bytes` has left the queue; None when the queue is full.
    pub(crate) fn wait_ns(&mut self, now_ns: u64, bytes: u64) -> Option<u64> {
        let backlog = self.backlog_ns(now_ns);
        let service = self.service_ns(bytes);
        // An idle link takes any packet, also one that is larger than the queue.
        if backlog > 0 && backlog.saturating_add(service) > self.queue_ns {
            return None;
        }
        let wait = backlog.saturating_add(service);
        self.busy_until_ns = now_ns.saturating_add(wait);
        Some(wait)
    }

    fn wait_us(&mut self, sent_us: u64, bytes: u64) -> Option<u64> {
        let wait = self.wait_ns(sent_us.saturating_mul(1000), bytes)?;
        Some(wait.div_ceil(1000))
    }
}

/// Delivery opportunities at recorded times, each of which takes 1,500 bytes; what nobody waits for is gone.
#[derive(Debug, Clone)]
pub(crate) struct ScheduleQueue {
    trace: Arc<CapacityTrace>,
    offset_us: u64,
    queue_bytes: u64,
    /// Bytes of all opportunities up to the end of the last accepted packet, counted from the trace's beginning.
    served: u64,
}

impl ScheduleQueue {
    fn wait_us(&mut self, sent_us: u64, bytes: u64) -> Option<u64> {
        let now_us = sent_us + self.offset_us;
        let passed = self.trace.bytes_before(now_us);
        let backlog = self.served.saturating_sub(passed);
        if backlog > 0 && backlog + bytes > self.queue_bytes {
            return None;
        }
        self.served = self.served.max(passed) + bytes;
        Some(
            self.trace
                .time_of_byte_us(self.served)
                .saturating_sub(now_us),
        )
    }
}
