//! What the protocol has learned of the path, and what it makes of a message.

use punctual_policy::{Burst, Price, Situation};
use serde_json::{Value, json};

use crate::lab::measure::millis;
use crate::output::headed;

/// A correlation that is surely less is chance.
const NOTABLE: f32 = 0.05;

/// A fact a row, with what it is about.
pub(super) fn table(first: &Situation) -> Vec<Vec<String>> {
    let facts = [
        Some(("round trip", round_trip(first))),
        Some(("loss", loss(first))),
        bursts(first).map(|words| ("bursts", words)),
        answers(first).map(|words| ("answers", words)),
        Some(("a message", message(first))),
        hurried(first).map(|words| ("hurried", words)),
        after(first).map(|words| ("after that", words)),
        (first.price.map(Price::symbols))
            .map(|symbols| ("price", format!("a miss is worth {symbols:.0} symbols"))),
    ];
    let row = |(about, words): (&str, String)| vec![about.to_owned(), words];
    headed("of|what was seen", facts.into_iter().flatten().map(row))
}

fn round_trip(first: &Situation) -> String {
    let timing = &first.timing;
    let (rtt, deviation) = (millis(timing.rtt), millis(timing.rtt_deviation));
    format!("{rtt:.1} ms, mean deviation {deviation:.1} ms")
}

fn loss(first: &Situation) -> String {
    format!(
        "{:.2} % of symbols now (the older policies take {:.2} %: its average, with room for chance)",
        percent(first.loss_mean),
        percent(first.loss)
    )
}

fn bursts(first: &Situation) -> Option<String> {
    let Burst {
        correlation,
        lasts,
        surely,
        ..
    } = first.burst;
    if correlation.min(surely) <= NOTABLE || lasts.is_zero() {
        return None;
    }
    let next = first.loss_mean + (1.0 - first.loss_mean) * correlation;
    Some(format!(
        "right after a lost symbol the next is lost with {:.0} %, which fades over {:.1} ms",
        percent(next),
        millis(lasts)
    ))
}

fn answers(first: &Situation) -> Option<String> {
    let lost = percent(first.answers.lost);
    (lost >= 0.1).then(|| format!("{lost:.1} % of them are lost"))
}

fn message(first: &Situation) -> String {
    let symbols = count_of(u16::from(first.source_symbols), "symbol");
    let (left, slack) = (millis(first.timing.time_left), millis(first.timing.slack));
    if first.rounds_left == 0 {
        return format!(
            "{symbols}; nothing that leaves now is in time: {left:.0} ms are left, and what waits before it, or the path, takes longer"
        );
    }
    let in_time = if slack < 0.5 {
        "only what leaves at once is in time".to_owned()
    } else {
        format!("what leaves in the first {slack:.0} ms of {left:.0} is in time")
    };
    let rounds = count_of(first.rounds_left, "round");
    let round_time = millis(first.timing.round_time);
    format!("{symbols}, {rounds} of {round_time:.0} ms: {in_time}")
}

fn hurried(first: &Situation) -> Option<String> {
    let hurry = first.hurries.iter().next()?;
    Some(format!(
        "if one round more is made of that, {:.1} % of answers come too late for it, and the last flight is in time with {:.0} %",
        percent(hurry.late),
        percent(hurry.in_time)
    ))
}

fn after(first: &Situation) -> Option<String> {
    let chance = percent(first.last_chance);
    (chance >= 1.0)
        .then(|| format!("a flight after the last round is still in time with {chance:.0} %"))
}

fn percent(share: f32) -> f64 {
    f64::from(share) * 100.0
}

fn count_of(count: u16, thing: &str) -> String {
    match count {
        1 => format!("one {thing}"),
        count => format!("{count} {thing}s"),
    }
}

pub(super) fn json(first: &Situation) -> Value {
    let hurry = first.hurries.iter().next();
    json!({
        "rtt_ms": millis(first.timing.rtt),
        "rtt_deviation_ms": millis(first.timing.rtt_deviation),
        "round_time_ms": millis(first.timing.round_time),
        "slack_ms": millis(first.timing.slack),
        "rounds": first.rounds_left,
        "rounds_if_hurried": hurry.map(|hurry| first.rounds_left.saturating_add(hurry.more)),
        "source_symbols": first.source_symbols,
        "loss": first.loss_mean,
        "loss_bound": first.loss,
        "answers_lost": first.answers.lost,
        "burst_correlation": first.burst.correlation,
        "burst_lasts_ms": millis(first.burst.lasts),
        "on_time_in_last_round": first.on_time,
        "on_time_after_last_round": first.last_chance,
        "miss_price_symbols": first.price.map(Price::symbols),
    })
}
