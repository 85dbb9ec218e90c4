//! A TCP packet without its content (RFC 9293; SACK: RFC 2018).

use std::time::Duration;

use crate::arm::Sender;

/// Blocks of a SACK option that are kept: with timestamps there is room for three.
pub(super) const SACK_BLOCKS: usize = 4;

pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;

/// What matters of a packet, and where it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Nanoseconds since the network began.
    pub at_ns: u64,
    /// At which end it was seen: leaving there, or reaching it.
    pub seen_at: Sender,
    /// Who sent it.
    pub from: Sender,
    /// Which client's it is.
    pub flow: u32,
    /// The client's port.
    pub port: u16,
    /// All of it, IP header included, in bytes.
    pub ip_bytes: u16,
    /// IP and TCP headers with their options, in bytes.
    pub header_bytes: u16,
    pub(super) flags: u8,
    /// Whether it offers SACK (in SYN packets).
    pub(super) offers_sack: bool,
    pub(super) sequence: u32,
    pub(super) acknowledged: u32,
    pub(super) window: u16,
    pub(super) sack_count: u8,
    pub(super) sack: [(u32, u32); SACK_BLOCKS],
}

impl Packet {
    /// Reads the TCP part of an IP packet of `ip_bytes`. None when that is no whole header.
    pub fn read(
        at: Duration,
        seen_at: Sender,
        from: Sender,
        flow: u32,
        ip_bytes: usize,
        tcp: &[u8],
    ) -> Option<Self> {
        let fixed = tcp.first_chunk::<20>()?;
        let header_len = usize::from(fixed[12] >> 4) * 4;
        let options = tcp.get(20..header_len)?;
        let port = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let mut packet = Self {
            at_ns: at.as_nanos() as u64,
            seen_at,
            from,
            flow,
            port: match from {
                Sender::Client => port(0),
                Sender::Server => port(2),
            },
            ip_bytes: u16::try_from(ip_bytes).ok()?,
            header_bytes: u16::try_from(ip_bytes.checked_sub(tcp.len())? + header_len).ok()?,
            flags: fixed[13],
            offers_sack: false,
            sequence: word(&fixed[4..]),
            acknowledged: word(&fixed[8..]),
            window: port(14),
            sack_count: 0,
            sack: [(0, 0); SACK_BLOCKS],
        };
        packet.read_options(options);
        Some(packet)
    }

    fn read_options(&mut self, mut options: &[u8]) {
        while let [kind, rest @ ..] = options {
            match kind {
                0 => return,
                1 => {
                    options = rest;
                    continue;
                }
                _ => {}
            }
            let Some(&len) = rest.first() else { return };
            let Some((option, after)) = options.split_at_checked(usize::from(len).max(2)) else {
                return;
            };
            match kind {
                4 => self.offers_sack = true,
                5 => {
                    for block in option[2..].chunks_exact(8).take(SACK_BLOCKS) {
                        self.sack[usize::from(self.sack_count)] = (word(block), word(&block[4..]));
                        self.sack_count += 1;
                    }
                }
                _ => {}
            }
            options = after;
        }
    }

    /// Bytes of content.
    pub const fn payload_bytes(&self) -> u16 {
        self.ip_bytes.saturating_sub(self.header_bytes)
    }

    /// Whether it begins, ends or breaks off a connection.
    pub(super) const fn is_control(&self) -> bool {
        self.flags & (SYN | FIN | RST) != 0
    }

    pub(super) const fn is_syn(&self) -> bool {
        self.flags & SYN != 0
    }
}

fn word(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk()
        .map_or(0, |bytes| u32::from_be_bytes(*bytes))
}
