//! The next timeout of each session: a heap that knows where each session is in it, so that a change moves an entry
//! instead of leaving a stale one behind.

use alloc::vec::Vec;

use crate::time::Instant;

const ABSENT: u32 = u32::MAX;
/// Children of an entry: four share a cache line.
const ARITY: usize = 4;

/// Timeouts by session index.
#[derive(Default)]
pub(super) struct TimerHeap {
    heap: Vec<(Instant, u32)>,
    /// Position in the heap of each session.
    position: Vec<u32>,
}

impl TimerHeap {
    pub(super) fn earliest(&self) -> Option<Instant> {
        self.heap.first().map(|entry| entry.0)
    }

    /// The session whose timeout is the earliest.
    pub(super) fn first(&self) -> Option<(Instant, u32)> {
        self.heap.first().copied()
    }

    /// Sets, moves or removes the timeout of a session. O(log n).
    pub(super) fn set(&mut self, index: u32, at: Option<Instant>) {
        if index as usize >= self.position.len() {
            self.position.resize(index as usize + 1, ABSENT);
        }
        let position = self.position[index as usize];
        match (position, at) {
            (ABSENT, None) => {}
            (ABSENT, Some(at)) => {
                self.heap.push((at, index));
                self.rise(self.heap.len() - 1);
            }
            (position, Some(at)) => {
                let old = core::mem::replace(&mut self.heap[position as usize].0, at);
                if at < old {
                    self.rise(position as usize);
                } else {
                    self.sink(position as usize);
                }
            }
            (position, None) => self.remove(position as usize),
        }
    }

    /// Sees to it that the session's entry is no later than `at`. One that is earlier stays: whoever takes it out asks the
    /// session again. A session's timeout mostly moves later with each packet, and so costs nothing here.
    pub(super) fn set_at_latest(&mut self, index: u32, at: Option<Instant>) {
        let position = self.position.get(index as usize).copied().unwrap_or(ABSENT);
        let is_kept =
            position != ABSENT && at.is_some_and(|at| self.heap[position as usize].0 <= at);
        if !is_kept {
            self.set(index, at);
        }
    }

    /// Takes out a session that is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let &(at, index) = self.heap.first()?;
        if at > now {
            return None;
        }
        self.remove(0);
        Some(index)
    }

    fn remove(&mut self, position: usize) {
        let (_, index) = self.heap.swap_remove(position);
        self.position[index as usize] = ABSENT;
        if position < self.heap.len() {
            self.rise(position);
            self.sink(position);
        }
    }

    fn rise(&mut self, mut position: usize) {
        let entry = self.heap[position];
        while position > 0 {
            let parent = (position - 1) / ARITY;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(position, self.heap[parent]);
            position = parent;
        }
        self.put(position, entry);
    }

    fn sink(&mut self, mut position: usize) {
        let entry = self.heap[position];
        loop {
            let first = ARITY * position + 1;
            let last = (first + ARITY).min(self.heap.len());
            let Some(least) = (first..last).min_by_key(|&child| self.heap[child]) else {
                break;
            };
            if entry <= self.heap[least] {
                break;
            }
            self.put(position, self.heap[least]);
            position = least;
        }
        self.put(position, entry);
    }

    fn put(&mut self, position: usize, entry: (Instant, u32)) {
        self.heap[position] = entry;
        self.position[entry.1 as usize] = position as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    #[test]
    fn it_agrees_with_a_sorted_map() {
        let mut state = 42u64;
        let mut random = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut heap = TimerHeap::default();
        let mut model: BTreeMap<u32, Instant> = BTreeMap::new();
        for _ in 0..20_000 {
            let index = random(50) as u32;
            match random(5) {
                4 => {
                    let at = Instant::from_nanos(random(1000));
                    heap.set_at_latest(index, Some(at));
                    let kept = model.entry(index).or_insert(at);
                    *kept = at.min(*kept);
                }
                0 => {
                    heap.set(index, None);
                    model.remove(&index);
                }
                1 => {
                    let now = Instant::from_nanos(random(1000));
                    match heap.pop_due(now) {
                        Some(index) => {
                            let at = model.remove(&index).unwrap();
                            assert!(at <= now && model.values().all(|other| *other >= at));
                        }
                        None => assert!(model.values().all(|at| *at > now)),
                    }
                }
                _ => {
                    let at = Instant::from_nanos(random(1000));
                    heap.set(index, Some(at));
                    model.insert(index, at);
                }
            }
            assert_eq!(heap.earliest(), model.values().min().copied());
        }
    }
}
