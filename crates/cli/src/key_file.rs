//! A server's private key in a file: one line of URL-safe base64, readable by its owner only.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use data_encoding::BASE64URL_NOPAD;
use punctual_proto::ServerKey;

use crate::failure::Failure;

/// The key as it stands in files and URLs: 43 characters.
pub(crate) fn encode(key: &[u8; 32]) -> String {
    BASE64URL_NOPAD.encode(key)
}

/// Writes a new file; one that is there is never overwritten, since whoever knows its public key would be locked out.
pub(crate) fn create(path: &Path, key: &ServerKey) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|error| {
        Failure::bad_input(match error.kind() {
            io::ErrorKind::AlreadyExists => format!(
                "{} is there already and is not overwritten; remove it or choose another file with --out",
                path.display()
            ),
            _ => format!("{} cannot be written ({error}); choose another file with --out", path.display()),
        })
    })?;
    let line = encode(&key.private()) + "\n";
    file.write_all(line.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(|error| {
            Failure::failed(format_args!("{} was not written: {error}", path.display()))
        })
}

/// Reads what [`create`] wrote.
pub(crate) fn read(path: &Path) -> Result<ServerKey, Failure> {
    let bytes = fs::read(path).map_err(|error| {
        Failure::bad_input(format_args!(
            "the key {} cannot be read ({error}); `punctual keygen` makes one",
            path.display()
        ))
    })?;
    let decoded = BASE64URL_NOPAD.decode(bytes.trim_ascii()).ok();
    let private = decoded.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    private.map(ServerKey::from_private).ok_or_else(|| {
        Failure::bad_input(format_args!(
            "{} is not a key (43 characters of URL-safe base64); `punctual keygen` makes one",
            path.display()
        ))
    })
}
