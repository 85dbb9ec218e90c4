//! Two drivers on loopback, turn by turn: what one sends the other has, and nothing is kept once all is quiet.

use std::sync::Arc;
use std::time::Duration;

use punctual_net::clock::Clock;
use punctual_net::crypto::AwsLc;
use punctual_net::udp::{Driver, DriverError, Poller, Socket, SocketOptions};
use punctual_policy::{Library, PolicyKind};
use punctual_proto::{
    ConnectOptions, EndpointConfig, Event, Outcome, SendOptions, ServerConfig, ServerKey, SessionId,
};

use crate::support::LOOPBACK_V4;

struct End {
    driver: Driver,
    poller: Poller,
}

impl End {
    fn new(server: Option<ServerConfig>) -> Self {
        let socket = Socket::bind(LOOPBACK_V4.parse().unwrap(), &SocketOptions::default());
        let socket = Arc::new(socket.unwrap());
        let policies = Arc::new(Library::new(PolicyKind::default()));
        let mut config = EndpointConfig::client(Arc::new(AwsLc), policies);
        config.server = server;
        let mut poller = Poller::new().unwrap();
        poller.watch(Arc::clone(&socket)).unwrap();
        let driver = Driver::new(config, socket, Clock::start()).unwrap();
        Self { driver, poller }
    }

    /// Waits a moment for datagrams or the clock, and takes a turn.
    fn turn(&mut self) -> Vec<(SessionId, Event)> {
        let moment = Duration::from_millis(1);
        let patience = self.driver.patience().unwrap_or(moment).min(moment);
        self.poller.wait(Some(patience)).unwrap();
        while self.driver.turn().unwrap().has_more {}
        let endpoint = self.driver.endpoint_mut();
        std::iter::from_fn(|| endpoint.poll_event()).collect()
    }
}

/// Goal: messages pass, outcomes come back, and memory is given back after a while.   Method: two ends, a hundred messages.
#[test]
fn messages_pass_and_memory_goes() {
    let key = ServerKey::from_private([9; 32]);
    let options = ConnectOptions {
        remote: LOOPBACK_V4.parse().unwrap(),
        server_key: key.public(),
        token: None,
    };
    let (mut server, mut client) = (End::new(Some(ServerConfig::new(key))), End::new(None));
    let remote = server.driver.socket().local_addr();
    let now = client.driver.now();
    let options = ConnectOptions { remote, ..options };
    let endpoint = client.driver.endpoint_mut();
    let session = endpoint.connect(now, &options).unwrap();

    let (mut messages, mut on_time) = (0, 0);
    while on_time < 100 {
        for (id, event) in client.turn() {
            assert_eq!(id, session);
            match event {
                Event::Connected { .. } => {
                    for _ in 0..100 {
                        let now = client.driver.now();
                        let within = SendOptions::within(Duration::from_secs(10));
                        let endpoint = client.driver.endpoint_mut();
                        endpoint
                            .send(
                                now,
                                session,
                                punctual_proto::StreamId::DEFAULT,
                                &[1; 700],
                                within,
                            )
                            .unwrap();
                    }
                }
                Event::Outcome { outcome, .. } => {
                    assert!(matches!(outcome, Outcome::OnTime { .. }), "{outcome:?}");
                    on_time += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        for (_, event) in server.turn() {
            if let Event::Message { data, .. } = event {
                assert_eq!(data, [1; 700]);
                server.driver.endpoint_mut().recycle(data);
                messages += 1;
            }
        }
    }
    assert_eq!(messages, 100);
    assert!(server.driver.endpoint().is_quiet() && client.driver.endpoint().is_quiet());
    // Some seconds of quiet, as the driver's timers count them.
    for end in [&mut server, &mut client] {
        let endpoint = end.driver.endpoint_mut();
        assert!(endpoint.holds_buffers());
        for _ in 0..12 {
            endpoint.shrink();
        }
        assert!(!endpoint.holds_buffers());
    }
}

/// Goal: a configuration without sense is refused.   Method: a thread that connection ids have no room for.
#[test]
fn a_senseless_configuration_is_refused() {
    let socket = Socket::bind(LOOPBACK_V4.parse().unwrap(), &SocketOptions::default());
    let policies = Arc::new(Library::new(PolicyKind::default()));
    let config = EndpointConfig {
        thread: 64,
        ..EndpointConfig::client(Arc::new(AwsLc), policies)
    };
    let driver = Driver::new(config, Arc::new(socket.unwrap()), Clock::start());
    assert!(matches!(driver, Err(DriverError::Config(_))));
}
