//! Everything that stands in for the network and says afterwards how it went.
//!
//! [`channel`] decides the fate of every packet; [`trace`] reads recorded networks into such channels and [`profile`]
//! names built-in ones; [`stats`] turns latencies into quantiles and intervals, [`report`] into pages and tables.
//! [`genie`] says what no sender can beat over a channel.
//! [`game`] is a game of tanks and what its players see of each other; `tcp_trace` says from packets what TCP did to a game.
//! [`world`] runs the shipping protocol over such channels and shared links in virtual time; [`rival`] is what it shares them
//! with; [`simulate`] is the workload that measures it.
//! [`compare`] plays all policies over all recordings of a folder, and judges one beside another.
//! [`scenario`] reads files that describe several streams in many sessions, draws their messages and counts what becomes of them.
//! [`population`] makes thousands of clients with paths of their own; [`reproduce`] judges results beside those of papers;
//! `claim` is what two of them say of TCP and games.
//! [`relay`] puts the channels between real sockets; [`arm`] is what can be compared over such networks.
//! Nothing but these reads a clock or opens a socket: time is an argument and chance comes from a seed ([`chance`]).
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
pub mod arena;
pub mod arm;
#[cfg(target_os = "linux")]
pub mod calibration;
pub mod chance;
pub mod channel;
#[cfg(target_os = "linux")]
pub mod claim;
pub mod compare;
#[cfg(target_os = "linux")]
pub mod emulator;
pub mod game;
pub mod genie;
pub mod population;
pub mod profile;
pub mod relay;
pub mod report;
pub mod reproduce;
pub mod rival;
pub mod scenario;
pub mod simulate;
pub mod stats;
pub mod storm;
#[cfg(unix)]
pub mod tcp_trace;
pub mod trace;
pub mod world;
