//! The thread that moves packets between the devices of all cables.
//!
//! It waits for devices and for a timer of the kernel, which is exact to some tens of microseconds where a wait of the poller is
//! to a millisecond. It asks for precedence over other threads, and goes on without when it does not get it.

use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tun_rs::SyncDevice;

use super::network::{Network, SITES, Site, Verdict};
use super::onlookers::Onlookers;
use super::{
    EmulatorError, EmulatorOptions, Namespace, Report, SOUNDING, SOUNDING_PORT, Timing, precedence,
};
use crate::world::LinkSpec;

/// Packets taken from a device, or passed on, before others have their turn.
const BATCH: usize = 64;
/// Largest IP packet.
const PACKET_MAX: usize = 65_535;
/// Time between two packets that show how long packets wait for the emulator.
const SOUND_EVERY: Duration = Duration::from_millis(10);

const TIMER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

enum Request {
    Report(SyncSender<Report>),
    BeginLink(LinkSpec),
    RestartLink,
    Stop,
}

/// Talks to the thread.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) began: Instant,
    requests: Sender<Request>,
    waker: Arc<Waker>,
    is_stopped: Arc<AtomicBool>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Report(_) => "Report",
            Self::BeginLink(_) => "BeginLink",
            Self::RestartLink => "RestartLink",
            Self::Stop => "Stop",
        })
    }
}

impl Handle {
    /// None when the thread has ended.
    pub(super) fn report(&self) -> Option<Report> {
        let (sender, receiver) = sync_channel(1);
        self.ask(Request::Report(sender));
        receiver.recv().ok()
    }

    pub(super) fn begin_link(&self, spec: LinkSpec) {
        self.ask(Request::BeginLink(spec));
    }

    pub(super) fn restart_link(&self) {
        self.ask(Request::RestartLink);
    }

    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.ask(Request::Stop);
    }

    fn ask(&self, request: Request) {
        // Without a receiver or a poller there is nobody to wake.
        if self.requests.send(request).is_ok() {
            let _ = self.waker.wake();
        }
    }
}

/// Starts the thread, and one that sounds how long packets wait.
pub(super) fn start(
    options: EmulatorOptions,
    devices: Vec<[SyncDevice; SITES]>,
    clients: Vec<Namespace>,
) -> Result<(Handle, JoinHandle<Result<Report, EmulatorError>>), EmulatorError> {
    let wait = EmulatorError::system("waiting for TUN devices");
    let prepare = || -> io::Result<_> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let source = timer.as_raw_fd();
        let mut source = SourceFd(&source);
        (poll.registry()).register(&mut source, TIMER, Interest::READABLE)?;
        for (number, device) in devices.iter().flatten().enumerate() {
            let device = device.as_raw_fd();
            let mut source = SourceFd(&device);
            (poll.registry()).register(&mut source, Token(number), Interest::READABLE)?;
        }
        Ok((poll, waker, timer))
    };
    let (poll, waker, timer) = prepare().map_err(wait)?;
    let (requests, inbox) = channel();
    let is_stopped = Arc::new(AtomicBool::new(false));
    let begin = Begin {
        instant: Instant::now(),
        time: SystemTime::now(),
    };
    sound(begin.instant, clients, Arc::clone(&is_stopped))?;
    let networks: Vec<Network> = options
        .cables
        .iter()
        .map(|_| Network::new(&options))
        .collect();
    let lanes = networks
        .into_iter()
        .zip(devices)
        .zip(options.cables)
        .map(|((network, devices), cable)| Lane {
            network,
            devices,
            onlookers: Onlookers::new(cable, begin.time),
        })
        .collect();
    let forwarder = Forwarder {
        begin,
        poll,
        timer,
        timer_at_ns: None,
        inbox,
        lanes,
        unread: Vec::new(),
        timing: Timing::default(),
        buffer: vec![0; PACKET_MAX],
    };
    let handle = Handle {
        began: begin.instant,
        requests,
        waker,
        is_stopped,
    };
    let thread = thread::Builder::new()
        .name("emulator".to_owned())
        .spawn(move || forwarder.run())
        .map_err(EmulatorError::system("starting a thread"));
    if thread.is_err() {
        handle.is_stopped.store(true, Ordering::Relaxed);
    }
    Ok((handle, thread?))
}

/// When the network began, on both clocks.
#[derive(Debug, Clone, Copy)]
struct Begin {
    instant: Instant,
    time: SystemTime,
}

impl Begin {
    fn nanos(&self) -> u64 {
        self.instant.elapsed().as_nanos() as u64
    }
}

struct Lane {
    network: Network,
    devices: [SyncDevice; SITES],
    onlookers: Onlookers,
}

struct Forwarder {
    begin: Begin,
    poll: Poll,
    timer: OwnedFd,
    /// For when the timer is set.
    timer_at_ns: Option<u64>,
    inbox: Receiver<Request>,
    lanes: Vec<Lane>,
    /// Devices that had more to read when their turn ended.
    unread: Vec<usize>,
    timing: Timing,
    buffer: Vec<u8>,
}

impl Forwarder {
    fn run(mut self) -> Result<Report, EmulatorError> {
        precedence::take_forwarders();
        let mut events = Events::with_capacity(256);
        loop {
            self.pass_on();
            self.set_timer()?;
            let patience = (!self.unread.is_empty()).then_some(Duration::ZERO);
            match self.poll.poll(&mut events, patience) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(EmulatorError::system("waiting for TUN devices")(error));
                }
                _ => {}
            }
            let mut ready = std::mem::take(&mut self.unread);
            for event in &events {
                match event.token() {
                    TIMER => self.timer_at_ns = None,
                    WAKER => {
                        if self.answer() {
                            return Ok(self.finish());
                        }
                    }
                    Token(device) if !ready.contains(&device) => ready.push(device),
                    Token(_) => {}
                }
            }
            for device in ready {
                self.take(device)?;
            }
        }
    }

    /// Takes packets from a device.
    fn take(&mut self, device: usize) -> Result<(), EmulatorError> {
        let (lane, site) = (device / SITES, Site::ALL[device % SITES]);
        let lane = &mut self.lanes[lane];
        for _ in 0..BATCH {
            let len = match lane.devices[site as usize].recv(&mut self.buffer) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(EmulatorError::system("reading a TUN device")(error)),
            };
            let packet = &mut self.buffer[..len];
            let now_ns = self.begin.nanos();
            let verdict = lane.network.handle_packet(now_ns, site, packet);
            if verdict == Verdict::Sounding {
                if let Some(sent_ns) = packet.last_chunk::<8>() {
                    let lag_ns = now_ns.saturating_sub(u64::from_le_bytes(*sent_ns));
                    self.timing.lag.record(lag_ns / 1000);
                }
                continue;
            }
            if verdict == Verdict::Foreign {
                continue;
            }
            lane.onlookers.on_packet(now_ns, site, packet);
            if let Verdict::Dropped(client, why) = verdict {
                lane.onlookers.on_drop(now_ns, site, client, why, packet);
            }
        }
        self.unread.push(device);
        Ok(())
    }

    /// Passes on what is due.
    fn pass_on(&mut self) {
        for lane in &mut self.lanes {
            for _ in 0..BATCH {
                let now_ns = self.begin.nanos();
                let Some((due_ns, from, packet)) = lane.network.poll_departure(now_ns) else {
                    break;
                };
                let to = from.other();
                self.timing.lateness.record((now_ns - due_ns) / 1000);
                let is_taken = lane.devices[to as usize].send(packet).is_ok();
                lane.onlookers.on_packet(now_ns, to, packet);
                lane.network.counts.refused += u64::from(!is_taken);
            }
        }
    }

    /// Lets the timer wake this thread when the next packet is due.
    fn set_timer(&mut self) -> Result<(), EmulatorError> {
        let due = self
            .lanes
            .iter()
            .filter_map(|lane| lane.network.next_due_ns());
        let due_ns = due.min();
        if due_ns == self.timer_at_ns {
            return Ok(());
        }
        self.timer_at_ns = due_ns;
        let Some(due_ns) = due_ns else {
            return Ok(());
        };
        // Zero would switch it off.
        let wait_ns = due_ns.saturating_sub(self.begin.nanos()).max(1);
        let once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let at = Itimerspec {
            it_interval: once,
            it_value: Timespec {
                tv_sec: (wait_ns / 1_000_000_000) as i64,
                tv_nsec: (wait_ns % 1_000_000_000) as _,
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &at)
            .map_err(|error| EmulatorError::system("setting a timer")(error.into()))?;
        Ok(())
    }

    /// Answers what was asked; whether it is to stop.
    fn answer(&mut self) -> bool {
        loop {
            let now_ns = self.begin.nanos();
            let networks = self.lanes.iter_mut().map(|lane| &mut lane.network);
            match self.inbox.try_recv() {
                Ok(Request::Report(to)) => {
                    // Who asked has gone: nothing is lost.
                    let _ = to.send(self.report());
                }
                Ok(Request::BeginLink(spec)) => {
                    networks.for_each(|network| network.begin_link(now_ns, spec));
                }
                Ok(Request::RestartLink) => {
                    networks.for_each(|network| network.restart_link(now_ns));
                }
                Ok(Request::Stop) => return true,
                Err(std::sync::mpsc::TryRecvError::Empty) => return false,
                Err(std::sync::mpsc::TryRecvError::Disconnected) => return true,
            }
        }
    }

    fn report(&mut self) -> Report {
        let now_ns = self.begin.nanos();
        let counts = self.lanes.iter().map(|lane| lane.network.counts.clone());
        Report {
            cables: counts.collect(),
            links: (self.lanes.iter_mut())
                .map(|lane| lane.network.link(now_ns))
                .collect(),
            timing: self.timing.clone(),
            unwritten: None,
        }
    }

    fn finish(mut self) -> Report {
        let mut report = self.report();
        let lanes = self.lanes.into_iter();
        let unwritten: Vec<_> = lanes.filter_map(|lane| lane.onlookers.finish()).collect();
        report.unwritten = unwritten.first().map(ToString::to_string);
        report
    }
}

/// Sends packets through the clients' devices that say when they were sent. The thread ends with the emulator.
fn sound(
    begin: Instant,
    clients: Vec<Namespace>,
    is_stopped: Arc<AtomicBool>,
) -> Result<(), EmulatorError> {
    let to = SocketAddr::V4(SocketAddrV4::new(SOUNDING, SOUNDING_PORT));
    let mut sockets = Vec::new();
    for client in clients {
        let open = thread::scope(|scope| {
            scope
                .spawn(|| -> io::Result<UdpSocket> {
                    client.enter()?;
                    let socket = UdpSocket::bind((super::FIRST_CLIENT, 0))?;
                    socket.connect(to)?;
                    socket.set_nonblocking(true)?;
                    Ok(socket)
                })
                .join()
        });
        let open = open.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sockets.push(open.map_err(EmulatorError::system("opening a socket in a namespace"))?);
    }
    let send = move || {
        while !is_stopped.load(Ordering::Relaxed) {
            for socket in &sockets {
                let now_ns = begin.elapsed().as_nanos() as u64;
                // What the device has no room for are soundings that never come.
                let _ = socket.send(&now_ns.to_le_bytes());
            }
            thread::sleep(SOUND_EVERY);
        }
    };
    thread::Builder::new()
        .name("sounding".to_owned())
        .spawn(send)
        .map_err(EmulatorError::system("starting a thread"))?;
    Ok(())
}
