//! Rivals in the world: their packets cross the same links at the same time as those of the hosts.

use std::collections::VecDeque;
use std::time::Duration;

use super::queue::Kind;
use super::{LinkId, Moment, World};
use crate::rival::{PACKET_BYTES, Receiver, RivalStats, Segment, Sender};

/// Names a rival of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RivalId(pub u32);

/// Where a rival's packets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RivalSpec {
    /// The link that its data crosses.
    pub link: LinkId,
    /// From the link's end to the receiver.
    pub to_receiver: Duration,
    /// From the receiver back to the sender; nothing limits or loses acknowledgements.
    pub to_sender: Duration,
    /// When it begins.
    pub starts_at: Moment,
}

/// A bulk CUBIC flow and its receiver.
#[derive(Debug)]
pub(super) struct Rival {
    spec: RivalSpec,
    sender: Sender,
    receiver: Receiver,
    /// Acknowledgements under way, oldest first.
    acks: VecDeque<Vec<u64>>,
    wakes_at: Option<Moment>,
    is_stopped: bool,
}

impl World {
    /// Adds a bulk TCP flow that lasts for ever.
    pub fn add_rival(&mut self, spec: RivalSpec) -> RivalId {
        let id = RivalId(self.rivals.len() as u32);
        self.rivals.push(Rival {
            spec,
            sender: Sender::default(),
            receiver: Receiver::default(),
            acks: VecDeque::new(),
            wakes_at: Some(spec.starts_at),
            is_stopped: false,
        });
        self.queue
            .push(spec.starts_at, Kind::RivalWake { rival: id });
        id
    }

    /// The flow ends: it sends no more, neither data nor what was lost of it.
    pub fn stop_rival(&mut self, id: RivalId) {
        self.rivals[id.0 as usize].is_stopped = true;
    }

    /// What a rival did so far.
    pub fn rival_stats(&self, id: RivalId) -> RivalStats {
        let rival = &self.rivals[id.0 as usize];
        RivalStats {
            delivered: rival.receiver.delivered(),
            ..rival.sender.stats()
        }
    }

    /// A rival's congestion window, in packets.
    pub fn rival_window(&self, id: RivalId) -> f64 {
        self.rivals[id.0 as usize].sender.window()
    }

    pub(super) fn rival_data(&mut self, id: RivalId, segment: Segment) {
        let now = self.now;
        let rival = &mut self.rivals[id.0 as usize];
        if rival.receiver.on_packet(now, segment) {
            self.rival_answer(id);
        }
        self.rival_arm(id);
    }

    fn rival_answer(&mut self, id: RivalId) {
        let rival = &mut self.rivals[id.0 as usize];
        rival.acks.push_back(rival.receiver.take_ack());
        let at = self.now.after(rival.spec.to_sender);
        self.queue.push(at, Kind::RivalAck { rival: id });
    }

    pub(super) fn rival_ack(&mut self, id: RivalId) {
        let now = self.now;
        let rival = &mut self.rivals[id.0 as usize];
        let numbers = rival.acks.pop_front().expect("an event for each of them");
        rival.sender.on_ack(now, &numbers);
        self.rival_send(id);
    }

    pub(super) fn rival_wake(&mut self, id: RivalId) {
        let now = self.now;
        let rival = &mut self.rivals[id.0 as usize];
        if rival.wakes_at != Some(now) {
            return;
        }
        rival.wakes_at = None;
        if rival.sender.timeout_at().is_some_and(|at| at <= now) {
            rival.sender.on_timeout(now);
        }
        if rival.receiver.due().is_some_and(|at| at <= now) {
            self.rival_answer(id);
        }
        self.rival_send(id);
    }

    fn rival_send(&mut self, id: RivalId) {
        let now = self.now;
        let rival = &mut self.rivals[id.0 as usize];
        if rival.is_stopped {
            return;
        }
        while let Some(segment) = rival.sender.poll_send(now) {
            let link = &mut self.links[rival.spec.link.0 as usize];
            let Some(passage) = link.offer(now, PACKET_BYTES, false) else {
                continue;
            };
            let at = now.after(passage.wait + rival.spec.to_receiver);
            self.queue.push(at, Kind::RivalData { rival: id, segment });
        }
        self.rival_arm(id);
    }

    /// Sees to it that the rival wakes when its timer or its receiver's goes off.
    fn rival_arm(&mut self, id: RivalId) {
        let rival = &mut self.rivals[id.0 as usize];
        if rival.is_stopped {
            return;
        }
        let due = [rival.sender.timeout_at(), rival.receiver.due()];
        let Some(at) = due.into_iter().flatten().min() else {
            return;
        };
        if rival.wakes_at.is_none_or(|wakes| at < wakes) {
            rival.wakes_at = Some(at);
            self.queue.push(at, Kind::RivalWake { rival: id });
        }
    }
}
