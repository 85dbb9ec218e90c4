//! The public functions against a slow reference, against another crate, and against bytes written down.

mod errors;
mod oracle;
mod properties;
mod reference;
mod vectors;
