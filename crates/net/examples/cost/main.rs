//! What the protocol costs a server thread, beside what its sockets cost anyway.
//!
//! A server sends messages to a thousand clients, each acknowledged by one datagram, in turn with the bare loop of
//! `baseline.rs` doing the same with datagrams of the same sizes. Told are the CPU time of the server's thread for a message
//! and its acknowledgement (kernel work and encryption included), allocations a message, and the heap of an idle session.
//!
//! `cargo run --release -p punctual-net --example cost -- --datagrams 20000 --repeats 61 [--json] [--idle-s 10] [options of
//! baseline]`: short runs and many of them, since the two loops are compared pair by pair.

#[path = "../support/mod.rs"]
mod support;

#[path = "../sys/allocator.rs"]
mod allocator;
mod clients;
#[path = "../sys/heap.rs"]
mod heap;
mod server;

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use punctual_proto::SendOptions;
use server::{Run, Server, WARM_UP};
use support::bare::BareServer;
use support::load::Load;
use support::peers::Peers;
use support::reckoning::{Measured, print_head, print_row};

/// Ours may cost this much of the bare loop.
const RATIO_MAX: f64 = 1.0 / 0.7;

/// Datagrams of one send call in both loops.
const BATCH: usize = 64;

struct Options {
    load: Load,
    is_json: bool,
    idle: Duration,
}

/// Bytes of the messages, the deadline, and what came out.
struct Row {
    bytes: usize,
    has_deadline: bool,
    ratios: Vec<f64>,
    bare: Vec<Measured>,
    ours: Vec<Measured>,
    /// Median and interval.
    allocations: (f64, f64, f64),
    wire: (usize, usize),
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments
        .first()
        .is_some_and(|first| first == clients::ROLE)
    {
        return clients::run(&arguments[1..]);
    }
    let mut options = Options::take(&mut arguments)?;
    options.load.datagrams = options.load.datagrams.max(options.load.peers);
    let heap = heap_of_a_session(&options)?;
    let mut rows = Vec::new();
    for &bytes in &options.load.payloads {
        for has_deadline in [true, false] {
            rows.push(compare(&options.load, bytes, has_deadline)?);
        }
    }
    if options.is_json {
        print_json(&mut rows, heap);
    } else {
        print_table(&mut rows, heap);
    }
    Ok(())
}

impl Options {
    fn take(arguments: &mut Vec<String>) -> Result<Self, String> {
        let json = arguments.iter().position(|argument| argument == "--json");
        json.map(|at| arguments.remove(at));
        let mut idle_s = 10;
        if let Some(at) = arguments.iter().position(|argument| argument == "--idle-s") {
            arguments.remove(at);
            let text = if at < arguments.len() {
                arguments.remove(at)
            } else {
                String::new()
            };
            idle_s = text
                .parse()
                .map_err(|_| "--idle-s takes seconds".to_string())?;
        }
        Ok(Self {
            load: Load::from_args(std::mem::take(arguments).into_iter())?,
            is_json: json.is_some(),
            idle: Duration::from_secs(idle_s),
        })
    }
}

/// Heap of a session some seconds after its last message, keys included.
fn heap_of_a_session(options: &Options) -> Result<Option<f64>, Box<dyn Error>> {
    let load = &options.load;
    let mut server = Server::new()?;
    // What the process allocates once for all is there before the counting begins.
    let before = heap::in_use();
    server.connect(load.peers, load.peer_sockets)?;
    server.run(load, 100, 100, send_options(true))?;
    server.idle(options.idle)?;
    let after = heap::in_use();
    let grown = before
        .zip(after)
        .map(|(before, after)| after.saturating_sub(before));
    Ok(grown.map(|grown| grown as f64 / load.peers as f64))
}

fn send_options(has_deadline: bool) -> SendOptions {
    let options = match has_deadline {
        true => SendOptions::within(Duration::from_millis(100)),
        false => SendOptions::default(),
    };
    options.source_symbols(1)
}

/// Both loops in turn, several times.
fn compare(load: &Load, bytes: usize, has_deadline: bool) -> Result<Row, Box<dyn Error>> {
    let options = send_options(has_deadline);
    let mut server = Server::new()?;
    server.connect(load.peers, load.peer_sockets)?;
    let warm = server.run(load, WARM_UP, bytes, options)?;
    let wire = server.run(load, 20, bytes, options)?.wire_bytes();
    assert!(warm.measured.sent > 0, "something was sent");
    let peers = Peers::start(load.peers, load.peer_sockets, wire.1)?;
    // The addresses that the server's clients have: those of this machine's first loopback address.
    let to_first = |address: &SocketAddr| SocketAddr::from(([127, 0, 0, 1], address.port()));
    let addresses: Vec<SocketAddr> = peers.addresses.iter().map(to_first).collect();
    // Short runs in turn: what else the machine does then falls on both alike.
    let rounds = load.datagrams.div_ceil(load.peers);
    let (mut bare, mut ours): (Vec<Measured>, Vec<Run>) = (Vec::new(), Vec::new());
    for _ in 0..load.repeats {
        bare.push(BareServer::new(load, wire.0, BATCH)?.run(load, &addresses)?);
        ours.push(server.run(load, rounds, bytes, options)?);
    }
    assert_eq!(
        peers.drops(),
        0,
        "what the peers did not get was not paid for"
    );
    let each = |run: &Run| run.allocations as f64 / run.measured.sent as f64;
    let allocations = spread(&mut ours.iter().map(each).collect::<Vec<f64>>());
    let ours: Vec<Measured> = ours.iter().map(|run| run.measured).collect();
    let pairs = ours.iter().zip(&bare);
    let ratios = pairs.map(|(ours, bare)| ours.nanos_each() / bare.nanos_each());
    Ok(Row {
        bytes,
        has_deadline,
        ratios: ratios.collect(),
        bare,
        ours,
        allocations,
        wire,
    })
}

/// The median, and the interval that holds the true one in 95 of 100 cases, by order statistics alone.
fn spread(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let (middle, last) = (values.len() / 2, values.len() - 1);
    // How many values lie below the true median is binomial, with a standard deviation of half the root of n.
    let reach = (0.98 * (values.len() as f64).sqrt()).ceil() as usize;
    let (low, high) = (middle.saturating_sub(reach), (middle + reach).min(last));
    (values[middle], values[low], values[high])
}

fn nanos(runs: &[Measured]) -> (f64, f64, f64) {
    let mut values: Vec<f64> = runs.iter().map(Measured::nanos_each).collect();
    spread(&mut values)
}

fn print_table(rows: &mut [Row], heap: Option<f64>) {
    print_head();
    for row in &mut *rows {
        print_row("bare", row.bytes, BATCH, &mut row.bare.clone());
        let name = if row.has_deadline {
            "100 ms"
        } else {
            "no deadline"
        };
        print_row(name, row.bytes, BATCH, &mut row.ours.clone());
    }
    println!();
    for row in rows {
        let (median, low, high) = spread(&mut row.ratios);
        let verdict = if median <= RATIO_MAX {
            "within"
        } else {
            "OVER"
        };
        let deadline = if row.has_deadline { "100 ms" } else { "none" };
        println!(
            "{} bytes, deadline {deadline}: {median:.2} x bare (95 %: {low:.2} to {high:.2}), {verdict} {RATIO_MAX:.2}; \
             {:.4} allocations a message (up to {:.4}); {} and {} bytes on the wire",
            row.bytes, row.allocations.0, row.allocations.2, row.wire.0, row.wire.1,
        );
    }
    match heap {
        Some(bytes) => println!("{bytes:.0} bytes of heap for an idle session, keys included"),
        None => println!("the heap of a session is unknown on this system"),
    }
}

fn print_json(rows: &mut [Row], heap: Option<f64>) {
    let mut lines = Vec::new();
    for row in rows {
        let (ratio, ratio_low, ratio_high) = spread(&mut row.ratios);
        let ((bare, _, _), (ours, _, _)) = (nanos(&row.bare), nanos(&row.ours));
        lines.push(format!(
            "{{\"message_bytes\":{},\"deadline_ms\":{},\"bare_ns\":{bare:.0},\"ours_ns\":{ours:.0},\"ratio\":{ratio:.3},\
             \"ratio_low\":{ratio_low:.3},\"ratio_high\":{ratio_high:.3},\"allocations_per_message\":{:.5},\
             \"datagram_bytes\":{},\"ack_bytes\":{}}}",
            row.bytes,
            if row.has_deadline { "100" } else { "null" },
            row.allocations.0,
            row.wire.0,
            row.wire.1,
        ));
    }
    let heap = heap.map_or_else(|| "null".to_string(), |bytes| format!("{bytes:.0}"));
    let rows = lines.join(",");
    println!(
        "{{\"rows\":[{rows}],\"ratio_target\":{RATIO_MAX:.3},\"heap_per_session_bytes\":{heap}}}"
    );
}
