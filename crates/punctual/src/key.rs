//! Keys and tokens: who a server is, and who may connect to it.

use std::fmt;
use std::time::{Duration, SystemTime};

use data_encoding::BASE64URL_NOPAD;
use punctual_net::clock::unix_seconds;
use punctual_net::crypto::AwsLc;
use punctual_net::entropy::{self, EntropyError};
use punctual_proto::{ConnectToken, TokenClaims, TokenError, TokenKey};

/// A server's long-term key pair. Clients know its public half from the server's URL.
#[derive(Clone, Debug)]
pub struct ServerKey(pub(crate) punctual_proto::ServerKey);

impl ServerKey {
    /// A new key pair. Keep it ([`private`](Self::private)): with another one, the URLs given out are of no use any more.
    ///
    /// # Errors
    /// When the operating system gives no randomness.
    pub fn generate() -> Result<Self, EntropyError> {
        entropy::seed().map(Self::from_private)
    }

    /// The key pair with this private half: 32 random bytes.
    #[must_use]
    pub fn from_private(private: [u8; 32]) -> Self {
        Self(punctual_proto::ServerKey::from_private(private))
    }

    /// What must stay on the server.
    #[must_use]
    pub const fn private(&self) -> [u8; 32] {
        self.0.private()
    }

    /// What clients must know.
    #[must_use]
    pub const fn public(&self) -> PublicKey {
        PublicKey(self.0.public())
    }
}

/// The public half of a [`ServerKey`]. Displays as 43 characters of URL-safe base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64URL_NOPAD.encode(&self.0))
    }
}

/// Makes connect tokens; for the game's backend, which shares a [`TokenKey`] with its servers
/// ([`Config::token_key`](crate::Config::token_key)).
///
/// ```
/// use punctual::{Config, Endpoint, ServerKey, TokenIssuer, TokenKey};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let token_key = TokenKey([7; 32]); // 32 random bytes that the backend and its servers know
/// let config = Config { token_key: Some(token_key.clone()), ..Config::default() };
/// let server = Endpoint::server(config, "127.0.0.1:0".parse()?, ServerKey::generate()?)?;
/// let url = server.url("127.0.0.1").expect("it is a server");
///
/// let token = TokenIssuer::new(token_key).issue(b"player 17", Duration::from_secs(60))?;
///
/// let client = Endpoint::client(Config::default())?;
/// let session = client.connect_with_token_blocking(&url, &token)?;
/// assert_eq!(server.accept_blocking()?.identity(), b"player 17");
/// # drop(session);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TokenIssuer {
    key: TokenKey,
    servers: Vec<[u8; 32]>,
}

impl TokenIssuer {
    /// Tokens that every server with this key accepts.
    #[must_use]
    pub const fn new(key: TokenKey) -> Self {
        Self {
            key,
            servers: Vec::new(),
        }
    }

    /// Tokens for these servers only; at most 8.
    #[must_use]
    pub fn for_servers(mut self, servers: impl IntoIterator<Item = PublicKey>) -> Self {
        self.servers = servers.into_iter().map(|key| key.0).collect();
        self
    }

    /// A token for the client `identity` (at most 255 bytes), good for `lifetime` from now and for a second longer at most (of no time it is
    /// good for none). It goes to the client as bytes
    /// ([`ConnectToken::to_bytes`]) by a way that keeps it secret.
    ///
    /// # Errors
    /// When the identity or the list of servers is too long, or there is no randomness.
    pub fn issue(&self, identity: &[u8], lifetime: Duration) -> Result<ConnectToken, IssueError> {
        let claims = TokenClaims {
            identity: identity.to_vec(),
            expires_unix_s: expiry(SystemTime::now(), lifetime),
            servers: self.servers.clone(),
            psk: entropy::seed().map_err(IssueError::Entropy)?,
        };
        let salt = entropy::seed().map_err(IssueError::Entropy)?;
        let sealed = claims.seal(&AwsLc, &self.key, salt);
        sealed.map_err(IssueError::Token)
    }
}

/// The second from which on a token is good no more, as servers count them: they take the one that has begun for over.
fn expiry(now: SystemTime, lifetime: Duration) -> u64 {
    // A lifetime beyond all clocks is for ever.
    let expires = now.checked_add(lifetime).map_or(u64::MAX, unix_seconds);
    let begun = if lifetime.is_zero() { 0 } else { 2 };
    expires.saturating_add(begun)
}

/// Why a token could not be made.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum IssueError {
    /// Something in it is too long.
    Token(TokenError),
    /// No randomness.
    Entropy(EntropyError),
}

impl fmt::Display for IssueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(error) => error.fmt(f),
            Self::Entropy(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for IssueError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token of a second was good for none, since issuer and server both rounded to its disadvantage.
    #[test]
    fn tokens_are_good_for_all_of_their_lifetime_and_a_second_more_at_most() {
        let second = Duration::from_secs(1);
        for ms in [0, 1, 500, 999] {
            let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_000 + ms);
            for lifetime in [second, second / 2, second * 3600] {
                let is_good = |after| unix_seconds(now + after) + 1 < expiry(now, lifetime);
                assert!(
                    is_good(lifetime - Duration::from_millis(1)),
                    "{ms} {lifetime:?}"
                );
                assert!(!is_good(lifetime + second), "{ms} {lifetime:?}");
            }
            assert!(unix_seconds(now) + 1 >= expiry(now, Duration::ZERO));
        }
        assert_eq!(expiry(SystemTime::now(), Duration::MAX), u64::MAX);
    }
}
