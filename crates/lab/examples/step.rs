//! A step of the loss from 0.1 to 10 % and back at a round trip of 60 ms and 30 messages a second: the share that is late in each second,
//! over so many hundreds of sessions (100: 10,000 of them, about ten minutes).

#[path = "../tests/support/step.rs"]
mod step;

fn main() {
    let hundreds = std::env::args().nth(1).and_then(|count| count.parse().ok());
    let (seconds, spent) = step::play(hundreds.unwrap_or(100));
    for (second, (late, messages)) in (0..).zip(seconds.late.iter().zip(&seconds.messages)) {
        if second + 3 >= step::CALM_S && *messages > 0 {
            let share = 100.0 * *late as f64 / *messages as f64;
            println!(
                "second {:+3}: {share:.3} % late of {messages}",
                second as i64 - step::CALM_S as i64
            );
        }
    }
    println!(
        "recovery: {:.2} % before, {:.2} % while 10 % are lost, {:.2} % from 5 s after that on",
        100.0 * spent.in_calm,
        100.0 * spent.when_bad,
        100.0 * spent.after
    );
}
