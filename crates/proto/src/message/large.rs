//! A message of several blocks: its content, and how far it is cut, sent and acknowledged. Blocks are cut one at a time, when
//! there is nothing more urgent to send, so that no more of the content is copied than is on its way.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::limits::{APPEND_MAX, WHOLE_MAX};

/// Content that the application keeps, for one message or for many.
pub type SharedContent = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Where the content of a large message comes from.
pub(crate) enum Source {
    /// Copied when it was accepted.
    Owned(Vec<u8>),
    Shared(SharedContent),
    /// Appended piece by piece; what was cut is gone from the front.
    Appended(VecDeque<u8>),
}

/// So many parts of content that comes piece by piece may be as small as its pieces; from there on one has to have
/// [`PART_MIN`] bytes, or be the last.
const SMALL_PARTS_MAX: u16 = 1 << 14;
/// What of such content is always enough for a part.
pub(crate) const PART_MIN: usize = 4096;

/// A block of it that was cut.
struct Part {
    block: u64,
    bytes: u32,
    is_done: bool,
}

/// A message of several blocks on its way.
pub(crate) struct Large {
    source: Source,
    len: usize,
    /// Bytes of the content that were cut into blocks.
    cut: usize,
    /// Bytes that were appended so far, for content that comes piece by piece.
    appended: usize,
    /// Index of the next block.
    next_index: u16,
    /// Blocks from the oldest that is not done on.
    parts: VecDeque<Part>,
    /// Bytes that the receiver may hold of it because something before them is missing.
    held: usize,
}

impl Large {
    pub(crate) fn new(source: Source, len: usize) -> Self {
        let appended = match &source {
            Source::Owned(_) | Source::Shared(_) => len,
            Source::Appended(_) => 0,
        };
        Self {
            source,
            len,
            cut: 0,
            appended,
            next_index: 0,
            parts: VecDeque::new(),
            held: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn has_begun(&self) -> bool {
        self.next_index > 0
    }

    pub(crate) const fn is_all_cut(&self) -> bool {
        self.has_begun() && self.cut == self.len
    }

    /// Whether this block is the last one of it.
    pub(crate) fn ends_with(&self, block: u64) -> bool {
        self.is_all_cut() && self.parts.back().is_some_and(|part| part.block == block)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.is_all_cut() && self.parts.is_empty()
    }

    /// Bytes not yet cut.
    pub(crate) const fn uncut(&self) -> usize {
        self.len - self.cut
    }

    /// Bytes that can be cut now.
    pub(crate) const fn available(&self) -> usize {
        self.appended - self.cut
    }

    /// Whether a block may be cut of what is there.
    pub(crate) const fn is_cuttable(&self) -> bool {
        // With these all of a message of the largest size has an index, however small the pieces are that it comes in.
        let is_worth_an_index = self.next_index < SMALL_PARTS_MAX || self.available() >= PART_MIN;
        let is_there = self.available() == self.uncut();
        !self.is_all_cut() && (is_there || (self.available() > 0 && is_worth_an_index))
    }

    /// Bytes of the content that are held here besides blocks.
    pub(crate) fn held_here(&self) -> usize {
        match &self.source {
            Source::Owned(_) | Source::Shared(_) => 0,
            Source::Appended(data) => data.len(),
        }
    }

    /// Bytes of content that was copied whole when it was accepted.
    pub(crate) const fn owned_bytes(&self) -> usize {
        match &self.source {
            Source::Owned(data) => data.len(),
            Source::Shared(_) | Source::Appended(_) => 0,
        }
    }

    /// What the receiver may have to hold of it now: all of a message that is handed on whole, of others what is cut and has
    /// something unfinished before it.
    pub(crate) const fn burden(&self) -> usize {
        if self.len <= WHOLE_MAX && self.has_begun() {
            self.len
        } else {
            self.held
        }
    }

    /// Takes in more of the content; how many bytes of it.
    pub(crate) fn append(&mut self, data: &[u8]) -> usize {
        let Source::Appended(waiting) = &mut self.source else {
            return 0;
        };
        let room = (APPEND_MAX - waiting.len()).min(self.len - self.appended);
        let taken = data.len().min(room);
        waiting.extend(&data[..taken]);
        self.appended += taken;
        taken
    }

    /// Whether no content is to come any more.
    pub(crate) const fn is_appended(&self) -> bool {
        match &self.source {
            Source::Appended(_) => self.appended == self.len,
            _ => true,
        }
    }

    /// Whether content is still to come, and there is room for it.
    pub(crate) fn wants_content(&self) -> bool {
        match &self.source {
            Source::Appended(waiting) => {
                self.appended < self.len && waiting.len() * 2 <= APPEND_MAX
            }
            _ => false,
        }
    }

    pub(crate) const fn next_index(&self) -> u16 {
        self.next_index
    }

    /// Takes the next `len` bytes for block `block`, appending them to `out`.
    pub(crate) fn cut(&mut self, block: u64, len: usize, out: &mut Vec<u8>) {
        match &mut self.source {
            Source::Owned(data) => out.extend_from_slice(&data[self.cut..self.cut + len]),
            Source::Shared(data) => {
                // An application's `as_ref` may answer differently from one time to the next; what it lacks is zeros.
                let data = (**data).as_ref();
                let end = (self.cut + len).min(data.len());
                let part = &data[self.cut.min(end)..end];
                out.extend_from_slice(part);
                out.resize(out.len() + len - part.len(), 0);
            }
            Source::Appended(waiting) => {
                let (front, back) = waiting.as_slices();
                let from_front = len.min(front.len());
                out.extend_from_slice(&front[..from_front]);
                out.extend_from_slice(&back[..len - from_front]);
                waiting.drain(..len);
            }
        }
        self.cut += len;
        self.next_index += 1;
        self.held += len;
        self.parts.push_back(Part {
            block,
            bytes: len as u32,
            is_done: false,
        });
    }

    /// A block of it has arrived. Returns how many bytes the receiver need not hold any more.
    pub(crate) fn on_block_done(&mut self, block: u64) {
        if let Ok(at) = self.parts.binary_search_by_key(&block, |part| part.block) {
            self.parts[at].is_done = true;
        }
        while let Some(part) = self.parts.pop_front_if(|part| part.is_done) {
            self.held -= part.bytes as usize;
        }
    }

    /// Blocks that were cut and are not done.
    pub(crate) fn live_blocks(&self) -> impl Iterator<Item = u64> {
        self.parts
            .iter()
            .filter(|part| !part.is_done)
            .map(|part| part.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_comes_out_as_it_went_in_whatever_its_source() {
        let content: Vec<u8> = (0..100_000u32).map(|i| (i * 7) as u8).collect();
        let shared: SharedContent = Arc::new(content.clone());
        for source in [
            Source::Owned(content.clone()),
            Source::Shared(shared),
            Source::Appended(VecDeque::new()),
        ] {
            let mut large = Large::new(source, content.len());
            let mut fed = large.available();
            let (mut out, mut block) = (Vec::new(), 0);
            while !large.is_all_cut() {
                if fed < content.len() {
                    fed += large.append(&content[fed..(fed + 7777).min(content.len())]);
                }
                let len = large.available().min(30_000);
                large.cut(block, len, &mut out);
                block += 2;
            }
            assert_eq!(out, content);
            assert!(!large.is_done());
            let blocks: Vec<u64> = large.live_blocks().collect();
            for &block in blocks.iter().rev() {
                large.on_block_done(block);
            }
            assert!(large.is_done());
            assert_eq!(large.held, 0);
        }
    }

    #[test]
    fn what_waits_to_be_cut_is_bounded() {
        let mut large = Large::new(Source::Appended(VecDeque::new()), 10 * APPEND_MAX);
        let piece = alloc::vec![0; APPEND_MAX];
        assert_eq!(large.append(&piece), APPEND_MAX);
        assert_eq!(large.append(&piece), 0);
        assert!(!large.wants_content());
        large.cut(0, APPEND_MAX / 2, &mut Vec::new());
        assert!(large.wants_content());
        assert_eq!(large.append(&piece), APPEND_MAX / 2);
    }

    #[test]
    fn a_shared_content_that_shrinks_harms_nobody() {
        struct Fickle(core::sync::atomic::AtomicBool);
        impl AsRef<[u8]> for Fickle {
            fn as_ref(&self) -> &[u8] {
                if self.0.swap(true, core::sync::atomic::Ordering::Relaxed) {
                    &[]
                } else {
                    &[1; 8]
                }
            }
        }
        let fickle: SharedContent = Arc::new(Fickle(false.into()));
        let mut large = Large::new(Source::Shared(fickle), 8);
        let mut out = Vec::new();
        large.cut(0, 5, &mut out);
        large.cut(1, 3, &mut out);
        assert_eq!(out, [1, 1, 1, 1, 1, 0, 0, 0]);
    }
}
