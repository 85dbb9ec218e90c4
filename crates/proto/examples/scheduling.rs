//! What scheduling costs a message: `cargo run --release -p punctual-proto --features vectors --example scheduling`.
//!
//! Each message is accepted on a stream and sent when its turn comes, with as many streams active as the line says; half of them have
//! deadlines. Told is the median of 31 runs, in nanoseconds. The goal is 200 with 64 streams.

use std::hint::black_box;
use std::time::Instant;

use punctual_proto::vectors::ScheduleLoad;

const MESSAGES: u32 = 200_000;

fn main() {
    for streams in [1, 8, 64, 512] {
        let mut load = ScheduleLoad::new(streams);
        let mut runs: Vec<f64> = (0..31)
            .map(|_| {
                let started = Instant::now();
                for _ in 0..MESSAGES {
                    black_box(load.message());
                }
                started.elapsed().as_secs_f64() * 1e9 / f64::from(MESSAGES)
            })
            .collect();
        runs.sort_by(f64::total_cmp);
        println!(
            "{streams:3} streams: {:.0} ns a message ({:.0} to {:.0})",
            runs[15], runs[0], runs[30]
        );
    }
}
