//! Secrets in files (a server's private key, a token key, a connect token): one line of URL-safe base64, readable by their owner only.

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

/// Writes a server's key into a new file.
pub(crate) fn create(path: &Path, key: &ServerKey) -> Result<(), Failure> {
    create_secret(path, &key.private())
}

/// Writes a new file; one that is there is never overwritten, since whoever relies on its key would be locked out.
pub(crate) fn create_secret(path: &Path, secret: &[u8]) -> Result<(), Failure> {
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
    let line = BASE64URL_NOPAD.encode(secret) + "\n";
    file.write_all(line.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(|error| {
            // Part of a key is none, and would be in the way of the next.
            let _ = fs::remove_file(path);
            Failure::failed(format_args!("{} was not written: {error}", path.display()))
        })
}

/// Reads a server's key.
pub(crate) fn read(path: &Path) -> Result<ServerKey, Failure> {
    read_key(path, "punctual keygen").map(ServerKey::from_private)
}

/// Reads 32 bytes; `maker` is the command that makes such a file.
pub(crate) fn read_key(path: &Path, maker: &str) -> Result<[u8; 32], Failure> {
    let bytes = read_secret(path, maker)?;
    <[u8; 32]>::try_from(bytes).map_err(|_| {
        Failure::bad_input(format_args!(
            "{} is not a key (43 characters of URL-safe base64); `{maker}` makes one",
            path.display()
        ))
    })
}

/// Reads what [`create_secret`] wrote.
pub(crate) fn read_secret(path: &Path, maker: &str) -> Result<Vec<u8>, Failure> {
    let bytes = fs::read(path).map_err(|error| {
        Failure::bad_input(format_args!(
            "{} cannot be read ({error}); `{maker}` makes one",
            path.display()
        ))
    })?;
    BASE64URL_NOPAD.decode(bytes.trim_ascii()).map_err(|_| {
        Failure::bad_input(format_args!(
            "{} is not one line of URL-safe base64; `{maker}` makes one",
            path.display()
        ))
    })
}
