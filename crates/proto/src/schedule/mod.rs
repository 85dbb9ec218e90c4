//! Which symbol goes next. Between streams by virtual time, within a stream by importance, then deadline, then position
//! (DESIGN section 6; virtual time after Paceline's two rules).
//!
//! A stream's virtual time is what it has sent, in bytes (or in the application's quality), divided by its weight; the stream
//! with the least goes next.
//!
//! - *Fair start*: a new stream starts at the least virtual time of the active ones; when none is active, at the greatest of the
//!   idle ones.
//! - *Use it or lose it*: a stream that wakes goes on from the greater of its own and the least active one, or, when none is active, the
//!   greatest idle one: nobody saves his share for later. (Paceline leaves that case open. Streams that send now and then seldom meet another that
//!   is active, so it is the usual one.)
//!
//! One thing is added: a stream whose next message has a deadline goes before all others, the earliest deadline first, as
//! long as it is not more than [`URGENT_LEAD`] ahead of its share. So an urgent message of a few packets goes at once, and
//! is charged for it, while a stream that always sends more than its share falls back to that share.
//!
//! The only entry that there is is kept apart from the lists: most sessions send a message at a time, and each list would be another
//! place in memory to visit.
//!
//! A stream is *active* while it has something to send. All operations are O(active streams) at worst, moves in a short sorted
//! list; nothing is allocated once the lists have grown.

mod queue;

use alloc::vec::Vec;

use queue::Queue;
pub(crate) use queue::{Entry, Item, Reach};

use crate::limits::STREAMS_MAX;
use crate::stream::StreamId;
use crate::time::Instant;

/// Stands for "no deadline": after all that have one.
pub(crate) const NO_DEADLINE: Instant = Instant::from_nanos(u64::MAX);

/// How far ahead of its share a stream with deadlines may be and still go first, in bytes at weight 1: what a game sends in a
/// burst, and little against what a long transfer sends.
pub(crate) const URGENT_LEAD: u64 = 64 * 1024;

/// Virtual time of a byte at weight 1. Fine enough that the rounding of a small symbol at weight 1,000 is below a hundredth.
pub(crate) const UNIT: u64 = 1 << 16;
/// What a charge counts for at most.
const CHARGE_MAX: u64 = UNIT << 40;
/// What virtual times may grow to before all are set back by the same amount.
const TIME_MAX: u64 = 1 << 62;

/// A stream's place in the schedule.
struct Lane {
    weight: u16,
    /// What it has used of the session, per weight.
    time: u64,
    queue: Queue,
    /// Where it stands in `by_deadline`, if it does.
    deadline: Instant,
}

/// What a stream takes here while it has nothing to send.
#[cfg(test)]
pub(crate) const LANE_BYTES: usize = size_of::<Lane>();

/// The order in which the streams of a session send.
#[derive(Default)]
pub(crate) struct Schedule {
    /// The only entry, when there is one; the lists are empty then.
    solo: Option<(StreamId, Entry)>,
    /// What a stream is still to be charged for.
    unpaid: Option<(StreamId, u64)>,
    lanes: Vec<Lane>,
    /// Active streams by virtual time.
    by_time: Vec<(u64, u16)>,
    /// Active streams whose next message has a deadline, by it.
    by_deadline: Vec<(Instant, u16)>,
    /// The greatest virtual time that a stream had when it became idle.
    idle_max: u64,
    /// Entries in all queues, and those of them that are blocks already cut.
    entries: u64,
    blocks: u64,
    /// Bytes to be sent for all entries, and for those that have a deadline.
    bytes: u64,
    urgent_bytes: u64,
    /// Of them, those that are needed even if none is lost; and of those, what is of entries that have a deadline or had one, and missed it.
    needed_bytes: u64,
    live_bytes: u64,
}

impl Schedule {
    /// Makes a place for a stream, or gives one that is there another weight. Rule 1: fair start.
    pub(crate) fn open(&mut self, stream: StreamId, weight: u16) {
        self.spread();
        let start = self.by_time.first().map_or(self.idle_max, |least| least.0);
        while self.lanes.len() <= stream.index().min(STREAMS_MAX - 1) {
            self.lanes.push(Lane {
                weight: 1,
                time: 0,
                queue: Queue::default(),
                deadline: NO_DEADLINE,
            });
        }
        if let Some(lane) = self.lanes.get_mut(stream.index()) {
            lane.weight = weight.max(1);
            if lane.queue.is_empty() {
                lane.time = start;
            }
        }
    }

    pub(crate) fn set_weight(&mut self, stream: StreamId, weight: u16) {
        self.spread();
        if let Some(lane) = self.lanes.get_mut(stream.index()) {
            lane.weight = weight.max(1);
        }
    }

    /// Brings the lists up to date.
    fn spread(&mut self) {
        if let Some((stream, amount)) = self.unpaid.take() {
            self.charge_lane(stream, amount);
        }
        if let Some((stream, entry)) = self.solo.take() {
            self.push_to_lane(stream, entry);
        }
    }

    /// Adds what a stream has to send. Rule 2 when it was idle: use it or lose it.
    pub(crate) fn push(&mut self, stream: StreamId, entry: Entry) {
        debug_assert!(
            stream.index() < self.lanes.len(),
            "streams are opened before anything is sent on them"
        );
        if self.entries == 0 {
            self.solo = Some((stream, entry));
        } else {
            self.spread();
            self.push_to_lane(stream, entry);
        }
        self.count(&entry, true);
    }

    fn push_to_lane(&mut self, stream: StreamId, entry: Entry) {
        let least = self.by_time.first().map(|least| least.0);
        let Some(lane) = self.lanes.get_mut(stream.index()) else {
            return;
        };
        let was_idle = lane.queue.is_empty();
        lane.queue.push(entry);
        if was_idle {
            lane.time = lane.time.max(least.unwrap_or(self.idle_max));
            let time = lane.time;
            insert(&mut self.by_time, (time, stream.0));
        }
        self.update_deadline(stream);
    }

    fn count(&mut self, entry: &Entry, is_added: bool) {
        let change = |count: &mut u64, by: u64| {
            *count = if is_added { *count + by } else { *count - by };
        };
        let (bytes, needed) = (u64::from(entry.bytes), u64::from(entry.needed_bytes));
        change(&mut self.entries, 1);
        change(&mut self.blocks, u64::from(entry.item.is_block()));
        change(&mut self.bytes, bytes);
        change(&mut self.needed_bytes, needed);
        if entry.deadline != NO_DEADLINE {
            change(&mut self.urgent_bytes, bytes);
        }
        if entry.is_live {
            change(&mut self.live_bytes, needed);
        }
    }

    /// About how many bytes go before a message that is added now.
    pub(crate) const fn bytes_before(&self, has_deadline: bool) -> u64 {
        if has_deadline {
            self.urgent_bytes
        } else {
            self.bytes
        }
    }

    /// Bytes to be sent even if none is lost, and those of them of messages that have or had a deadline. (Redundancy is no more than the application
    /// has said, however much of it waits.)
    pub(crate) const fn needed_bytes(&self) -> (u64, u64) {
        (self.needed_bytes, self.live_bytes)
    }

    /// Takes an entry out, if it is there.
    pub(crate) fn remove(&mut self, stream: StreamId, entry: &Entry) {
        if let Some((_, solo)) = self
            .solo
            .take_if(|solo| solo.0 == stream && solo.1.is_same(entry))
        {
            self.count(&solo, false);
            return;
        }
        let Some(lane) = self.lanes.get_mut(stream.index()) else {
            return;
        };
        let Some(entry) = lane.queue.remove(entry) else {
            return;
        };
        self.count(&entry, false);
        let Some(lane) = self.lanes.get_mut(stream.index()) else {
            return;
        };
        if lane.queue.is_empty() {
            let time = lane.time;
            self.idle_max = self.idle_max.max(time);
            remove(&mut self.by_time, (time, stream.0));
        }
        self.update_deadline(stream);
    }

    /// What a stream has in its queue could not be sent before, whoever's turn it was. Rule 2 as if it had been idle.
    pub(crate) fn wake(&mut self, stream: StreamId) {
        let mut others = self.by_time.iter().filter(|entry| entry.1 != stream.0);
        let Some(least) = others.next().map(|least| least.0) else {
            return;
        };
        if let Some(lane) = self.lanes.get_mut(stream.index())
            && !lane.queue.is_empty()
            && lane.time < least
        {
            let before = core::mem::replace(&mut lane.time, least);
            remove(&mut self.by_time, (before, stream.0));
            insert(&mut self.by_time, (least, stream.0));
        }
    }

    /// A stream has sent something worth `amount`, in [`UNIT`]s a byte; a unit of quality is worth 1,024 bytes.
    pub(crate) fn charge(&mut self, stream: StreamId, amount: u64) {
        if self.by_time.is_empty() {
            // Nobody else is there who would go first for it now.
            if let Some((other, unpaid)) = self.unpaid
                && other != stream
            {
                self.charge_lane(other, unpaid);
                self.unpaid = None;
            }
            let unpaid = self.unpaid.map_or(0, |(_, unpaid)| unpaid);
            self.unpaid = Some((stream, unpaid.saturating_add(amount)));
        } else {
            self.charge_lane(stream, amount);
        }
    }

    fn charge_lane(&mut self, stream: StreamId, amount: u64) {
        let Some(lane) = self.lanes.get_mut(stream.index()) else {
            return;
        };
        let before = lane.time;
        lane.time += amount.min(CHARGE_MAX) / u64::from(lane.weight);
        let after = lane.time;
        if !lane.queue.is_empty() {
            remove(&mut self.by_time, (before, stream.0));
            insert(&mut self.by_time, (after, stream.0));
        } else {
            self.idle_max = self.idle_max.max(after);
        }
        if after > TIME_MAX {
            self.set_back();
        }
    }

    /// All virtual times, less by the same amount: only differences mean anything.
    fn set_back(&mut self) {
        let by = self.by_time.first().map_or(self.idle_max, |least| least.0);
        for lane in &mut self.lanes {
            lane.time = lane.time.saturating_sub(by);
        }
        for entry in &mut self.by_time {
            entry.0 -= by;
        }
        self.idle_max = self.idle_max.saturating_sub(by);
    }

    fn update_deadline(&mut self, stream: StreamId) {
        let Some(lane) = self.lanes.get_mut(stream.index()) else {
            return;
        };
        let deadline = lane
            .queue
            .first()
            .map_or(NO_DEADLINE, |entry| entry.deadline);
        let before = core::mem::replace(&mut lane.deadline, deadline);
        if before == deadline {
            return;
        }
        if before != NO_DEADLINE {
            remove(&mut self.by_deadline, (before, stream.0));
        }
        if deadline != NO_DEADLINE {
            insert(&mut self.by_deadline, (deadline, stream.0));
        }
    }

    /// The first entry within reach, in the order to send, for which `fits` is true. O(entries) at worst, while what was begun
    /// is behind much that cannot leave.
    pub(crate) fn find(
        &self,
        reach: Reach,
        mut fits: impl FnMut(&Entry) -> bool,
    ) -> Option<(StreamId, Entry)> {
        if let Some((stream, entry)) = &self.solo {
            return fits(entry).then_some((*stream, *entry));
        }
        let least = self.by_time.first()?.0;
        let mut left = reach.looks();
        for &(_, stream) in &self.by_deadline {
            let lane = &self.lanes[usize::from(stream)];
            let lead = (lane.time - least) / UNIT * u64::from(lane.weight);
            if lead <= URGENT_LEAD
                && let Some(entry) = lane.queue.find(reach, &mut left, &mut fits)
            {
                return Some((StreamId(stream), entry));
            }
        }
        for &(_, stream) in &self.by_time {
            let queue = &self.lanes[usize::from(stream)].queue;
            if let Some(entry) = queue.find(reach, &mut left, &mut fits) {
                return Some((StreamId(stream), entry));
            }
            if left == 0 {
                return None;
            }
        }
        None
    }

    /// The entry that goes next.
    #[cfg(test)]
    pub(crate) fn first(&self) -> Option<(StreamId, Entry)> {
        self.find(Reach::First, |_| true)
    }

    /// The earliest deadline of a stream's next message.
    pub(crate) fn earliest_deadline(&self) -> Option<Instant> {
        match &self.solo {
            Some((_, entry)) => Some(entry.deadline).filter(|at| *at != NO_DEADLINE),
            None => self.by_deadline.first().map(|entry| entry.0),
        }
    }

    /// What a stream has to send, in its order.
    pub(crate) fn entries_of(&self, stream: StreamId) -> impl Iterator<Item = &Entry> {
        let solo = self.solo.iter().filter(move |solo| solo.0 == stream);
        let lane = self
            .lanes
            .get(stream.index())
            .into_iter()
            .flat_map(|lane| lane.queue.iter());
        solo.map(|solo| &solo.1).chain(lane)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Whether something waits that was begun before: a repair, the rest of a flight.
    pub(crate) const fn has_blocks(&self) -> bool {
        self.blocks > 0
    }

    /// Gives back what a burst needed.
    pub(crate) fn trim(&mut self) {
        for lane in &mut self.lanes {
            lane.queue.trim();
        }
        self.by_time.shrink_to_fit();
        self.by_deadline.shrink_to_fit();
    }
}

/// Puts a value into a sorted list.
fn insert<T: Ord + Copy>(list: &mut Vec<T>, value: T) {
    let at = list.partition_point(|other| *other < value);
    list.insert(at, value);
}

/// Takes a value out of a sorted list.
fn remove<T: Ord + Copy>(list: &mut Vec<T>, value: T) {
    if let Ok(at) = list.binary_search(&value) {
        list.remove(at);
    }
}

#[cfg(test)]
mod tests;
