//! Real sockets on loopback, few and bounded: what an application sees, whichever way it drives an endpoint.

mod connecting;
mod ending;
mod large;
mod measure;
mod messages;
mod streams;
mod styles;
mod support;
