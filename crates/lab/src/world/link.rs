//! Bottlenecks that several paths share: a rate, a drop-tail queue, and ECN marks when more than so much waits.
//!
//! A link stands before the channels of the clients that are attached to it: a packet waits in the link's queue, then takes its
//! own client's delay and loss. Times are nanoseconds, since at 100 Mbit/s a packet takes 120 us.

use std::time::Duration;

use punctual_proto::{Ecn, Transmit, limits};

use super::{HostId, Moment, World};
use crate::channel::ConstantQueue;
use crate::stats::Latencies;

/// Names a link of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// What a link is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSpec {
    /// What gets through.
    pub rate_bits_per_second: u64,
    /// Bytes that may wait, with the packet in service; what comes on top is dropped.
    pub queue_bytes: u64,
    /// ECN-capable packets that find more than this many bytes waiting are marked (RFC 3168); None marks nothing.
    pub ecn_mark_bytes: Option<u64>,
    /// Nothing waits: it is a policer, a bucket of `queue_bytes` that fills at the rate, and what finds too little in it is dropped. (What waited in the queue of
    /// a link is what is missing in such a bucket.)
    pub is_policer: bool,
}

impl LinkSpec {
    /// A drop-tail link whose queue holds `products` times what the rate carries in a round trip of `rtt`.
    pub fn drop_tail(rate_bits_per_second: u64, rtt: Duration, products: f64) -> Self {
        let product = rate_bits_per_second as f64 / 8.0 * rtt.as_secs_f64();
        Self {
            rate_bits_per_second,
            queue_bytes: (product * products) as u64,
            ecn_mark_bytes: None,
            is_policer: false,
        }
    }

    /// A policer: what comes passes at once or not at all.
    pub const fn policer(rate_bits_per_second: u64, bucket_bytes: u64) -> Self {
        Self {
            rate_bits_per_second,
            queue_bytes: bucket_bytes,
            ecn_mark_bytes: None,
            is_policer: true,
        }
    }
}

/// What became of the packets that were given to a link.
#[derive(Debug, Clone, Default)]
pub struct LinkStats {
    /// Packets taken in.
    pub packets: u64,
    /// Bytes taken in, IP and UDP headers included.
    pub bytes: u64,
    /// Packets that found the queue full.
    pub dropped: u64,
    /// Packets that were marked.
    pub marked: u64,
    /// The most that a packet waited for those before it.
    pub queue_max: Duration,
    /// How long each packet waited for those before it, in microseconds.
    pub waits: Latencies,
    /// Integral of the queue over time, in squared nanoseconds.
    area: f64,
}

/// What became of the packets that were given to a link, and its queue.
#[derive(Debug, Clone)]
pub struct LinkFigures {
    /// The packets.
    pub stats: LinkStats,
    /// Bytes that left it, IP and UDP headers included.
    pub carried_bytes: u64,
    /// The queue's average over the time.
    pub queue_mean: Duration,
}

/// A bottleneck.
#[derive(Debug)]
pub struct Link {
    spec: LinkSpec,
    queue: ConstantQueue,
    stats: LinkStats,
    /// Up to when the queue is in `stats.area`.
    seen_ns: u64,
    since: Moment,
    /// What waited then.
    backlog_before_ns: u64,
}

/// A packet that a link carries.
pub(crate) struct Passage {
    pub(crate) wait: Duration,
    pub(crate) is_marked: bool,
}

impl Link {
    pub(crate) fn new(spec: LinkSpec) -> Self {
        Self {
            spec,
            queue: ConstantQueue::new(spec.rate_bits_per_second, spec.queue_bytes),
            stats: LinkStats::default(),
            seen_ns: 0,
            since: Moment::default(),
            backlog_before_ns: 0,
        }
    }

    /// What it was made of.
    pub const fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// How long a packet that came now would wait.
    pub const fn queue_delay(&self, now: Moment) -> Duration {
        Duration::from_nanos(self.queue.backlog_ns(now.0))
    }

    /// What became of packets since the beginning, or since [`Link::restart_stats`].
    pub const fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// Counts from here on only.
    pub fn restart_stats(&mut self, now: Moment) {
        self.stats = LinkStats::default();
        (self.seen_ns, self.since) = (now.0, now);
        self.backlog_before_ns = self.queue.backlog_ns(now.0);
    }

    /// The queue's average over the time since the counts began.
    pub fn queue_mean(&mut self, now: Moment) -> Duration {
        self.integrate(now.0);
        let span = now.since(self.since).as_nanos().max(1) as f64;
        Duration::from_nanos((self.stats.area / span) as u64)
    }

    /// All of it, since the counts began.
    pub fn figures(&mut self, now: Moment) -> LinkFigures {
        LinkFigures {
            queue_mean: self.queue_mean(now),
            carried_bytes: self.carried_bytes(now),
            stats: self.stats.clone(),
        }
    }

    /// Bytes that left since the counts began: also of what waited then, and nothing of what waits now.
    fn carried_bytes(&self, now: Moment) -> u64 {
        if self.spec.is_policer {
            return self.stats.bytes;
        }
        let waits_more_ns = self.queue.backlog_ns(now.0) as f64 - self.backlog_before_ns as f64;
        let waits_more = waits_more_ns / 1e9 * self.spec.rate_bits_per_second as f64 / 8.0;
        (self.stats.bytes as f64 - waits_more).max(0.0) as u64
    }

    /// The share of the rate that was used since the counts began.
    pub fn utilisation(&self, now: Moment) -> f64 {
        let possible =
            self.spec.rate_bits_per_second as f64 / 8.0 * now.since(self.since).as_secs_f64();
        self.carried_bytes(now) as f64 / possible
    }

    /// A packet of `bytes` (headers included) comes; None when the queue is full.
    pub(crate) fn offer(&mut self, now: Moment, bytes: usize, is_capable: bool) -> Option<Passage> {
        self.integrate(now.0);
        let backlog_ns = self.queue.backlog_ns(now.0);
        let Some(wait_ns) = self.queue.wait_ns(now.0, bytes as u64) else {
            self.stats.dropped += 1;
            return None;
        };
        let (backlog_ns, wait_ns) = match self.spec.is_policer {
            true => (0, 0),
            false => (backlog_ns, wait_ns),
        };
        let is_marked = is_capable
            && self
                .spec
                .ecn_mark_bytes
                .is_some_and(|bytes| backlog_ns > self.queue.service_ns(bytes));
        self.stats.packets += 1;
        self.stats.bytes += bytes as u64;
        self.stats.marked += u64::from(is_marked);
        self.stats.queue_max = self.stats.queue_max.max(Duration::from_nanos(backlog_ns));
        self.stats.waits.record(backlog_ns / 1000);
        Some(Passage {
            wait: Duration::from_nanos(wait_ns),
            is_marked,
        })
    }

    /// The backlog falls by a nanosecond a nanosecond until it is gone.
    fn integrate(&mut self, now_ns: u64) {
        let from = self.queue.backlog_ns(self.seen_ns) as f64;
        let to = self.queue.backlog_ns(now_ns) as f64;
        self.stats.area += (from * from - to * to) / 2.0;
        self.seen_ns = now_ns;
    }
}

impl World {
    /// Adds a bottleneck that paths may share.
    pub fn add_link(&mut self, spec: LinkSpec) -> LinkId {
        self.links.push(Link::new(spec));
        LinkId(self.links.len() as u32 - 1)
    }

    /// From now on what is sent to the client waits at the link before it takes the client's path.
    pub fn attach_downlink(&mut self, client: HostId, link: LinkId) {
        self.hosts[client.0 as usize].downlink = Some(link);
    }

    /// From now on what the client sends waits at the link before it takes the client's path.
    pub fn attach_uplink(&mut self, client: HostId, link: LinkId) {
        self.hosts[client.0 as usize].uplink = Some(link);
    }

    /// A link, for looking at.
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.0 as usize]
    }

    /// A link, for starting its counts anew.
    pub fn link_mut(&mut self, link: LinkId) -> &mut Link {
        &mut self.links[link.0 as usize]
    }

    /// When a datagram leaves the link that its client is attached to in this direction, and with which mark; None when the
    /// link's queue is full.
    pub(super) fn pass_link(
        &mut self,
        from: HostId,
        to: HostId,
        transmit: &Transmit,
    ) -> Option<(Moment, Ecn)> {
        let to_server = self.hosts[from.0 as usize].channels.is_some();
        let client = &self.hosts[if to_server { from } else { to }.0 as usize];
        let link = if to_server {
            client.uplink
        } else {
            client.downlink
        };
        let Some(link) = link.filter(|_| !self.is_calm) else {
            return Some((self.now, transmit.ecn));
        };
        let bytes = transmit.len + limits::UDP_IP_HEADER;
        let is_capable = transmit.ecn != Ecn::NotEct;
        let passage = self.links[link.0 as usize].offer(self.now, bytes, is_capable)?;
        let ecn = if passage.is_marked {
            Ecn::Ce
        } else {
            transmit.ecn
        };
        Some((self.now.after(passage.wait), ecn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_fills_marks_drops_and_drains() {
        // 12 Mbit/s: a packet of 1,500 bytes a millisecond.
        let mut link = Link::new(LinkSpec {
            rate_bits_per_second: 12_000_000,
            queue_bytes: 4 * 1500,
            ecn_mark_bytes: Some(1500),
            is_policer: false,
        });
        let passed: Vec<_> = (0..6)
            .map(|_| {
                link.offer(Moment(0), 1500, true)
                    .map(|p| (p.wait.as_millis(), p.is_marked))
            })
            .collect();
        assert_eq!(
            passed,
            [
                Some((1, false)),
                Some((2, false)),
                Some((3, true)),
                Some((4, true)),
                None,
                None
            ]
        );
        assert_eq!(
            link.queue_delay(Moment(1_000_000)),
            Duration::from_millis(3)
        );
        // A triangle of 4 ms by 4 ms within 8 ms.
        assert_eq!(link.queue_mean(Moment(8_000_000)), Duration::from_millis(1));
        assert!((link.utilisation(Moment(8_000_000)) - 0.5).abs() < 1e-9);
        let stats = link.stats();
        assert_eq!((stats.packets, stats.dropped, stats.marked), (4, 2, 2));
        assert_eq!(stats.queue_max, Duration::from_millis(3));
    }

    #[test]
    fn packets_that_are_not_capable_are_not_marked() {
        let mut link = Link::new(LinkSpec {
            rate_bits_per_second: 12_000_000,
            queue_bytes: 15_000,
            ecn_mark_bytes: Some(0),
            is_policer: false,
        });
        for is_capable in [false, true, false, true] {
            link.offer(Moment(0), 1500, is_capable);
        }
        assert_eq!(link.stats().marked, 2);
    }
}
