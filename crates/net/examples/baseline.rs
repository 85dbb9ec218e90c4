//! The bare loop: what the sockets alone cost a server thread, for a protocol to be compared with.
//!
//! The server sends datagrams to many addresses in turn and receives one ack for each. Told is the CPU time of its thread
//! for a datagram and its ack together; on loopback that includes the delivery into the receiver's socket, which elsewhere
//! the network card's interrupt pays. Loopback only, and bounded: a run ends when all is acknowledged, or when a second
//! passes without an ack.
//!
//! `cargo run --release -p punctual-net --example baseline -- --datagrams 200000 --batch 1,16,64`

#[path = "support/mod.rs"]
mod support;

use std::error::Error;

use support::bare::BareServer;
use support::load::Load;
use support::peers::Peers;
use support::reckoning::{print_head, print_row};

fn main() -> Result<(), Box<dyn Error>> {
    let load = Load::from_args(std::env::args().skip(1))?;
    println!(
        "{} datagrams to {} peers on {} sockets, payload + {} bytes; acks of {} bytes; tick {:?}",
        load.datagrams,
        load.peers,
        load.peer_sockets,
        load.overhead_bytes,
        load.ack_bytes,
        load.tick
    );
    print_head();
    let peers = Peers::start(load.peers, load.peer_sockets, load.ack_bytes)?;
    for &payload in &load.payloads {
        for &batch in &load.batches {
            let mut runs = Vec::new();
            for _ in 0..load.repeats {
                let mut server = BareServer::new(&load, payload + load.overhead_bytes, batch)?;
                runs.push(server.run(&load, &peers.addresses)?);
            }
            print_row("bare", payload, batch, &mut runs);
        }
    }
    if peers.drops() > 0 {
        println!("{} datagrams did not fit the peers' buffers", peers.drops());
    }
    Ok(())
}
