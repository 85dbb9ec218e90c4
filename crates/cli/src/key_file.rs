//! Secrets in files (a server's private key, a token key, a connect token): one line that says which and has it in URL-safe base64, readable by their
//! owner only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use crate::failure::Failure;
use crate::output;
use data_encoding::BASE64URL_NOPAD;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secret {
    ServerKey,
    TokenKey,
    Token,
}

impl Secret {
    const ALL: [Self; 3] = [Self::ServerKey, Self::TokenKey, Self::Token];

    /// What its line begins with: one taken for another would lock everybody out, or show a key to all clients.
    const fn prefix(self) -> &'static str {
        match self {
            Self::ServerKey => "punctual-server-key:",
            Self::TokenKey => "punctual-token-key:",
            Self::Token => "punctual-token:",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::ServerKey => "a server's key",
            Self::TokenKey => "a token key",
            Self::Token => "a token",
        }
    }

    /// The command that makes such a file.
    const fn maker(self) -> &'static str {
        match self {
            Self::ServerKey => "punctual keygen",
            Self::TokenKey => "punctual token --new-key",
            Self::Token => "punctual token",
        }
    }
}

/// The key as it stands in URLs: 43 characters.
pub(crate) fn encode(key: &[u8; 32]) -> String {
    BASE64URL_NOPAD.encode(key)
}

/// Bytes of a file that are looked at; tokens are the longest.
const LINE_MAX: u64 = 4096;

/// Writes a new file; one that is there is never overwritten, since whoever relies on its key would be locked out.
pub(crate) fn create(path: &Path, what: Secret, secret: &[u8]) -> Result<(), Failure> {
    if path == Path::new("-") {
        return Err(Failure::bad_input(
            "- would be a file of that name; name another one: a key is not printed",
        ));
    }
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
    let line = format!("{}{}\n", what.prefix(), BASE64URL_NOPAD.encode(secret));
    file.write_all(line.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(|error| {
            // Part of a key is none, and would be in the way of the next.
            let _ = fs::remove_file(path);
            Failure::failed(format_args!("{} was not written: {error}", path.display()))
        })
}

/// Reads a key.
pub(crate) fn read_key(path: &Path, what: Secret) -> Result<[u8; 32], Failure> {
    let bytes = read(path, what)?;
    if is_open_to_others(path) {
        output::note(&format!(
            "{} can be read by others on this machine, who could pass for its owner: chmod 600 it",
            path.display()
        ));
    }
    <[u8; 32]>::try_from(bytes).map_err(|_| {
        Failure::bad_input(format_args!(
            "{} is not {} (32 bytes in URL-safe base64); `{}` makes one",
            path.display(),
            what.name(),
            what.maker()
        ))
    })
}

/// Whether others than its owner may read the file, where that can be told.
fn is_open_to_others(path: &Path) -> bool {
    #[cfg(unix)]
    {
        let mode =
            |file: fs::Metadata| std::os::unix::fs::PermissionsExt::mode(&file.permissions());
        fs::metadata(path).is_ok_and(|file| file.is_file() && mode(file) & 0o077 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// Reads what [`create`] wrote. A line that does not say what it is will do, as another program may have written it.
pub(crate) fn read(path: &Path, what: Secret) -> Result<Vec<u8>, Failure> {
    let maker = what.maker();
    // A key is a line: of anything longer its beginning says enough.
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LINE_MAX).read_to_end(&mut bytes));
    read.map_err(|error| {
        Failure::bad_input(format_args!(
            "{} cannot be read ({error}); `{maker}` makes one",
            path.display()
        ))
    })?;
    let line = bytes.trim_ascii();
    let mut others = Secret::ALL.into_iter().filter(|other| *other != what);
    if let Some(other) = others.find(|other| line.starts_with(other.prefix().as_bytes())) {
        return Err(Failure::bad_input(format_args!(
            "{} holds {}, where {} is needed; `{maker}` makes one",
            path.display(),
            other.name(),
            what.name()
        )));
    }
    let secret = line.strip_prefix(what.prefix().as_bytes());
    BASE64URL_NOPAD.decode(secret.unwrap_or(line)).map_err(|_| {
        Failure::bad_input(format_args!(
            "{} is not one line of URL-safe base64; `{maker}` makes one",
            path.display()
        ))
    })
}
