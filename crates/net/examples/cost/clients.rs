//! All clients, in a process of their own, so that the server's thread, processor time and heap are the server's alone.
//!
//! Few sockets carry many sessions each. The process ends when its standard input does.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use punctual_net::clock::Clock;
use punctual_net::crypto::AwsLc;
use punctual_net::udp::{Driver, Poller, Socket, SocketId, SocketOptions};
use punctual_policy::{Library, PolicyKind};
use punctual_proto::{ConnectOptions, EndpointConfig, Event};

/// First argument of the process that plays the clients.
pub(crate) const ROLE: &str = "--as-clients";

/// The clients' process, as the server's sees it. It ends with this value.
pub(crate) struct Clients(Child);

impl Clients {
    /// Starts `count` clients on `sockets` sockets.
    pub(crate) fn start(
        server: SocketAddr,
        key: [u8; 32],
        count: usize,
        sockets: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let (count, sockets) = (count.to_string(), sockets.to_string());
        let child = Command::new(std::env::current_exe()?)
            .args([ROLE, &server.to_string(), &key, &count, &sockets])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self(child))
    }

    /// Reads the line that says how many clients have connected; waits for it.
    pub(crate) fn connected(&mut self) -> Result<usize, Box<dyn Error>> {
        let mut line = String::new();
        let output = self.0.stdout.as_mut().ok_or("asked for once")?;
        BufReader::new(output).read_line(&mut line)?;
        Ok(line.trim().parse()?)
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// One socket and its clients.
struct Group {
    driver: Driver,
    id: SocketId,
}

/// What the clients' process does.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [server, key, count, sockets] = arguments else {
        return Err("the server's process says what is to be done".into());
    };
    let options = ConnectOptions {
        remote: server.parse()?,
        server_key: parse_key(key)?,
        token: None,
    };
    let (count, sockets): (usize, usize) = (count.parse()?, sockets.parse()?);
    let mut poller = Poller::new()?;
    let mut groups = Vec::new();
    for _ in 0..sockets {
        groups.push(group(&mut poller)?);
    }
    // In turn, so that neighbours at the server are clients of different sockets.
    for at in 0..count {
        let driver = &mut groups[at % sockets].driver;
        let now = driver.now();
        driver.endpoint_mut().connect(now, &options)?;
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let (over, waker) = (Arc::clone(&is_over), poller.waker());
    thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        over.store(true, Ordering::Release);
        waker.wake();
    });
    serve(&mut groups, &mut poller, count, &is_over)
}

fn serve(
    groups: &mut [Group],
    poller: &mut Poller,
    count: usize,
    is_over: &AtomicBool,
) -> Result<(), Box<dyn Error>> {
    let mut connected = 0;
    while !is_over.load(Ordering::Acquire) {
        let mut patience = Duration::from_secs(1);
        for Group { driver, id } in &mut *groups {
            let is_due = driver.patience().is_none_or(|left| left.is_zero());
            if poller.is_readable(*id) || is_due || connected < count {
                driver.turn()?;
                let endpoint = driver.endpoint_mut();
                while let Some((_, event)) = endpoint.poll_event() {
                    match event {
                        Event::Connected { .. } => connected += 1,
                        Event::Message { data, .. } => endpoint.recycle(data),
                        Event::Closed { why } => return Err(why.to_string().into()),
                        _ => {}
                    }
                    if connected == count {
                        connected += 1;
                        println!("{count}");
                        std::io::stdout().flush()?;
                    }
                }
                driver.send()?;
            }
            patience = patience.min(driver.patience().unwrap_or(patience));
        }
        poller.wait(Some(patience))?;
    }
    Ok(())
}

fn group(poller: &mut Poller) -> Result<Group, Box<dyn Error>> {
    let options = SocketOptions {
        // As the bare loop's peers: few sockets play many, whose answers would not be joined.
        offload: false,
        ..SocketOptions::default()
    };
    let socket = Arc::new(Socket::bind("127.0.0.1:0".parse()?, &options)?);
    let id = poller.watch(Arc::clone(&socket))?;
    let policies = Arc::new(Library::new(PolicyKind::Retransmit));
    let config = EndpointConfig::client(Arc::new(AwsLc), policies);
    let driver = Driver::new(config, socket, Clock::start())?;
    Ok(Group { driver, id })
}

fn parse_key(text: &str) -> Result<[u8; 32], Box<dyn Error>> {
    let mut key = [0; 32];
    for (at, byte) in key.iter_mut().enumerate() {
        let digits = text.get(2 * at..2 * at + 2).ok_or("the key is short")?;
        *byte = u8::from_str_radix(digits, 16)?;
    }
    Ok(key)
}
