//! Network namespaces without a name: they last as long as somebody has them open.
//!
//! A namespace belongs to a thread, not to a process, so threads of one process can be in different ones. Making one needs
//! CAP_SYS_ADMIN: as root it is there; others get it, with an identity of their own, in a user namespace, which a process can
//! only enter while it has a single thread ([`acquire_privilege`]).

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{getegid, geteuid};
use tun_rs::{DeviceBuilder, SyncDevice};

use super::packet::{CLIENTS_V6, SERVER_V6};
use super::{EmulatorError, FIRST_CLIENT, SERVER, Site};
use crate::arm::Stack;

/// How the right to make namespaces was got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// It was there.
    Root,
    /// By a user namespace.
    UserNamespace,
}

/// A network namespace.
#[derive(Debug, Clone)]
pub struct Namespace {
    file: Arc<File>,
}

/// The device in each namespace.
const DEVICE: &str = "punctual0";
/// Packets that may wait in a device until the emulator takes them; then the kernel would drop.
const DEVICE_QUEUE: u32 = 10_000;
/// Least MTU with IPv6 (RFC 8200).
const MTU_V6: u16 = 1280;

/// Sees to it that this process may make namespaces. Call it before any other thread is there.
///
/// # Errors
/// When the kernel allows neither.
pub fn acquire_privilege() -> Result<Privilege, EmulatorError> {
    if probe().is_ok() {
        return Ok(Privilege::Root);
    }
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| EmulatorError::Privilege(error.into()))?;
    let map = || -> io::Result<()> {
        // Groups cannot be dropped there, or a process could get rid of one that forbids it something.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))
    };
    map().map_err(EmulatorError::Privilege)?;
    probe().map_err(EmulatorError::Privilege)?;
    Ok(Privilege::UserNamespace)
}

/// Whether a namespace can be made, on a thread that ends with it.
fn probe() -> io::Result<()> {
    on_thread(|| Ok(unshare(CloneFlags::CLONE_NEWNET)?))
}

fn on_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

impl Namespace {
    /// Moves the calling thread into it, for good.
    ///
    /// # Errors
    /// When the kernel says no.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(self.file.as_fd(), CloneFlags::CLONE_NEWNET)?)
    }

    /// Calls `work` on a thread that is in it. What it opens belongs to the namespace wherever it is used.
    ///
    /// # Errors
    /// When the kernel does not let the thread in, or `work` says so.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_thread(|| {
            self.enter()?;
            work()
        })
    }

    /// Its name while this process has it open, for `nsenter --net=..`.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Reads a file as it is in the namespace: `/proc/thread-self/net/..` and `/proc/sys/net/..`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, path: &str) -> io::Result<String> {
        self.within(|| fs::read_to_string(path))
    }

    /// Whether somebody in it takes connections (TCP) or datagrams of whoever sends them (UDP).
    ///
    /// # Errors
    /// When it cannot be told.
    pub fn has_listener(&self) -> io::Result<bool> {
        self.within(|| {
            for (table, state) in LISTENING {
                let table = match fs::read_to_string(format!("/proc/thread-self/net/{table}")) {
                    // A kernel without IPv6.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    table => table?,
                };
                if has_socket(&table, state) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }
}

/// The kernel's tables of sockets, and the state of those that wait for others (`proc_net_tcp` of its documentation).
const LISTENING: [(&str, &str); 4] = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];

fn has_socket(table: &str, state: &str) -> bool {
    let states = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().nth(3));
    states.flatten().any(|found| found == state)
}

/// Makes a namespace with a device, addresses and routes.
pub(super) fn make(
    site: Site,
    mtu: u16,
    stack: &Stack,
) -> Result<(Namespace, SyncDevice), EmulatorError> {
    thread::scope(|scope| {
        let made = scope.spawn(|| make_here(site, mtu, stack)).join();
        made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The calling thread is in the namespace afterwards.
fn make_here(
    site: Site,
    mtu: u16,
    stack: &Stack,
) -> Result<(Namespace, SyncDevice), EmulatorError> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|error| EmulatorError::Privilege(error.into()))?;
    let file = File::open("/proc/thread-self/ns/net")
        .map_err(EmulatorError::system("opening a network namespace"))?;
    let device = DeviceBuilder::new()
        .name(DEVICE)
        .mtu(mtu)
        .enable(true)
        .build_sync()
        .map_err(EmulatorError::Tun)?;
    device
        .set_nonblocking(true)
        .map_err(EmulatorError::system("setting up a TUN device"))?;
    let has_v6 = mtu >= MTU_V6 && fs::exists("/proc/sys/net/ipv6").unwrap_or(false);
    ip("-4", &addresses(site, stack))?;
    if has_v6 {
        ip("-6", &addresses_v6(site, stack))?;
    }
    // What one connection learned is not to help the next: every run begins alike.
    set("tcp_no_metrics_save", "1")?;
    for (name, value) in &stack.sysctls {
        set(name, value)?;
    }
    let file = Arc::new(file);
    Ok((Namespace { file }, device))
}

/// What `ip` is to do. All clients' addresses are local ones, without being listed.
fn addresses(site: Site, stack: &Stack) -> String {
    let tcp = route_options(stack);
    let (own, clients) = match site {
        Site::Client => (FIRST_CLIENT, "route add local 10.128.0.0/9 dev lo\n"),
        Site::Server => (SERVER, ""),
    };
    format!(
        "link set lo up\nlink set {DEVICE} txqueuelen {DEVICE_QUEUE}\naddress add {own}/32 dev {DEVICE}\nroute add default dev {DEVICE} src {own}{tcp}\n{clients}"
    )
}

/// The same for IPv6.
fn addresses_v6(site: Site, stack: &Stack) -> String {
    let tcp = route_options(stack);
    let (own, clients) = match site {
        Site::Client => (
            Ipv6Addr::from_bits(CLIENTS_V6.to_bits() + 1),
            format!("route add local {CLIENTS_V6}/64 dev lo\n"),
        ),
        Site::Server => (SERVER_V6, String::new()),
    };
    format!(
        "address add {own}/128 dev {DEVICE} nodad\nroute add default dev {DEVICE} src {own}{tcp}\n{clients}"
    )
}

/// What a route says of TCP.
fn route_options(stack: &Stack) -> String {
    let control = stack.congestion_control.as_ref();
    let control = control.map(|name| format!(" congctl {name}"));
    let window = stack.initial_window;
    let window = window.map(|segments| format!(" initcwnd {segments}"));
    control.unwrap_or_default() + &window.unwrap_or_default()
}

fn ip(family: &str, lines: &str) -> Result<(), EmulatorError> {
    let run = || -> io::Result<std::process::Output> {
        let mut child = Command::new("ip")
            .args([family, "-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(lines.as_bytes())?;
        }
        child.wait_with_output()
    };
    let output = run().map_err(EmulatorError::NoIp)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    Err(EmulatorError::Ip { said })
}

fn set(name: &str, value: &str) -> Result<(), EmulatorError> {
    fs::write(format!("/proc/sys/net/ipv4/{name}"), value).map_err(|source| {
        EmulatorError::Setting {
            name: name.to_owned(),
            value: value.to_owned(),
            source,
        }
    })
}
