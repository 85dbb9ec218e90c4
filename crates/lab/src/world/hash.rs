//! A hash of a run: equal for equal runs, on every machine.

use punctual_proto::Event;

use super::{HostId, Moment};

/// FNV-1a over 64-bit words.
pub(super) struct Hasher(u64);

impl Default for Hasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher {
    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word)
            .wrapping_mul(0x0000_0100_0000_01b3)
            .rotate_left(23);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        for &byte in rest {
            self.word(u64::from(byte));
        }
    }

    pub(super) fn datagram(&mut self, at: Moment, host: HostId, datagram: &[u8]) {
        self.word(at.0);
        self.word(u64::from(host.0));
        self.bytes(datagram);
    }

    pub(super) fn event(&mut self, at: Moment, host: HostId, event: &Event) {
        self.word(at.0);
        self.word(u64::from(host.0));
        if let Event::Message { data, .. } = event {
            self.bytes(data);
        } else {
            self.bytes(format!("{event:?}").as_bytes());
        }
    }

    pub(super) const fn value(&self) -> u64 {
        self.0
    }
}
