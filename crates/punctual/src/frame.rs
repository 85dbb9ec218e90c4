//! An endpoint without a thread: polled once a frame by a game's own loop.
//!
//! ```
//! use punctual::{Config, Event, SendOptions, ServerKey, StreamId, frame};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut server = frame::Endpoint::server(Config::default(), "127.0.0.1:0".parse()?, ServerKey::generate()?)?;
//! let mut client = frame::Endpoint::client(Config::default())?;
//! let session = client.connect(&server.url("127.0.0.1").expect("it is a server"))?;
//!
//! let mut answered = false;
//! while !answered {
//!     server.poll()?;
//!     while let Some((from, event)) = server.next_event() {
//!         if let Event::Message(message) = event {
//!             server.send(from, message.stream, &message, SendOptions::within(Duration::from_millis(50)))?;
//!         }
//!     }
//!     client.poll()?;
//!     while let Some((_, event)) = client.next_event() {
//!         match event {
//!             Event::Connected { .. } => {
//!                 client.send(session, StreamId::DEFAULT, b"echo", SendOptions::default())?;
//!             }
//!             Event::Message(message) => answered = *message == *b"echo",
//!             _ => {}
//!         }
//!     }
//!     // ... the rest of the frame ...
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use punctual_net::clock::Clock;
use punctual_net::udp::{Driver, DriverError, Socket};
use punctual_proto::{
    Cancel, CloseCode, ConnectOptions, ConnectToken, EndpointConfig, Event as ProtocolEvent,
    Forecast, MessageId, PathReport, SendError, SendOptions, SessionId, SessionStats,
    SharedContent, StreamId, StreamStats,
};

use crate::assembly::{Assembled, Assemblies, refusal};
use crate::core::Reach;
use crate::endpoint::{bind_client, bind_server};
use crate::resolve;
use crate::rhythm::Rhythm;
use crate::{
    Config, ConnectError, EndpointError, Event, Message, OpenError, Piece, PublicKey, Receive,
    ServerKey, ServerUrl, StreamConfig,
};

/// Turns of one [`poll`](Endpoint::poll), of some hundred datagrams each.
const TURNS_MAX: usize = 16;
/// How often, and after how long each time, a kernel that takes no more is asked again when the endpoint is dropped.
const FAREWELL_LOOKS: u32 = 100;
const FAREWELL_LOOK: Duration = Duration::from_millis(1);

/// A socket with its sessions, driven by [`poll`](Self::poll). Nothing here waits or makes a thread, apart from the
/// looking up of names and the building of policy tables.
///
/// Events that are not taken stay in the protocol, whose limits then slow the peers down. When it is dropped, the peers
/// are told that it is shutting down (a kernel whose buffer is full may take 100 ms of that).
pub struct Endpoint {
    driver: Driver,
    reach: Reach,
    key: Option<PublicKey>,
    receive: Receive,
    sessions: BTreeMap<SessionId, Assemblies>,
    rhythm: Rhythm,
}

impl Endpoint {
    /// A server on `address`; port 0 lets the system choose.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn server(
        config: Config,
        address: SocketAddr,
        key: ServerKey,
    ) -> Result<Self, EndpointError> {
        let (socket, reach) = bind_server(&config, address).map_err(EndpointError::Bind)?;
        Self::start(&config, socket, reach, Some(&key))
    }

    /// A client, on a port of the system's choice.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn client(config: Config) -> Result<Self, EndpointError> {
        let (socket, reach) = bind_client(&config).map_err(EndpointError::Bind)?;
        Self::start(&config, socket, reach, None)
    }

    fn start(
        config: &Config,
        socket: Socket,
        reach: Reach,
        key: Option<&ServerKey>,
    ) -> Result<Self, EndpointError> {
        let settings = EndpointConfig {
            is_polled: true,
            ..config.endpoint(key)
        };
        let driver = Driver::new(settings, Arc::new(socket), Clock::start());
        let driver = driver.map_err(|error| match error {
            DriverError::Config(error) => EndpointError::Config(error),
            DriverError::Entropy(error) => EndpointError::Entropy(error),
            other => EndpointError::System(io::Error::other(other)),
        })?;
        Ok(Self {
            driver,
            reach,
            key: key.map(ServerKey::public),
            receive: config.receiving(),
            sessions: BTreeMap::new(),
            rhythm: Rhythm::default(),
        })
    }

    /// Where its socket is bound.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.driver.socket().local_addr()
    }

    /// A server's URL, for clients that reach it at `host`; `None` on a client.
    #[must_use]
    pub fn url(&self, host: &str) -> Option<ServerUrl> {
        let port = self.local_addr().port();
        self.key.map(|key| ServerUrl::new(host, port, key))
    }

    /// Receives what is there, does what is due, sends what may leave. Call it at the beginning of a frame. (Some thousands of datagrams at a time, so
    /// that a flood does not keep a frame from ending.)
    ///
    /// In a loop that [flushes](Self::flush) within a quarter of a frame after it, acknowledgements wait for that, and share its datagrams.
    ///
    /// # Errors
    /// When the socket is of no more use.
    pub fn poll(&mut self) -> io::Result<()> {
        let now = self.driver.now();
        if self.driver.endpoint_mut().let_answers_go() {
            // Not flushed. They tell what had come by then.
            self.driver.send()?;
        }
        if let Some(work) = self.rhythm.look(now) {
            self.driver.endpoint_mut().keep_answers(work);
        }
        for _ in 0..TURNS_MAX {
            if !self.driver.turn()?.has_more {
                break;
            }
        }
        Ok(())
    }

    /// Ends the tick: sends what [`send`](Self::send) has queued since the last [`poll`](Self::poll), without receiving. Call it at the end of
    /// a frame, so that messages do not wait for the next one.
    ///
    /// # Errors
    /// When the socket is of no more use.
    pub fn flush(&mut self) -> io::Result<()> {
        self.rhythm.flush(self.driver.now());
        self.driver.endpoint_mut().let_answers_go();
        // A turn sends some thousand datagrams.
        for _ in 0..TURNS_MAX {
            if !self.driver.send()? {
                break;
            }
        }
        Ok(())
    }

    /// Where the kernel last would not send to since this was last asked, and why: no route, a firewall. A session whose handshake ends with
    /// [`CloseReason::HandshakeTimeout`](crate::CloseReason::HandshakeTimeout) has not reached its server then.
    pub fn take_unsent(&mut self) -> Option<(SocketAddr, io::Error)> {
        let refusal = self.driver.take_refusal()?;
        Some((refusal.to, refusal.why))
    }

    /// How long nothing is due, unless a datagram comes; `None` for ever. For loops that rest between frames.
    #[must_use]
    pub fn rests_for(&self) -> Option<Duration> {
        self.driver.patience()
    }

    /// What has happened, one thing at a time; `None` until the next [`poll`](Self::poll).
    pub fn next_event(&mut self) -> Option<(SessionId, Event)> {
        loop {
            let (id, event) = self.driver.endpoint_mut().poll_event()?;
            if let Some(event) = self.translate(id, event) {
                return Some((id, event));
            }
        }
    }

    fn translate(&mut self, id: SessionId, event: ProtocolEvent) -> Option<Event> {
        Some(match event {
            ProtocolEvent::Connected { identity } => {
                self.sessions.entry(id).or_default();
                Event::Connected { identity }
            }
            ProtocolEvent::Message { stream, data } => Event::Message(Message { stream, data }),
            ProtocolEvent::Piece(piece) => return self.on_piece(id, piece),
            ProtocolEvent::Outcome {
                stream,
                message,
                outcome,
            } => Event::Outcome {
                stream,
                message,
                outcome,
            },
            ProtocolEvent::Writable => Event::Writable,
            ProtocolEvent::Closed { why } => {
                self.sessions.remove(&id);
                Event::Closed { why }
            }
            _ => return None,
        })
    }

    fn on_piece(&mut self, id: SessionId, piece: Piece) -> Option<Event> {
        let Receive::Whole { bytes_max } = self.receive else {
            return Some(Event::Piece(piece));
        };
        let assemblies = self.sessions.get_mut(&id)?;
        let (assembled, buffer) = assemblies.take(piece, bytes_max);
        let kept = assemblies.bytes();
        let now = self.driver.now();
        let endpoint = self.driver.endpoint_mut();
        endpoint.recycle(buffer);
        endpoint.set_kept(now, id, kept, 0);
        match assembled {
            Assembled::Going => None,
            Assembled::Whole(message) => Some(Event::Message(message)),
            Assembled::TooLarge { message_len } => {
                let reason = refusal(message_len, bytes_max);
                self.close(id, CloseCode::TOO_LARGE, &reason);
                None
            }
        }
    }

    /// Begins a session with a server; [`Event::Connected`] or [`Event::Closed`] follows, and until then its streams answer that it is closed. Of a name's addresses the first
    /// IPv4 one is used, or else the first; looking a name up waits for the system, an address does not.
    ///
    /// # Errors
    /// See [`ConnectError`]; a server that does not answer or refuses is an event.
    pub fn connect<U>(&mut self, url: U) -> Result<SessionId, ConnectError>
    where
        U: TryInto<ServerUrl>,
        ConnectError: From<U::Error>,
    {
        self.open(&url.try_into()?, None)
    }

    /// As [`connect`](Self::connect), with a token from the game's backend.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_with_token<U>(
        &mut self,
        url: U,
        token: &ConnectToken,
    ) -> Result<SessionId, ConnectError>
    where
        U: TryInto<ServerUrl>,
        ConnectError: From<U::Error>,
    {
        self.open(&url.try_into()?, Some(token))
    }

    fn open(
        &mut self,
        url: &ServerUrl,
        token: Option<&ConnectToken>,
    ) -> Result<SessionId, ConnectError> {
        let addresses = resolve::addresses(url, self.reach)?;
        let first_ipv4 = addresses.iter().find(|address| address.is_ipv4());
        let options = ConnectOptions {
            remote: *first_ipv4.unwrap_or(&addresses[0]),
            server_key: url.key().0,
            token: token.cloned(),
        };
        let now = self.driver.now();
        let id = self.driver.endpoint_mut().connect(now, &options)?;
        self.sessions.insert(id, Assemblies::default());
        Ok(id)
    }

    /// Opens a stream for messages to the peer, as [`Session::open_stream`](crate::Session::open_stream) does.
    /// [`StreamId::DEFAULT`] is there without it: reliable, unordered, of weight 1, unless a stream was opened with its number, 0. The first that is opened
    /// without a number has that: who uses both gives theirs a number.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_stream(
        &mut self,
        session: SessionId,
        config: StreamConfig,
    ) -> Result<StreamId, OpenError> {
        let endpoint = self.driver.endpoint_mut();
        Ok(endpoint.open_stream(session, config.protocol)?)
    }

    /// A stream accepts no more messages; those accepted go on. Its number is free once they have their outcomes.
    pub fn close_stream(&mut self, session: SessionId, stream: StreamId) {
        self.driver.endpoint_mut().close_stream(session, stream);
    }

    /// Changes a stream's share of the session's rate; a weight out of 1 to 1,000 is taken for the nearest in it.
    pub fn set_weight(&mut self, session: SessionId, stream: StreamId, weight: u16) {
        let endpoint = self.driver.endpoint_mut();
        endpoint.set_weight(session, stream, weight);
    }

    /// Sends a message of up to 64 MiB on a stream of the session. It leaves by the next [`flush`](Self::flush) or
    /// [`poll`](Self::poll), in packets shared with whatever else was sent until then; the deadline counts from now. The content
    /// is copied.
    ///
    /// # Errors
    /// See [`SendError`]. After [`SendError::Full`] an [`Event::Writable`] tells when there is room.
    pub fn send(
        &mut self,
        session: SessionId,
        stream: StreamId,
        data: &[u8],
        options: SendOptions,
    ) -> Result<MessageId, SendError> {
        let now = self.driver.now();
        let endpoint = self.driver.endpoint_mut();
        endpoint.send(now, session, stream, data, options)
    }

    /// As [`send`](Self::send), without copying the content (above 16 KiB): it is read as it is sent, and let go of with the outcome. For large
    /// messages, and for one that goes to many sessions.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_shared(
        &mut self,
        session: SessionId,
        stream: StreamId,
        data: SharedContent,
        options: SendOptions,
    ) -> Result<MessageId, SendError> {
        let now = self.driver.now();
        let endpoint = self.driver.endpoint_mut();
        endpoint.send_shared(now, session, stream, data, options)
    }

    /// Begins a message of `len` bytes whose content is not in memory: it follows with [`append`](Self::append).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn begin(
        &mut self,
        session: SessionId,
        stream: StreamId,
        len: usize,
        options: SendOptions,
    ) -> Result<MessageId, SendError> {
        let now = self.driver.now();
        let endpoint = self.driver.endpoint_mut();
        endpoint.begin(now, session, stream, len, options)
    }

    /// Hands in more of the content of a message that was begun; how many bytes of it were taken. When that is less than all, go
    /// on after [`Event::Writable`], or in the next frame; what is more than the length that was announced is never taken.
    ///
    /// # Errors
    /// [`SendError::NoMessage`] when the message has its outcome already.
    pub fn append(
        &mut self,
        session: SessionId,
        message: MessageId,
        data: &[u8],
    ) -> Result<usize, SendError> {
        let endpoint = self.driver.endpoint_mut();
        endpoint.append(session, message, data)
    }

    /// Takes a message back, at any moment; its outcome follows as an event.
    pub fn cancel(&mut self, session: SessionId, message: MessageId) -> Cancel {
        let now = self.driver.now();
        self.driver.endpoint_mut().cancel(now, session, message)
    }

    /// What could be promised for a message of `len` bytes now.
    ///
    /// # Errors
    /// As [`send`](Self::send), except for full queues.
    pub fn forecast(
        &mut self,
        session: SessionId,
        len: usize,
        options: SendOptions,
    ) -> Result<Forecast, SendError> {
        let now = self.driver.now();
        let endpoint = self.driver.endpoint_mut();
        endpoint.forecast(now, session, len, &options)
    }

    /// Ends a session now: messages without an outcome are dropped. `reason` is for the peer's logs, at most 200 bytes; what is longer is cut. The peer hears of it by the next
    /// [`flush`](Self::flush) or [`poll`](Self::poll); then the program may end.
    pub fn close(&mut self, session: SessionId, code: CloseCode, reason: &str) {
        let now = self.driver.now();
        self.driver.endpoint_mut().close(now, session, code, reason);
    }

    /// Ends a session once all of its messages have an outcome; [`Event::Closed`] tells when. Go on polling until then.
    pub fn finish(&mut self, session: SessionId) {
        let now = self.driver.now();
        let endpoint = self.driver.endpoint_mut();
        endpoint.finish(now, session, CloseCode::DONE, "finished");
    }

    /// Gives the buffer of a message or of a piece back, so that the next one needs no allocation.
    pub fn recycle(&mut self, buffer: impl Into<Vec<u8>>) {
        self.driver.endpoint_mut().recycle(buffer.into());
    }

    /// What a session has counted; `None` when it is not there.
    #[must_use]
    pub fn stats(&self, session: SessionId) -> Option<SessionStats> {
        self.driver.endpoint().session_stats(session)
    }

    /// What a stream of this side of a session has counted; `None` when there is none.
    #[must_use]
    pub fn stream_stats(&self, session: SessionId, stream: StreamId) -> Option<StreamStats> {
        self.driver.endpoint().stream_stats(session, stream)
    }

    /// What is known of a session's path now; `None` when it is not there.
    #[must_use]
    pub fn path(&self, session: SessionId) -> Option<PathReport> {
        let now = self.driver.now();
        self.driver.endpoint().path_report(now, session)
    }

    /// The peer's address.
    #[must_use]
    pub fn remote_addr(&self, session: SessionId) -> Option<SocketAddr> {
        self.driver.endpoint().remote(session)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let now = self.driver.now();
        let reason = "the endpoint is shutting down";
        let endpoint = self.driver.endpoint_mut();
        endpoint.close_all(now, CloseCode::SHUTDOWN, reason);
        // A kernel whose buffer is full is given a moment. Whom this does not reach finds out by the idle timeout.
        let mut patience = FAREWELL_LOOKS;
        while let Ok(has_more) = self.driver.send() {
            if self.driver.is_blocked() && patience > 0 {
                patience -= 1;
                thread::sleep(FAREWELL_LOOK);
            } else if !has_more {
                return;
            }
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("driver", &self.driver)
            .field("is_server", &self.key.is_some())
            .finish_non_exhaustive()
    }
}
