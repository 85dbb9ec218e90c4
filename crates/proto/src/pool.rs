//! Buffers that are used again, so that the steady state allocates nothing per message.

use alloc::vec::Vec;

/// The smallest buffer handed out has 1 << SMALLEST bytes.
const SMALLEST: u32 = 8;
/// The same in bytes.
pub(crate) const LEAST: usize = 1 << SMALLEST;
/// Classes of 256 bytes to 512 KiB, each twice the one before.
const CLASSES: usize = 12;

/// Free buffers by size class, shared by the sessions of an endpoint.
#[derive(Debug)]
pub(crate) struct Pool {
    free: [Vec<Vec<u8>>; CLASSES],
    /// The fewest free buffers of each class since the last `shrink`: so many were not needed.
    spare: [usize; CLASSES],
    held_bytes: usize,
    held_max: usize,
}

impl Pool {
    /// A pool that keeps at most `held_max` bytes of free buffers; what is given back beyond it is freed.
    pub(crate) fn new(held_max: usize) -> Self {
        Self {
            free: core::array::from_fn(|_| Vec::new()),
            spare: [0; CLASSES],
            held_bytes: 0,
            held_max,
        }
    }

    /// An empty buffer with room for `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Vec<u8> {
        let Some(class) = class_for(len) else {
            return Vec::with_capacity(len);
        };
        match self.free[class].pop() {
            Some(buffer) => {
                self.held_bytes -= buffer.capacity();
                self.spare[class] = self.spare[class].min(self.free[class].len());
                buffer
            }
            None => Vec::with_capacity(1 << (SMALLEST as usize + class)),
        }
    }

    /// Takes a buffer back.
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        // The class that this capacity fills for certain: the largest power of two not above it.
        let Some(class) = capacity
            .checked_ilog2()
            .and_then(|log| log.checked_sub(SMALLEST))
        else {
            return;
        };
        if self.held_bytes + capacity > self.held_max || class as usize >= CLASSES {
            return;
        }
        buffer.clear();
        self.held_bytes += capacity;
        self.free[class as usize].push(buffer);
    }

    /// Frees half of what has not been needed since the last call; called now and then, busy or not. Half, so that a pause that
    /// is a little longer than most does not cost a thousand allocations.
    pub(crate) fn shrink(&mut self) {
        for (class, spare) in self.free.iter_mut().zip(&mut self.spare) {
            // The longest unused lie at the bottom.
            for buffer in class.drain(..spare.div_ceil(2)) {
                self.held_bytes -= buffer.capacity();
            }
            if class.is_empty() {
                *class = Vec::new();
            }
            *spare = class.len();
        }
    }

    /// Whether nothing is held.
    pub(crate) const fn is_empty(&self) -> bool {
        self.held_bytes == 0
    }
}

fn class_for(len: usize) -> Option<usize> {
    let class = len
        .max(1)
        .next_power_of_two()
        .trailing_zeros()
        .saturating_sub(SMALLEST) as usize;
    (class < CLASSES).then_some(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_returned_buffer_is_used_again() {
        let mut pool = Pool::new(1 << 20);
        let buffer = pool.take(1000);
        let address = buffer.as_ptr();
        pool.give(buffer);
        let again = pool.take(1024);
        assert_eq!(again.as_ptr(), address);
        assert!(again.is_empty() && again.capacity() >= 1024);
    }

    #[test]
    fn what_is_held_is_bounded() {
        let mut pool = Pool::new(4096);
        for _ in 0..100 {
            pool.give(Vec::with_capacity(1024));
        }
        assert!(pool.held_bytes <= 4096);
    }

    #[test]
    fn what_was_not_needed_goes() {
        let mut pool = Pool::new(1 << 20);
        for _ in 0..3 {
            pool.give(Vec::with_capacity(1024));
        }
        pool.shrink();
        let (a, b) = (pool.take(1024), pool.take(1024));
        pool.give(a);
        pool.give(b);
        pool.shrink();
        assert_eq!(pool.held_bytes, 2048);
        pool.shrink();
        pool.shrink();
        assert!(pool.is_empty());
    }

    #[test]
    fn odd_capacities_serve_only_what_they_hold() {
        let mut pool = Pool::new(1 << 20);
        pool.give(Vec::with_capacity(1500));
        assert!(pool.take(1024).capacity() >= 1024);
        pool.give(Vec::with_capacity(1500));
        assert!(pool.take(1400).capacity() >= 1400);
        // The next size, which it is nearer to and does not reach.
        pool.give(Vec::with_capacity(1500));
        assert!(pool.take(2000).capacity() >= 2000);
    }
}
