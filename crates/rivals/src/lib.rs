//! Other transports as contenders of the lab ([`punctual_lab::arm`]): bench only, nothing that ships depends on it.
//!
//! Each rival is tuned as its own documentation advises for little delay, and says so in its settings. All of them are driven
//! the same way: a flow is a state machine without sockets and clocks (`engine.rs`), and `flows.rs` gives all flows of a side
//! their sockets, one wait and their timers. So no rival pays for a runtime, and none for the timers of other flows. SRT alone is
//! a program of its own, and drives itself.
//!
//! | arm | what it is | file |
//! |---|---|---|
//! | `enet` | ENet, reliable packets on one channel | `enet.rs` |
//! | `kcp` | KCP with turbo settings | `kcp.rs` |
//! | `quic-streams`, `quic-datagrams` | quinn: a stream a message; datagrams without repair | `quic/` |
//! | `webrtc`, `webrtc-reliable` | str0m: a data channel with a lifetime; a reliable one | `webrtc.rs` |
//! | `renet` | renet over netcode, reliable and unordered | `renet.rs` |
//! | `srt`, `srt-fec` | SRT in live mode, without and with its redundancy: programs, where they are installed | `srt/` |
//!
//! Three rules are the same for all. A flow may hold [`QUEUE_BYTES_MAX`] that are not acknowledged; what comes on top is
//! refused. Whatever would declare a silent peer dead waits for [`DEAD_AFTER`], as a game's would, so that an outage of seconds
//! ends no flow. And a flow that its library gives up stays dead: nothing here reconnects. (SRT's program keeps rules of its own.)

mod enet;
mod engine;
mod flows;
mod kcp;
mod quic;
mod renet;
#[cfg(target_os = "linux")]
mod srt;
mod timers;
mod webrtc;

#[cfg(test)]
mod tests;

use std::time::Duration;

use punctual_lab::arm::{Arm, ArmError};

use self::flows::Contender;

/// What a flow may hold at its sender, in bytes: about a quarter of a minute of 2 KB thirty times a second.
pub const QUEUE_BYTES_MAX: usize = 1 << 20;

/// How long a silent peer is waited for.
pub const DEAD_AFTER: Duration = Duration::from_secs(60);

/// The largest message that any of the rivals takes, in bytes. KCP is the narrowest: it cuts into fewer than 128 pieces of 1,376.
pub const MESSAGE_BYTES_MAX: usize = 128 << 10;

/// The names of all rivals that are part of this crate, in the order of tables.
pub const fn all() -> [&'static str; 7] {
    [
        "enet",
        "kcp",
        "quic-streams",
        "quic-datagrams",
        "webrtc",
        "webrtc-reliable",
        "renet",
    ]
}

/// The names of those that are programs of their own, which may or may not be installed.
pub const fn programs() -> [&'static str; 2] {
    ["srt", "srt-fec"]
}

/// The rival of that name; None when there is none.
///
/// # Errors
/// When its keys cannot be made, or its program is not installed.
pub fn arm(name: &str) -> Result<Option<Box<dyn Arm>>, ArmError> {
    Ok(Some(match name {
        "enet" => Box::new(Contender(enet::ENet)),
        "kcp" => Box::new(Contender(kcp::KcpTurbo)),
        "quic-streams" => Box::new(Contender(quic::Quic::new(quic::Carriage::Streams)?)),
        "quic-datagrams" => Box::new(Contender(quic::Quic::new(quic::Carriage::Datagrams)?)),
        "webrtc" => Box::new(Contender(webrtc::WebRtc::new(webrtc::Lifetime::Deadline)?)),
        "webrtc-reliable" => Box::new(Contender(webrtc::WebRtc::new(webrtc::Lifetime::Unlimited)?)),
        "renet" => Box::new(Contender(renet::Renet::new())),
        #[cfg(target_os = "linux")]
        "srt" => Box::new(srt::Srt::new(false)?),
        #[cfg(target_os = "linux")]
        "srt-fec" => Box::new(srt::Srt::new(true)?),
        _ => return Ok(None),
    }))
}

/// A rival failed as a whole.
fn failed(arm: &str, why: impl ToString) -> ArmError {
    ArmError::Failed {
        arm: arm.to_owned(),
        why: why.to_string(),
    }
}
