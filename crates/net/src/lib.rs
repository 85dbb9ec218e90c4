//! Sockets, clocks and ciphers for Punctual: what the protocol crate needs of the operating system.
//!
//! - [`udp`]: non-blocking UDP sockets that move many datagrams with one system call, and a poller to wait for them;
//! - [`clock`]: monotonic nanoseconds;
//! - [`entropy`]: seeds from the operating system;
//! - [`crypto`]: the AEAD that seals packets;
//! - [`tables`]: builds the policy tables that packets have asked for, on a thread of its own.
//!
//! The protocol itself is in `punctual-proto` and knows nothing of this crate; [`udp::Driver`] is where the two meet. Code that needs `unsafe` lives in `sys`
//! modules and nowhere else.
#![deny(unsafe_code)]

pub mod clock;
pub mod crypto;
pub mod entropy;
pub mod tables;
pub mod udp;
