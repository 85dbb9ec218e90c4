//! A table: what the shipping protocol spends against independent losses, which it has to learn, beside the optimum of a sender that knows them.
//! After 20,000 messages of each session, over so many more in all (the first argument; 400,000, which say what 20 % of loss costs to 0.2 points only).
//! Shares in percent. A quarter of an hour, or less for one loss (the second argument, or `all`); the third is the seed.

#[path = "../tests/support/uniform.rs"]
mod uniform;

use uniform::Row;

fn main() {
    let argument = |place| std::env::args().nth(place);
    let messages = argument(1).and_then(|count| count.parse().ok());
    let messages = messages.unwrap_or(400_000);
    let only: Option<f64> = argument(2).and_then(|loss| loss.parse().ok());
    let seed = argument(3).and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!(" loss rounds  k | late, 95 % | recovery, optimum, beyond it | asked");
    let (mut held, mut rows) = (0, 0);
    let losses = [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];
    for loss in only.map_or_else(|| losses.to_vec(), |loss| vec![loss]) {
        for rounds in 1..=3 {
            for symbols in [1, 2, 4, 8, 16] {
                let row = Row {
                    loss,
                    rounds,
                    symbols,
                };
                let achieved = row.play(messages, seed);
                let beyond = achieved.recovery - row.optimum();
                let is_held = beyond <= row.allowed() && achieved.is_met();
                held += u32::from(is_held);
                rows += 1;
                println!(
                    "{loss:5} {rounds:6} {symbols:2} | {:.4} to {:.4} | {:.2} {:.2} {:+.2} | {}",
                    percent(achieved.late_95.low),
                    percent(achieved.late_95.high),
                    percent(achieved.recovery),
                    percent(row.optimum()),
                    percent(beyond),
                    if is_held { "yes" } else { "NO" },
                );
            }
        }
    }
    println!("as asked {held} of {rows}");
}

fn percent(share: f64) -> f64 {
    100.0 * share
}
