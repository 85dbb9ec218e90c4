//! TCP flows of the kernel that never end, for competition: what a game shares a link with.
//!
//! Each flow has a thread at either end, which does nothing but write or read. What they carry is of no interest, only how much of it
//! arrives. Who begins is the client, whichever way the bytes go.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use super::{FIRST_CLIENT, Namespace, SERVER, give_up_precedence};

/// Where they are served.
const PORT: u16 = 7100;
/// Bytes of a call.
const CHUNK: usize = 64 << 10;
/// How often who waits looks whether it shall end.
const LOOK: Duration = Duration::from_millis(20);
/// How long a connection may take: as long as a scenario's sessions.
const CONNECT_MAX: Duration = Duration::from_secs(60);
/// How long one attempt may take: the kernel sends twice in that time.
const ATTEMPT_MAX: Duration = Duration::from_secs(2);

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Writer,
    Reader,
}

#[derive(Debug, Default)]
struct Shared {
    is_over: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
    /// By flow.
    delivered: Vec<AtomicU64>,
}

/// Running flows. Dropping it ends them.
#[derive(Debug)]
pub struct Downloads {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Downloads {
    /// Lets `flows` flows begin at a time, from the clients' addresses from number `first_client` on; to the clients, or to the
    /// server.
    ///
    /// # Errors
    /// When the server cannot listen or threads cannot start.
    pub fn start(
        [client, server]: [&Namespace; 2],
        first_client: u32,
        flows: u32,
        is_to_client: bool,
        at: Instant,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            delivered: (0..flows).map(|_| AtomicU64::new(0)).collect(),
            ..Shared::default()
        });
        let listener = server.within(|| {
            let listener = TcpListener::bind(SocketAddrV4::new(SERVER, PORT))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        })?;
        let (at_server, at_client) = match is_to_client {
            true => (Role::Writer, Role::Reader),
            false => (Role::Reader, Role::Writer),
        };
        let mut downloads = Self {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
        };
        let serving = Arc::clone(&shared);
        downloads.spawn(move || serve(&listener, &serving, first_client, at_server))?;
        for flow in 0..flows {
            let (shared, client) = (Arc::clone(&shared), client.clone());
            let address = Ipv4Addr::from_bits(FIRST_CLIENT.to_bits() + first_client + flow);
            downloads.spawn(move || {
                while Instant::now() < at && !shared.is_over() {
                    thread::sleep(LOOK.min(at.saturating_duration_since(Instant::now())));
                }
                // Without a connection there is a flow less, and the counts show it.
                if client.enter().is_ok()
                    && let Some(stream) = shared.connect(address)
                {
                    shared.play(stream, flow, at_client);
                }
            })?;
        }
        Ok(downloads)
    }

    /// Bytes that have arrived, by flow.
    pub fn delivered_bytes(&self) -> Vec<u64> {
        let flows = self.shared.delivered.iter();
        flows.map(|bytes| bytes.load(Ordering::Relaxed)).collect()
    }

    /// Ends them: nothing more is written.
    pub fn stop(&self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for stream in self.shared.streams().iter() {
            // It may have ended by itself.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn spawn(&mut self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = thread::Builder::new().name("download".to_owned());
        // They are not what is measured.
        let work = || {
            give_up_precedence();
            work();
        };
        self.threads.push(thread.spawn(work)?);
        Ok(())
    }
}

impl Drop for Downloads {
    fn drop(&mut self) {
        self.stop();
        for thread in self.threads.drain(..) {
            // They end when their connections do.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn streams(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From a client's address; tries again when the network loses what the kernel sends.
    fn connect(&self, address: Ipv4Addr) -> Option<TcpStream> {
        let server = SocketAddr::from((SERVER, PORT)).into();
        let until = Instant::now() + CONNECT_MAX;
        while !self.is_over() && Instant::now() < until {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).ok()?;
            socket.bind(&SocketAddr::from((address, 0)).into()).ok()?;
            if socket.connect_timeout(&server, ATTEMPT_MAX).is_ok() {
                return Some(socket.into());
            }
        }
        None
    }

    /// Until the end. Errors are the end, too.
    fn play(&self, mut stream: TcpStream, flow: u32, role: Role) {
        let Ok(kept) = stream.try_clone() else { return };
        self.streams().push(kept);
        // It may have been over in between.
        if self.is_over() {
            return;
        }
        let mut chunk = vec![0; CHUNK];
        loop {
            let moved = match role {
                Role::Writer => stream.write(&chunk),
                Role::Reader => stream.read(&mut chunk),
            };
            match moved {
                Ok(0) => return,
                Ok(bytes) if role == Role::Reader => {
                    let delivered = &self.delivered[flow as usize];
                    delivered.fetch_add(bytes as u64, Ordering::Relaxed);
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

/// Takes the flows' connections, each to a thread of its own.
fn serve(listener: &TcpListener, shared: &Arc<Shared>, first_client: u32, role: Role) {
    let mut threads = Vec::new();
    while !shared.is_over() {
        let Ok((stream, from)) = listener.accept() else {
            thread::sleep(LOOK);
            continue;
        };
        let flow = match from {
            SocketAddr::V4(from) => {
                let number = from.ip().to_bits().wrapping_sub(FIRST_CLIENT.to_bits());
                number.wrapping_sub(first_client)
            }
            SocketAddr::V6(_) => u32::MAX,
        };
        if flow as usize >= shared.delivered.len() || stream.set_nonblocking(false).is_err() {
            continue;
        }
        let playing = Arc::clone(shared);
        let thread = thread::Builder::new().name("download".to_owned());
        if let Ok(thread) = thread.spawn(move || playing.play(stream, flow, role)) {
            threads.push(thread);
        }
    }
    for thread in threads {
        let _ = thread.join();
    }
}
