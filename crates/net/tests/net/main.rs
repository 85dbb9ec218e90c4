//! The socket layer against the real kernel, on loopback.

mod driver;
mod poller;
mod support;
mod udp;
