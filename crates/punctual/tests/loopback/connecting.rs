//! Who gets in, who does not, and what they are told.

use std::future::Future;
use std::net::UdpSocket;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use futures_lite::future;
use punctual::{
    CloseReason, Config, ConnectError, Endpoint, PublicKey, Refusal, ServerKey, ServerUrl,
    TokenIssuer, TokenKey, frame,
};

use crate::support::{accept, client, server};

fn refusal(result: Result<punctual::Session, ConnectError>) -> Option<Refusal> {
    match result {
        Err(ConnectError::Failed {
            why: CloseReason::Refused { why },
        }) => Some(why),
        _ => None,
    }
}

/// Goal: a client does not talk to a server that is not the one it means.   Method: a URL with another key.
#[test]
fn a_wrong_key_is_refused() {
    let (_server, url) = server(Config::default());
    let other = ServerKey::generate().unwrap().public();
    let url = ServerUrl::new(url.host(), url.port(), other);
    let result = client().connect_blocking(&url);
    let text = result.as_ref().unwrap_err().to_string();
    assert!(text.contains("does not hold the key"), "{text}");
    assert_eq!(refusal(result), Some(Refusal::Key));
}

/// Goal: tokens open the door for whom they name, as long as they last.   Method: none, expired, of another backend, for another
/// server, and a good one.
#[test]
fn tokens_admit_whom_they_name() {
    let key = TokenKey([3; 32]);
    let config = Config {
        token_key: Some(key.clone()),
        ..Config::default()
    };
    let (server, url) = server(config);
    let client = client();
    let good = Duration::from_secs(3600);
    let issue = |issuer: TokenIssuer, lifetime| issuer.issue(b"ada", lifetime).unwrap();
    let issuer = TokenIssuer::new(key.clone());
    assert_eq!(
        refusal(client.connect_blocking(&url)),
        Some(Refusal::TokenMissing)
    );

    let expired = issue(issuer.clone(), Duration::ZERO);
    let result = client.connect_with_token_blocking(&url, &expired);
    assert_eq!(refusal(result), Some(Refusal::TokenExpired));

    let foreign = issue(TokenIssuer::new(TokenKey([4; 32])), good);
    let result = client.connect_with_token_blocking(&url, &foreign);
    assert_eq!(refusal(result), Some(Refusal::TokenInvalid));

    let elsewhere = issue(issuer.clone().for_servers([PublicKey([1; 32])]), good);
    let result = client.connect_with_token_blocking(&url, &elsewhere);
    assert_eq!(refusal(result), Some(Refusal::TokenInvalid));

    let token = issue(issuer.for_servers([url.key()]), good);
    let _session = client.connect_with_token_blocking(&url, &token).unwrap();
    assert_eq!(accept(&server).identity(), b"ada");
}

/// Goal: silence is told as silence.   Method: a port on which nothing speaks the protocol.
#[test]
fn an_unreachable_server_is_told() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = Config {
        handshake_timeout: Duration::from_millis(300),
        ..Config::default()
    };
    let client = Endpoint::client(config).unwrap();
    let key = ServerKey::generate().unwrap().public();
    let url = ServerUrl::new("127.0.0.1", silent.local_addr().unwrap().port(), key);
    let error = client.connect_blocking(&url).unwrap_err();
    let why = CloseReason::HandshakeTimeout;
    assert!(
        matches!(&error, ConnectError::Failed { why: w } if *w == why),
        "{error}"
    );
    assert_eq!(client.sessions(), 0);

    // A future that is dropped leaves nothing behind.
    let attempt = client.connect(&url);
    let given_up = future::block_on(future::poll_once(Box::pin(attempt)));
    assert!(given_up.is_none());
    assert_eq!(client.sessions(), 0);
}

/// Goal: names and both families work.   Method: `localhost` and the IPv6 loopback address.
#[test]
fn names_and_ipv6_work() {
    let (server, url) = server(Config::default());
    let client = client();
    let by_name = ServerUrl::new("localhost", url.port(), url.key());
    let session = client.connect_blocking(&by_name).unwrap();
    assert!(session.remote_addr().is_some());
    assert!(accept(&server).remote_addr().is_some());
    let session = future::block_on(client.connect(by_name)).unwrap();
    drop((session, accept(&server)));

    let key = ServerKey::generate().unwrap();
    let server = Endpoint::server(Config::default(), "[::1]:0".parse().unwrap(), key).unwrap();
    let _session = client.connect_blocking(server.url("::1").unwrap()).unwrap();
    accept(&server);

    let nobody = ServerUrl::new("no-such-name.invalid", 1, url.key());
    let error = client.connect_blocking(&nobody).unwrap_err();
    assert!(matches!(error, ConnectError::Name { .. }), "{error}");
    let error = client.connect_blocking("https://game.example").unwrap_err();
    assert!(matches!(error, ConnectError::Url(_)), "{error}");
}

/// A regression: where the kernel would send nothing to a server (no route, a firewall), it was said not to have answered.   Method: the broadcast
/// address, which a socket needs leave for.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_sent_is_not_blamed_on_the_server() {
    let key = ServerKey::generate().unwrap().public();
    let everybody = ServerUrl::new("255.255.255.255", 7777, key);
    let error = client().connect_blocking(&everybody).unwrap_err();
    assert!(matches!(error, ConnectError::Unsent { .. }), "{error}");
    assert!(error.to_string().contains("denied"), "{error}");

    let mut framed = frame::Endpoint::client(Config::default()).unwrap();
    framed.connect(&everybody).unwrap();
    framed.flush().unwrap();
    let (to, why) = framed.take_unsent().expect("it cannot be sent");
    assert_eq!(to, "255.255.255.255:7777".parse().unwrap());
    assert_eq!(why.kind(), std::io::ErrorKind::PermissionDenied, "{why}");
    assert!(framed.take_unsent().is_none(), "told once");
}

/// Goal: endpoints say why they cannot be.   Method: a configuration without sense, an address in use.
#[test]
fn endpoints_name_the_cause() {
    let (server, _) = server(Config::default());
    let key = ServerKey::generate().unwrap();
    let taken = Endpoint::server(Config::default(), server.local_addr(), key);
    let text = taken.unwrap_err().to_string();
    assert!(text.contains("in use"), "{text}");
    let config = Config {
        thread: 64,
        ..Config::default()
    };
    let text = Endpoint::client(config).unwrap_err().to_string();
    assert!(text.contains("thread must be below 64"), "{text}");
}

/// A regression: a server that listened on all addresses answered from the first of them, and could not be reached at another.
/// Method: loopback has many.
#[cfg(target_os = "linux")]
#[test]
fn a_server_on_all_addresses_is_reached_at_each() {
    let key = ServerKey::generate().unwrap();
    for all in ["0.0.0.0:0", "[::]:0"] {
        let server =
            Endpoint::server(Config::default(), all.parse().unwrap(), key.clone()).unwrap();
        let url = server.url("127.0.0.2").unwrap();
        let session = client().connect_blocking(&url);
        assert!(session.is_ok(), "{all}: {session:?}");
    }
}

/// A regression: wakers of who waited for a client ran under the lock of the endpoint, and one that asked it something stopped it for good.
#[test]
fn a_waker_may_ask_the_endpoint_something() {
    struct Asks(Endpoint, mpsc::Sender<usize>);
    impl Wake for Asks {
        fn wake(self: Arc<Self>) {
            // Nobody may wait any more.
            let _ = self.1.send(self.0.sessions());
        }
    }
    let (server, url) = server(Config::default());
    let (asked, answers) = mpsc::channel();
    let waker = Waker::from(Arc::new(Asks(server.clone(), asked)));
    let mut accept = pin!(server.accept());
    assert!(
        accept
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    let client = client();
    let _session = client.connect_blocking(&url).unwrap();
    assert_eq!(answers.recv_timeout(Duration::from_secs(10)), Ok(1));
}
