//! An endpoint with a thread of its own.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use punctual_net::clock::Clock;
use punctual_net::udp::{BindError, Socket, SocketOptions};
use punctual_proto::{ConnectOptions, ConnectToken, EndpointStats};

use crate::core::{Accepts, Answer, Arrival, Core, Opened, Reach, run};
use crate::measure::Traces;
use crate::{
    Config, ConnectError, EndpointClosed, EndpointError, MeasureRules, PublicKey, ServerKey,
    ServerUrl, Session, TracePart, resolve,
};

/// A socket with its sessions and the thread that drives them: a server, or a client of any number of servers.
///
/// Clones are handles of the same endpoint. When the last is dropped, or by [`close`](Self::close), its sessions end: their
/// peers hear of it, messages on their way get the outcome `Dropped`, and the thread is joined, which takes no longer than
/// the system calls that tell the peers. Use [`Session::finish`] before to see messages delivered.
///
/// Methods that wait come as `async` functions, which need no particular runtime, and with `_blocking` at the end.
#[derive(Clone)]
pub struct Endpoint {
    owner: Arc<Owner>,
}

/// Ends the thread with the last handle.
struct Owner {
    core: Arc<Core>,
    key: Option<PublicKey>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// That thread's: what it runs of the application may close the endpoint, or drop its last handle.
    thread_id: ThreadId,
}

impl Endpoint {
    /// A server on `address`; port 0 lets the system choose. `[::]` serves IPv4 clients too where the system has both.
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

    /// A client, on a port of the system's choice, for IPv4 and IPv6 servers.
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
        let (core, machinery) = Core::new(
            config.endpoint(key),
            (config.receiving(), config.measure),
            socket,
            reach,
            Clock::start(),
        )?;
        let core = Arc::new(core);
        let theirs = Arc::clone(&core);
        let thread = thread::Builder::new()
            .name(format!("punctual-{}", config.thread))
            .spawn(move || run(&theirs, machinery))
            .map_err(EndpointError::System)?;
        Ok(Self {
            owner: Arc::new(Owner {
                core,
                key: key.map(ServerKey::public),
                thread_id: thread.thread().id(),
                thread: Mutex::new(Some(thread)),
            }),
        })
    }

    fn core(&self) -> &Arc<Core> {
        &self.owner.core
    }

    /// Where its socket is bound.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.core().local
    }

    /// A server's URL, for clients that reach it at `host`; `None` on a client.
    #[must_use]
    pub fn url(&self, host: &str) -> Option<ServerUrl> {
        let port = self.local_addr().port();
        self.owner.key.map(|key| ServerUrl::new(host, port, key))
    }

    /// Waits for the next client. Up to 4,096 wait here; more are turned away. Those that have left again without a message are not told of.
    ///
    /// # Errors
    /// When the endpoint is closed.
    pub async fn accept(&self) -> Result<Session, EndpointClosed> {
        let arrival = self.core().accepts.wait(next_arrival).await?;
        Ok(self.session_of(arrival))
    }

    /// As [`accept`](Self::accept), on this thread.
    ///
    /// # Errors
    /// When the endpoint is closed.
    pub fn accept_blocking(&self) -> Result<Session, EndpointClosed> {
        let arrival = self.core().accepts.wait_blocking(None, next_arrival);
        let arrival = arrival.expect("it waits without end")?;
        Ok(self.session_of(arrival))
    }

    /// As [`accept_blocking`](Self::accept_blocking), for as long as `patience`; `None` when nobody came.
    ///
    /// # Errors
    /// When the endpoint is closed.
    pub fn accept_timeout(&self, patience: Duration) -> Result<Option<Session>, EndpointClosed> {
        let until = Instant::now().checked_add(patience);
        let arrival = self.core().accepts.wait_blocking(until, next_arrival);
        Ok(arrival.transpose()?.map(|arrival| self.session_of(arrival)))
    }

    /// The next client that has come; `None` when there is none.
    ///
    /// # Errors
    /// When the endpoint is closed.
    pub fn try_accept(&self) -> Result<Option<Session>, EndpointClosed> {
        self.accept_timeout(Duration::ZERO)
    }

    fn session_of(&self, arrival: Arrival) -> Session {
        let core = Arc::clone(self.core());
        let opened = Opened {
            id: arrival.id,
            remote: arrival.remote,
            mailbox: arrival.mailbox,
        };
        Session::new(core, opened, arrival.identity)
    }

    /// Opens a session with a server. A name is looked up on a thread of its own; of several addresses the first that answers
    /// is taken. When the future is dropped, the attempt ends.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect<U>(&self, url: U) -> Result<Session, ConnectError>
    where
        U: TryInto<ServerUrl>,
        ConnectError: From<U::Error>,
    {
        self.open(url.try_into()?, None).await
    }

    /// As [`connect`](Self::connect), with a token from the game's backend.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect_with_token<U>(
        &self,
        url: U,
        token: &ConnectToken,
    ) -> Result<Session, ConnectError>
    where
        U: TryInto<ServerUrl>,
        ConnectError: From<U::Error>,
    {
        self.open(url.try_into()?, Some(token)).await
    }

    async fn open(
        &self,
        url: ServerUrl,
        token: Option<&ConnectToken>,
    ) -> Result<Session, ConnectError> {
        let addresses = resolve::addresses_async(&url, self.core().reaches).await?;
        let answer = self.core().connect(addresses, options(&url, token));
        let attempt = Attempt {
            core: self.core(),
            answer,
        };
        let opened = attempt.answer.wait(Option::take).await?;
        Ok(Session::new(Arc::clone(self.core()), opened, Vec::new()))
    }

    /// As [`connect`](Self::connect), on this thread.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect_blocking<U>(&self, url: U) -> Result<Session, ConnectError>
    where
        U: TryInto<ServerUrl>,
        ConnectError: From<U::Error>,
    {
        self.open_blocking(&url.try_into()?, None)
    }

    /// As [`connect_with_token`](Self::connect_with_token), on this thread.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect_with_token_blocking<U>(
        &self,
        url: U,
        token: &ConnectToken,
    ) -> Result<Session, ConnectError>
    where
        U: TryInto<ServerUrl>,
        ConnectError: From<U::Error>,
    {
        self.open_blocking(&url.try_into()?, Some(token))
    }

    fn open_blocking(
        &self,
        url: &ServerUrl,
        token: Option<&ConnectToken>,
    ) -> Result<Session, ConnectError> {
        let addresses = resolve::addresses(url, self.core().reaches)?;
        let answer = self.core().connect(addresses, options(url, token));
        let opened = answer.wait_blocking(None, Option::take);
        let opened = opened.expect("it waits without end")?;
        Ok(Session::new(Arc::clone(self.core()), opened, Vec::new()))
    }

    /// What clients may measure from now on; those that measure hear of it at once. See [`Config::measure`].
    pub fn set_measuring(&self, rules: MeasureRules) {
        let core = self.core();
        let now = core.now();
        core.lock().set_measuring(now, rules);
        core.wake();
    }

    /// Waits for the next part of a trace that a client has measured and uploaded. Up to 64 parts wait here; clients are
    /// refused more.
    ///
    /// # Errors
    /// When the endpoint is closed.
    pub async fn next_trace(&self) -> Result<TracePart, EndpointClosed> {
        self.core().traces.wait(next_part).await
    }

    /// As [`next_trace`](Self::next_trace), on this thread.
    ///
    /// # Errors
    /// When the endpoint is closed.
    pub fn next_trace_blocking(&self) -> Result<TracePart, EndpointClosed> {
        let part = self.core().traces.wait_blocking(None, next_part);
        part.expect("it waits without end")
    }

    /// As [`next_trace_blocking`](Self::next_trace_blocking), for as long as `patience`; `None` when none came.
    ///
    /// # Errors
    /// When the endpoint is closed.
    pub fn next_trace_timeout(
        &self,
        patience: Duration,
    ) -> Result<Option<TracePart>, EndpointClosed> {
        let until = Instant::now().checked_add(patience);
        self.core()
            .traces
            .wait_blocking(until, next_part)
            .transpose()
    }

    /// Sessions, open or being opened.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.core().lock().endpoint.sessions()
    }

    /// Datagrams that concerned no session, and what all sessions hold.
    #[must_use]
    pub fn stats(&self) -> EndpointStats {
        self.core().lock().endpoint.stats()
    }

    /// Ends all sessions and the thread, as dropping the last handle does.
    pub fn close(&self) {
        self.owner.close();
    }
}

impl Owner {
    fn close(&self) {
        self.core.stop();
        // (Before the lock: who holds it may be waiting for this very thread.)
        if thread::current().id() == self.thread_id {
            return;
        }
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // A panic of the thread has been printed; there is nothing to add to it here.
            let _ = thread.join();
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("local", &self.local_addr())
            .field("is_server", &self.owner.key.is_some())
            .finish_non_exhaustive()
    }
}

/// Ends an attempt whose future was dropped.
struct Attempt<'a> {
    core: &'a Core,
    answer: Arc<Answer>,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.core.cancel(&self.answer);
    }
}

fn next_arrival(accepts: &mut Accepts) -> Option<Result<Arrival, EndpointClosed>> {
    if let Some(cause) = accepts.ended.clone() {
        return Some(Err(EndpointClosed { cause }));
    }
    accepts.pop().map(Ok)
}

fn next_part(traces: &mut Traces) -> Option<Result<TracePart, EndpointClosed>> {
    if let Some(part) = traces.waiting.pop_front() {
        return Some(Ok(part));
    }
    let cause = traces.ended.clone()?;
    Some(Err(EndpointClosed { cause }))
}

fn options(url: &ServerUrl, token: Option<&ConnectToken>) -> ConnectOptions {
    ConnectOptions {
        // The attempt puts each address in.
        remote: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        server_key: url.key().0,
        token: token.cloned(),
    }
}

/// A server's socket, and whom it reaches.
pub(crate) fn bind_server(
    config: &Config,
    address: SocketAddr,
) -> Result<(Socket, Reach), BindError> {
    let is_any = address.ip() == Ipv6Addr::UNSPECIFIED;
    let options = SocketOptions {
        dual_stack: is_any,
        ..config.socket()
    };
    let reach = Reach {
        ipv4: address.is_ipv4() || is_any,
        ipv6: address.is_ipv6(),
    };
    Ok((Socket::bind(address, &options)?, reach))
}

/// A client's socket: for both families where the system has both, else for IPv4.
pub(crate) fn bind_client(config: &Config) -> Result<(Socket, Reach), BindError> {
    let both = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    bind_server(config, both)
        .or_else(|_| bind_server(config, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))))
}
