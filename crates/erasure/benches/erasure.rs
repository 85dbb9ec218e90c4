//! Encoding and rebuilding against `reed-solomon-erasure` and `reed-solomon-simd`.
//!
//! `cargo bench -p punctual-erasure --features bench-c`; `examples/bench_json.rs` prints the same as one JSON object.

use criterion::{Criterion, criterion_group, criterion_main};

mod contenders;
use contenders::{CASES, Case, contenders};

fn codes(criterion: &mut Criterion) {
    for case in CASES {
        let Case { k, e } = case;
        let mut group = criterion.benchmark_group(format!("encode k={k} e={e}"));
        for mut code in contenders(case) {
            group.bench_function(code.name(), |bencher| bencher.iter(|| code.encode()));
        }
        group.finish();
        let mut group = criterion.benchmark_group(format!("rebuild k={k} e={e}"));
        for mut code in contenders(case) {
            group.bench_function(code.name(), |bencher| bencher.iter(|| code.rebuild()));
        }
        group.finish();
    }
}

criterion_group!(benches, codes);
criterion_main!(benches);
