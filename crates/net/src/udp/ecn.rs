//! The two bits in which the network reports congestion (RFC 3168).

/// Explicit congestion notification, as it stands in the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The sender does not understand congestion marks.
    #[default]
    NotEct = 0b00,
    /// Capable, and asks for low-latency treatment (L4S, RFC 9331).
    Ect1 = 0b01,
    /// Capable, the classic code point.
    Ect0 = 0b10,
    /// Congestion experienced: a router marked the packet instead of dropping it.
    Ce = 0b11,
}

impl Ecn {
    /// From the lower two bits of a TOS or traffic class byte; the others are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            0b11 => Self::Ce,
            _ => Self::NotEct,
        }
    }

    /// The bits in the header.
    pub const fn bits(self) -> u8 {
        self as u8
    }
}
