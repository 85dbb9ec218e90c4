//! Hosts that look at their network once a frame, as a game's loop does.

use std::time::Duration;

use super::queue::Kind;
use super::{HostId, World};

impl World {
    /// From now on the host looks at its network and its timers only so often: first at `phase`.
    pub fn set_frame(&mut self, host: HostId, every: Duration, phase: Duration) {
        let looks = &mut self.hosts[host.0 as usize];
        looks.frame = (!every.is_zero()).then_some((every, phase));
        looks.wakes_at = None;
        self.mark(host);
    }

    /// From now on the host's loop sends so long after each look, which is less than a frame, and acknowledgements wait for that.
    pub fn set_work(&mut self, host: HostId, work: Duration) {
        self.hosts[host.0 as usize].work = Some(work);
    }

    /// A host has looked.
    pub(super) fn begin_frame(&mut self, id: HostId) {
        let host = &mut self.hosts[id.0 as usize];
        if let Some(work) = host.work
            && !std::mem::replace(&mut host.is_at_work, true)
        {
            host.endpoint.keep_answers(work);
            let at = self.now.after(work);
            self.queue.push(at, Kind::FrameEnd { host: id });
        }
    }

    pub(super) fn end_frame(&mut self, id: HostId) {
        let host = &mut self.hosts[id.0 as usize];
        host.is_at_work = false;
        host.endpoint.let_answers_go();
        self.mark(id);
    }
}
