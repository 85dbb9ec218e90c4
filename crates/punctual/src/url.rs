//! `punctual://host:port#KEY`: where a server is, and how to know that it is the one.

use std::convert::Infallible;
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use crate::PublicKey;

const SCHEME: &str = "punctual://";

/// A server's address and public key. An IPv6 address stands in brackets, as in `punctual://[::1]:7777#KEY`.
///
/// ```
/// use punctual::{ServerKey, ServerUrl, UrlError};
///
/// let url = ServerUrl::new("game.example", 7777, ServerKey::from_private([7; 32]).public());
/// assert_eq!(url.to_string().parse::<ServerUrl>().as_ref(), Ok(&url));
/// assert_eq!("punctual://game.example:7777".parse::<ServerUrl>(), Err(UrlError::MissingKey));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerUrl {
    host: String,
    port: u16,
    key: PublicKey,
}

impl ServerUrl {
    /// The URL of a server at `host`: a name, or an IP address, with or without brackets.
    #[must_use]
    pub fn new(host: impl Into<String>, port: u16, key: PublicKey) -> Self {
        let mut host = host.into();
        let bare = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        if let Some(bare) = bare {
            host = bare.to_owned();
        }
        Self { host, port, key }
    }

    /// A name, or an IP address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The UDP port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Host and port as a URL has them: `game.example:7777`, `[::1]:7777`.
    #[must_use]
    pub fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    }

    /// The server's public key.
    #[must_use]
    pub const fn key(&self) -> PublicKey {
        self.key
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}#{}", self.authority(), self.key)
    }
}

/// Why a text is not the URL of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlError {
    /// It does not begin with `punctual://`.
    Scheme,
    /// There is no `#KEY`.
    MissingKey,
    /// What follows the `#` is not 32 bytes in URL-safe base64.
    Key,
    /// There is no host.
    Host,
    /// There is no port, or none from 1 to 65535.
    Port,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "a server's URL begins with punctual://",
            Self::MissingKey => {
                "the URL ends before its #KEY: quote it in a shell, and copy it whole from the server"
            }
            Self::Key => {
                "the key after the # is not 43 characters of URL-safe base64: copy the URL whole"
            }
            Self::Host => {
                "the URL has no valid host after punctual:// (IPv6 addresses stand in brackets)"
            }
            Self::Port => "the URL has no port from 1 to 65535 between its host and the #",
        })
    }
}

impl std::error::Error for UrlError {}

impl FromStr for ServerUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let rest = text.trim().strip_prefix(SCHEME).ok_or(UrlError::Scheme)?;
        let (place, key) = rest.split_once('#').ok_or(UrlError::MissingKey)?;
        let place = place.strip_suffix('/').unwrap_or(place);
        let (host, port) = match place.strip_prefix('[') {
            Some(bracketed) => {
                let (host, port) = bracketed.split_once(']').ok_or(UrlError::Host)?;
                // A link-local one has a zone: which of this machine's links.
                let (address, zone) = host.split_once('%').unwrap_or((host, "0"));
                let is_address = address.parse::<Ipv6Addr>().is_ok();
                if !is_address || zone.is_empty() {
                    return Err(UrlError::Host);
                }
                (host, port.strip_prefix(':').ok_or(UrlError::Port)?)
            }
            None => place.split_once(':').ok_or(UrlError::Port)?,
        };
        let is_odd = |c: char| c.is_whitespace() || c.is_control() || "/@?[]".contains(c);
        if host.is_empty() || host.contains(is_odd) {
            return Err(UrlError::Host);
        }
        let port = port.parse().ok().filter(|port| *port > 0);
        let port = port.ok_or(UrlError::Port)?;
        let key = PublicKey::parse(key).ok_or(UrlError::Key)?;
        Ok(Self::new(host, port, key))
    }
}

impl TryFrom<&str> for ServerUrl {
    type Error = UrlError;

    fn try_from(text: &str) -> Result<Self, UrlError> {
        text.parse()
    }
}

impl TryFrom<&String> for ServerUrl {
    type Error = UrlError;

    fn try_from(text: &String) -> Result<Self, UrlError> {
        text.parse()
    }
}

impl From<&Self> for ServerUrl {
    fn from(url: &Self) -> Self {
        url.clone()
    }
}

impl From<Infallible> for UrlError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_come_back_as_they_went() {
        let key = PublicKey([0xfb; 32]);
        for host in [
            "game.example",
            "127.0.0.1",
            "::1",
            "2001:db8::7",
            "localhost",
            "fe80::1%eth0",
        ] {
            let url = ServerUrl::new(host, 7777, key);
            assert_eq!(url.to_string().parse(), Ok(url));
        }
        let in_brackets = ServerUrl::new("[::1]", 9, key);
        assert_eq!(in_brackets, ServerUrl::new("::1", 9, key));
        let url = ServerUrl::new("::1", 9, key);
        let text = url.to_string();
        assert!(text.starts_with("punctual://[::1]:9#"), "{text}");
        assert_eq!(text.rsplit('#').next().map(str::len), Some(43));
    }

    #[test]
    fn each_mistake_has_its_name() {
        let key = PublicKey([1; 32]);
        let cases = [
            ("http://a:1#K".to_string(), UrlError::Scheme),
            ("punctual://a:1".to_string(), UrlError::MissingKey),
            ("punctual://a:1#short".to_string(), UrlError::Key),
            (format!("punctual://a:1#{key}A"), UrlError::Key),
            (format!("punctual://:1#{key}"), UrlError::Host),
            (format!("punctual://a b:1#{key}"), UrlError::Host),
            (format!("punctual://[::1:1#{key}"), UrlError::Host),
            (format!("punctual://[a]:1#{key}"), UrlError::Host),
            (format!("punctual://[fe80::1%]:1#{key}"), UrlError::Host),
            (format!("punctual://a#{key}"), UrlError::Port),
            (format!("punctual://a:0#{key}"), UrlError::Port),
            (format!("punctual://::1:1#{key}"), UrlError::Host),
            (format!("punctual://a:70000#{key}"), UrlError::Port),
            (format!("punctual://[::1]#{key}"), UrlError::Port),
        ];
        for (text, error) in cases {
            assert_eq!(text.parse::<ServerUrl>(), Err(error), "{text}");
        }
    }
}
