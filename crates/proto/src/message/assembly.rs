//! Messages of several blocks, as their blocks come: joined whole up to [`WHOLE_MAX`], handed on piece by piece above.

use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::inbox::{Ready, Taken};
use crate::limits::{ASSEMBLIES_MAX, WHOLE_MAX};
use crate::pool::Pool;
use crate::stream::Arrived;
use crate::wire::Order;

/// What a message's first block says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) stream: u16,
    pub(crate) order: Order,
    pub(crate) message_len: usize,
}

/// One message, some blocks of which have been rebuilt.
struct Assembly {
    first_block: u64,
    /// Known once the first block is rebuilt.
    head: Option<Head>,
    /// Parts that are not joined or handed on yet, by index. A peer may send thousands in any order.
    parts: BTreeMap<u16, Vec<u8>>,
    /// Index of the part that is joined next, and the bytes before it.
    next_index: u32,
    offset: usize,
    /// Of a message that is handed on whole: what is joined.
    whole: Vec<u8>,
    /// Bytes held here.
    bytes: usize,
}

/// What a part that waits counts besides its content, so that small ones are bounded as well.
const PART_COST: usize = 64;

/// All messages of a session that are half assembled.
#[derive(Default)]
pub(crate) struct Assemblies {
    list: Vec<Assembly>,
    held_bytes: usize,
}

impl Assemblies {
    pub(crate) const fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn contains(&self, first_block: u64) -> bool {
        self.list
            .iter()
            .any(|assembly| assembly.first_block == first_block)
    }

    /// Takes in a part of the message that begins with `first_block`; what can be handed on goes to `ready`.
    pub(crate) fn add(
        &mut self,
        first_block: u64,
        index: u16,
        head: Option<Head>,
        content: &[u8],
        ready: &mut VecDeque<Ready>,
        pool: &mut Pool,
    ) -> Taken {
        let position = self
            .list
            .iter()
            .position(|assembly| assembly.first_block == first_block);
        let position = match position {
            Some(position) => position,
            None if self.list.len() >= ASSEMBLIES_MAX => return Taken::Malformed,
            None => {
                self.list.push(Assembly {
                    first_block,
                    head: None,
                    parts: BTreeMap::new(),
                    next_index: 0,
                    offset: 0,
                    whole: Vec::new(),
                    bytes: 0,
                });
                self.list.len() - 1
            }
        };
        let assembly = &mut self.list[position];
        if u32::from(index) < assembly.next_index {
            return Taken::Malformed;
        }
        let Entry::Vacant(place) = assembly.parts.entry(index) else {
            return Taken::Malformed;
        };
        // The smallest of the pool's buffers are large beside what a small part counts.
        let mut part = if content.len() < PART_COST {
            Vec::with_capacity(content.len())
        } else {
            pool.take(content.len())
        };
        part.extend_from_slice(content);
        place.insert(part);
        assembly.head = assembly.head.or(head);
        assembly.bytes += content.len() + PART_COST;
        self.held_bytes += content.len() + PART_COST;
        self.advance(position, ready, pool)
    }

    /// Joins, or hands on, the parts whose turn it is.
    fn advance(&mut self, position: usize, ready: &mut VecDeque<Ready>, pool: &mut Pool) -> Taken {
        let assembly = &mut self.list[position];
        let Some(head) = assembly.head else {
            return Taken::Kept;
        };
        let mut taken = Taken::Kept;
        while let Some(part) = assembly.parts.first_entry()
            && u32::from(*part.key()) == assembly.next_index
        {
            let mut part = part.remove();
            self.held_bytes -= part.len() + PART_COST;
            assembly.bytes -= part.len() + PART_COST;
            assembly.next_index += 1;
            // What is beyond the end is the last block's padding.
            part.truncate(head.message_len - assembly.offset);
            let offset = assembly.offset;
            assembly.offset += part.len();
            if head.message_len <= WHOLE_MAX {
                assembly.bytes += part.len();
                self.held_bytes += part.len();
                if offset == 0 {
                    // It grows with what comes: a peer's word for a length reserves nothing.
                    assembly.whole = part;
                } else {
                    assembly.whole.extend_from_slice(&part);
                    pool.give(part);
                }
            } else {
                ready.push_back(Ready::Piece {
                    head,
                    first_block: assembly.first_block,
                    offset,
                    data: part,
                });
                taken = Taken::Ready;
            }
            if assembly.offset == head.message_len {
                let assembly = self.remove(position, pool);
                if head.message_len <= WHOLE_MAX {
                    ready.push_back(Ready::Message(Arrived {
                        stream: head.stream,
                        order: head.order,
                        first_block: assembly.first_block,
                        data: assembly.whole,
                    }));
                }
                return Taken::Ready;
            }
        }
        taken
    }

    fn remove(&mut self, position: usize, pool: &mut Pool) -> Assembly {
        let mut assembly = self.list.swap_remove(position);
        self.held_bytes -= assembly.bytes;
        while let Some((_, part)) = assembly.parts.pop_first() {
            pool.give(part);
        }
        assembly
    }

    /// Lets go of the messages that begin with one of these blocks; of those that were handed on in part `aborted` hears.
    pub(crate) fn drop_range(
        &mut self,
        first_blocks: &RangeInclusive<u64>,
        aborted: &mut VecDeque<Ready>,
        pool: &mut Pool,
    ) {
        self.drop_where(
            |first_block, _| first_blocks.contains(&first_block),
            aborted,
            pool,
        );
    }

    /// Lets go of the messages that a newer one, which begins with `newest`, supersedes.
    pub(crate) fn drop_superseded(
        &mut self,
        stream: u16,
        order: Order,
        newest: u64,
        aborted: &mut VecDeque<Ready>,
        pool: &mut Pool,
    ) {
        let is_older = |first_block, head: Option<Head>| {
            first_block < newest
                && head.is_some_and(|head| head.stream == stream && head.order == order)
        };
        self.drop_where(is_older, aborted, pool);
    }

    fn drop_where(
        &mut self,
        is_over: impl Fn(u64, Option<Head>) -> bool,
        aborted: &mut VecDeque<Ready>,
        pool: &mut Pool,
    ) {
        let mut position = 0;
        while let Some(assembly) = self.list.get(position) {
            if !is_over(assembly.first_block, assembly.head) {
                position += 1;
                continue;
            }
            let assembly = self.remove(position, pool);
            let is_begun = assembly.offset > 0;
            if let Some(head) = assembly
                .head
                .filter(|head| is_begun && head.message_len > WHOLE_MAX)
            {
                aborted.push_back(Ready::Aborted {
                    stream: head.stream,
                    first_block: assembly.first_block,
                });
            }
            pool.give(assembly.whole);
        }
    }

    pub(crate) fn trim(&mut self) {
        self.list.shrink_to_fit();
    }
}
