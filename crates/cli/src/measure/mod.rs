//! `punctual measure`: the path between two machines, packet by packet and direction by direction, recorded for replay.
//!
//! `server.rs` allows it and keeps the traces (`keep.rs` bounds them), `client.rs` measures, `findings.rs` says what was found.

mod client;
mod findings;
mod keep;
mod server;

use punctual::{MeasuredPacket, Way};
use punctual_lab::trace::{Leg, PACKETS_HEADER, PacketRow, write_packets};

use crate::failure::Failure;

/// Measure the path between two machines: round trips, one-way delays, loss in each direction, bursts, reordering; and keep
/// traces that `punctual lab replay` plays.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Server(server::Args),
    Client(client::Args),
}

/// Runs the command.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Server(args) => server::run(args),
        Command::Client(args) => client::run(&args),
    }
}

/// The beginning of a trace file; `remarks` are lines for people.
fn trace_head(remarks: &[String]) -> String {
    let mut text = String::new();
    for remark in remarks {
        text += &format!("# {remark}\n");
    }
    text + PACKETS_HEADER + "\n"
}

/// Packets as lines of a trace file.
fn trace_rows(packets: &[MeasuredPacket]) -> Vec<u8> {
    let rows = packets.iter().map(|packet| PacketRow {
        sent_us: packet.sent.as_micros() as u64,
        message: packet.message,
        attempt: packet.attempt,
        up: leg(packet.up),
        down: leg(packet.down),
    });
    let mut text = Vec::new();
    write_packets(rows, &mut text).expect("memory takes all that is written");
    text
}

fn leg(way: Way) -> Leg {
    match way {
        Way::Took(time) => Leg::Took {
            us: time.as_micros().min(3_600_000_000) as u32,
        },
        Way::Lost => Leg::Lost,
        Way::Unknown => Leg::Unknown,
    }
}

/// What every trace says of its one-way delays.
const ONE_WAY_REMARK: &str = "up and down together are the round trip, whatever the clocks; each alone is right if both ways take equally long when nothing waits";
