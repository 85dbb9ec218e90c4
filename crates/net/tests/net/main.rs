//! The socket layer against the real kernel, on loopback.

mod poller;
mod support;
mod udp;
