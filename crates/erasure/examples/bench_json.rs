//! Measures this crate, `reed-solomon-erasure` and `reed-solomon-simd` in one run and prints one JSON object.
//!
//! `cargo run --release -p punctual-erasure --features bench-c --example bench_json`
//!
//! The contenders take turns in short batches, so that a noisy neighbour disturbs all of them alike. Times are in
//! microseconds for one message (all repair symbols made, or all losses rebuilt); `ratio` is the contender's median
//! divided by this crate's, above 1 means that this crate is faster.

use std::time::{Duration, Instant};

#[path = "../benches/contenders/mod.rs"]
mod contenders;
use contenders::{CASES, Case, Contender, SYMBOL_LEN, contenders};

/// Batches for each contender and case.
const BATCHES: usize = 301;
/// How long a batch takes, about: long against the clock's resolution, short against a time slice.
const BATCH: Duration = Duration::from_micros(100);

fn main() {
    let mut cases = Vec::new();
    for case in CASES {
        let mut codes = contenders(case);
        cases.push(measure(case, "encode", &mut codes, |code| code.encode()));
        cases.push(measure(case, "rebuild", &mut codes, |code| code.rebuild()));
    }
    let kernel = punctual_erasure::kernel_name();
    let cases = cases.join(",\n    ");
    println!(
        "{{\n  \"kernel\": \"{kernel}\",\n  \"symbol_bytes\": {SYMBOL_LEN},\n  \"cases\": [\n    {cases}\n  ]\n}}"
    );
}

/// Measures one operation of all contenders; the answer is a JSON object.
fn measure(
    case: Case,
    operation: &str,
    codes: &mut [Box<dyn Contender>],
    work: impl Fn(&mut dyn Contender),
) -> String {
    let repeats: Vec<u32> = codes
        .iter_mut()
        .map(|code| repeats(|| work(code.as_mut())))
        .collect();
    let mut times = vec![Vec::with_capacity(BATCHES); codes.len()];
    for _ in 0..BATCHES {
        for ((code, &repeats), times) in codes.iter_mut().zip(&repeats).zip(&mut times) {
            times.push(batch(repeats, || work(code.as_mut())));
        }
    }
    times
        .iter_mut()
        .for_each(|times| times.sort_by(f64::total_cmp));
    let own = times[0][BATCHES / 2];
    let entries = codes.iter().zip(&times).map(|(code, times)| {
        let (name, min, median) = (code.name(), times[0], times[BATCHES / 2]);
        let ratio = median / own;
        format!("\"{name}\": {{\"min_us\": {min:.3}, \"median_us\": {median:.3}, \"ratio\": {ratio:.2}}}")
    });
    let entries = entries.collect::<Vec<_>>().join(", ");
    let Case { k, e } = case;
    format!("{{\"operation\": \"{operation}\", \"k\": {k}, \"e\": {e}, {entries}}}")
}

/// How many repeats fill a batch.
fn repeats(mut work: impl FnMut()) -> u32 {
    let mut repeats = 1;
    loop {
        let taken = Duration::from_secs_f64(batch(repeats, &mut work) * 1e-6) * repeats;
        if taken >= BATCH {
            return repeats;
        }
        repeats *= 2;
    }
}

/// Microseconds for one run of `work`, over `repeats` of them.
fn batch(repeats: u32, mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..repeats {
        work();
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(repeats)
}
