//! `punctual lab simulate --scenario`: several streams in many sessions, from a file. `lab emulate` plays and tells by this, too.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Instant;

use punctual_lab::report::{self, Figures, LineChart, Series, Table, Unit};
use punctual_lab::scenario::{
    ByReason, Outcome, Pattern, RunError, RunResult, Scenario, ScenarioResult, StreamResult,
    run_while,
};
use punctual_lab::stats::{LatencyMs, Report};
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, OutputFile, dash, headed};
use crate::progress::Progress;

/// What the command line says of it.
pub(super) struct Options<'a> {
    pub(super) file: &'a Path,
    /// How many seeds, from the first on.
    pub(super) seeds: u64,
    /// None: the file's.
    pub(super) seed: Option<u64>,
    pub(super) json: bool,
    pub(super) report: Option<&'a PathBuf>,
}

/// Where it was played, for reports.
pub(super) struct Place {
    /// In words.
    pub(super) words: &'static str,
    /// Tables that only this place has, by title.
    pub(super) tables: Vec<(&'static str, Vec<Vec<String>>)>,
    /// Sentences that go below the tables.
    pub(super) remarks: Vec<String>,
    /// Numbers that only the emulator has.
    pub(super) emulator: Option<Value>,
    /// Nothing ended it early: all seeds are in it.
    pub(super) is_complete: bool,
}

/// All numbers.
#[derive(Serialize)]
struct Numbers<'a> {
    /// Repeats it.
    command: String,
    version: &'static str,
    is_complete: bool,
    #[serde(flatten)]
    result: &'a ScenarioResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    emulator: Option<&'a Value>,
}

/// Plays the file's scenario in virtual time, and prints and writes what came of it.
pub(super) fn simulate(options: &Options<'_>) -> Result<(), Failure> {
    let file = options.file.to_owned();
    output::check_distinct(&[("--scenario", Some(&file)), ("--report", options.report)])?;
    let page = OutputFile::page_if(options.report)?;
    let scenario = Scenario::open(options.file).map_err(Failure::bad_input)?;
    interrupt::watch();
    let begin = Instant::now();
    let first = options.seed.unwrap_or(scenario.seed);
    let seeds = seeds(first, options.seeds)?;
    let played = watched(&scenario, seeds, options.json, |seeds, go_on| {
        run_while(&scenario, seeds, go_on)
    });
    let ended = played.ended.map_err(|error| match error {
        RunError::Stopped => Failure::Interrupted,
        error => Failure::bad_input(error),
    });
    let Some(outcome) = &played.outcome else {
        return ended;
    };
    let place = Place {
        words: "virtual time",
        tables: Vec::new(),
        remarks: early(&ended, outcome, options.seeds).into_iter().collect(),
        emulator: None,
        is_complete: ended.is_ok(),
    };
    let told = tell(&scenario, outcome, &place, page, options.json);
    if !options.json {
        output::note(&format!("{:.1} s", begin.elapsed().as_secs_f64()));
    }
    told.and(ended)
}

/// What a reader must know when it ended before its time.
pub(super) fn early(ended: &Result<(), Failure>, outcome: &Outcome, seeds: u64) -> Option<String> {
    let whole = outcome.result.seeds.len();
    (ended.is_err()).then(|| format!("ended early: of {seeds} seeds {whole} were played whole"))
}

/// Prints and writes what came of it. A promise that the protocol broke is a failure.
pub(super) fn tell(
    scenario: &Scenario,
    outcome: &Outcome,
    place: &Place,
    page: Option<OutputFile>,
    json: bool,
) -> Result<(), Failure> {
    let result = &outcome.result;
    let printed = if json {
        output::print_json(&Numbers {
            command: output::command_line(),
            version: env!("CARGO_PKG_VERSION"),
            is_complete: place.is_complete,
            result,
            emulator: place.emulator.as_ref(),
        })
    } else {
        output::print(&text(result, place))
    };
    let told = output::then_write(printed, page, || html(scenario, outcome, place));
    let kept = match &result.broken_promises()[..] {
        [] => Ok(()),
        broken => Err(Failure::failed(format_args!(
            "the protocol broke a promise, which is a bug: {}",
            broken.join("; ")
        ))),
    };
    output::and_besides(told, kept)
}

/// So many seeds, one after the other; at least one.
pub(super) fn seeds(first: u64, count: u64) -> Result<RangeInclusive<u64>, Failure> {
    let last = first.checked_add(count.saturating_sub(1));
    last.map(|last| first..=last).ok_or_else(|| {
        Failure::bad_input(format_args!(
            "--seeds {count} from seed {first} on goes beyond the largest, {}: begin with a smaller --seed",
            u64::MAX
        ))
    })
}

/// Plays seeds by `play`, with a bar, until somebody asks for the end.
pub(super) fn watched<T>(
    scenario: &Scenario,
    seeds: RangeInclusive<u64>,
    json: bool,
    play: impl FnOnce(
        RangeInclusive<u64>,
        &mut dyn FnMut(punctual_lab::scenario::Progress) -> bool,
    ) -> T,
) -> T {
    let whole_ms = scenario.duration.as_millis() as u64;
    let count = seeds.end() - seeds.start() + 1;
    let progress = Progress::new(count * whole_ms, json);
    let played = play(seeds, &mut |at| {
        let done = at.run as u64 * whole_ms + at.at.as_millis() as u64;
        progress.show(done, &scenario.name);
        !interrupt::is_requested()
    });
    progress.clear();
    played
}

/// What goes to a terminal.
fn text(result: &ScenarioResult, place: &Place) -> String {
    let mut text = heading(result);
    for (title, rows) in tables(result, place) {
        text += &format!("\n{title}\n{}", output::table(&rows));
    }
    for remark in &place.remarks {
        text += &format!("{remark}\n");
    }
    text
}

fn heading(result: &ScenarioResult) -> String {
    let seeds = match &result.seeds[..] {
        [only] => format!("seed {only}"),
        [first, .., last] => format!("{} seeds, {first} to {last}", result.seeds.len()),
        [] => String::new(),
    };
    let settle = if result.settle_s > 0.0 {
        format!(", measured from {} s on", result.settle_s)
    } else {
        String::new()
    };
    let about = if result.about.is_empty() {
        String::new()
    } else {
        format!("{}\n", printable(&result.about))
    };
    format!(
        "{}\n{about}{} {}, {} s{settle}; {seeds}\n",
        printable(&result.scenario),
        result.sessions,
        if result.sessions == 1 {
            "session"
        } else {
            "sessions"
        },
        result.sent_s
    )
}

/// Titles and rows; the first row of each is its heading.
fn tables(result: &ScenarioResult, place: &Place) -> Vec<(&'static str, Vec<Vec<String>>)> {
    let mut tables = vec![("Messages", messages(result)), (LATENCY, latencies(result))];
    if result.streams.iter().any(|s| s.deadline_ms.is_some()) {
        tables.push(("Deadlines", deadlines(result)));
    }
    if result.streams.iter().any(|s| !s.within.is_empty()) {
        tables.push(("Within", within(result)));
    }
    if let Some(dropped) = given_up(result) {
        tables.push(("Given up, and why", dropped));
    }
    if let Some(link) = link(result) {
        tables.push(("Link", link));
    }
    tables.push(("Sharing", sharing(result)));
    tables.extend(place.tables.iter().cloned());
    tables
}

fn messages(result: &ScenarioResult) -> Vec<Vec<String>> {
    let head = "stream|delivery|weight|messages|refused|superseded|given up|lost|Mbit/s|recovery";
    let row = |s: &StreamResult| {
        vec![
            printable(&s.stream),
            s.delivery.clone(),
            s.weight.to_string(),
            s.messages_sent.to_string(),
            s.messages_refused.to_string(),
            s.outcomes.superseded.to_string(),
            s.outcomes.dropped.total().to_string(),
            s.messages_lost.to_string(),
            format!("{:.3}", s.goodput_bits_per_s / 1e6),
            s.recovery_overhead.map_or_else(dash, percent),
        ]
    };
    headed(head, result.streams.iter().map(row))
}

/// With what stands in its cells besides numbers.
const LATENCY: &str =
    "Latency (never: it falls among messages that did not arrive; ?: too few messages to bound it)";

fn latencies(result: &ScenarioResult) -> Vec<Vec<String>> {
    let head = "stream|p50 ms|p95 ms|p99 ms [95 %]|p99.9 ms|max ms";
    let row = |name: String, latency: &LatencyMs, p99: Option<[Option<f64>; 2]>| {
        // Nothing bounds what never comes.
        let interval = p99.filter(|ends| ends.iter().any(Option::is_some));
        let interval = interval.map(|[low, high]| format!(" [{}, {}]", open(low), open(high)));
        vec![
            name,
            optional_ms(latency.p50),
            optional_ms(latency.p95),
            optional_ms(latency.p99) + &interval.unwrap_or_default(),
            optional_ms(latency.p99_9),
            optional_ms(latency.max),
        ]
    };
    let rows = result.streams.iter().flat_map(|s| {
        let measured = row(
            printable(&s.stream),
            &s.latency_ms,
            Some(s.latency_ms_95.p99),
        );
        let settling = s.settling.as_ref().map(|settling| {
            let name = format!("{} (first {} s)", printable(&s.stream), result.settle_s);
            row(name, &settling.latency_ms, None)
        });
        std::iter::once(measured).chain(settling)
    });
    headed(head, rows)
}

fn deadlines(result: &ScenarioResult) -> Vec<Vec<String>> {
    let head = "stream|deadline ms|target|on time [95 %]|at best|predicted|recovery|at least|late: queue|loss|delay|other|misjudged";
    let row = |s: &StreamResult| {
        let late = s.outcomes.late;
        let rest = late.total() - late.queue - late.loss - late.delay;
        let interval = s.on_time_share_95.unwrap_or_default();
        let share = s.on_time_share.unwrap_or_default();
        Some(vec![
            printable(&s.stream),
            s.deadline_ms?.to_string(),
            s.on_time_target.map_or_else(dash, percent),
            format!(
                "{} [{}, {}]",
                percent(share),
                bare_percent(interval.low),
                bare_percent(interval.high)
            ),
            s.floors
                .map_or_else(dash, |floors| percent(1.0 - floors.late_share)),
            s.predicted_on_time_share.map_or_else(dash, percent),
            s.recovery_overhead.map_or_else(dash, percent),
            (s.floors.and_then(|floors| floors.recovery_overhead)).map_or_else(dash, percent),
            late.queue.to_string(),
            late.loss.to_string(),
            late.delay.to_string(),
            rest.to_string(),
            s.outcomes.misjudged.to_string(),
        ])
    };
    headed(head, result.streams.iter().filter_map(row))
}

fn within(result: &ScenarioResult) -> Vec<Vec<String>> {
    let rows = result.streams.iter().flat_map(|s| {
        s.within.iter().map(|within| {
            let interval = within.share_95;
            vec![
                printable(&s.stream),
                within.bound_ms.to_string(),
                format!(
                    "{} [{}, {}]",
                    percent(within.share),
                    bare_percent(interval.low),
                    bare_percent(interval.high)
                ),
            ]
        })
    });
    headed("stream|ms|share [95 %]", rows)
}

/// What a reason is called, and how many messages had it.
type ReasonCount = (&'static str, fn(&ByReason) -> u64);

/// The streams that gave messages up, and the reasons that they had; None when none did.
fn given_up(result: &ScenarioResult) -> Option<Vec<Vec<String>>> {
    const REASONS: [ReasonCount; 7] = [
        ("queue", |why| why.queue),
        ("loss", |why| why.loss),
        ("delay", |why| why.delay),
        ("path down", |why| why.path_down),
        ("thinned out", |why| why.thinned),
        ("session ended", |why| why.closed),
        ("other", |why| why.other),
    ];
    let streams = result.streams.iter();
    let streams = streams.filter(|s| s.outcomes.dropped.total() > 0);
    let streams: Vec<&StreamResult> = streams.collect();
    let reasons = REASONS.into_iter();
    let reasons =
        reasons.filter(|(_, count)| streams.iter().any(|s| count(&s.outcomes.dropped) > 0));
    let reasons: Vec<_> = reasons.collect();
    let head = std::iter::once("stream").chain(reasons.iter().map(|(name, _)| *name));
    let head: Vec<&str> = head.collect();
    let row = |s: &&StreamResult| {
        let counts = reasons
            .iter()
            .map(|(_, count)| count(&s.outcomes.dropped).to_string());
        std::iter::once(printable(&s.stream))
            .chain(counts)
            .collect()
    };
    (!streams.is_empty()).then(|| headed(&head.join("|"), streams.iter().map(row)))
}

fn link(result: &ScenarioResult) -> Option<Vec<Vec<String>>> {
    let link = result.link?;
    let head = "Mbit/s|carried|used|dropped|marked|queue ms mean|p50|p99|max";
    let row = vec![
        format!("{}", link.rate_bits_per_s / 1e6),
        format!("{:.4}", link.carried_bits_per_s / 1e6),
        percent(link.utilisation),
        format!("{} ({})", link.packets_dropped, percent(link.drop_share)),
        link.packets_marked.to_string(),
        format!("{:.2}", link.queue_ms_mean),
        optional_ms(link.queue_ms.p50),
        optional_ms(link.queue_ms.p99),
        optional_ms(link.queue_ms.max),
    ];
    Some(headed(head, [row]))
}

/// Means over the seeds.
fn sharing(result: &ScenarioResult) -> Vec<Vec<String>> {
    let mean = |value: &dyn Fn(&RunResult) -> f64| {
        result.runs.iter().map(value).sum::<f64>() / result.runs.len().max(1) as f64
    };
    let mbit = |bits: f64| format!("{:.4}", bits / 1e6);
    let mut rows = vec![
        vec![
            "sessions, Mbit/s each".to_owned(),
            mbit(mean(&|run| run.sessions_goodput_bits_per_s.mean)),
        ],
        vec![
            "sessions' fairness (Jain)".to_owned(),
            format!("{:.4}", mean(&|run| run.sessions_fairness)),
        ],
        vec![
            "all datagrams, both ways, Mbit/s".to_owned(),
            mbit(mean(&|run| run.wire_bits_per_s)),
        ],
    ];
    let closed: u32 = result.runs.iter().map(|run| run.sessions_closed).sum();
    if closed > 0 {
        rows.push(vec![
            "sessions that ended early".to_owned(),
            closed.to_string(),
        ]);
    }
    if result.runs.iter().all(|run| run.rivals.is_some()) {
        let of = |value: fn(&punctual_lab::scenario::RivalsResult) -> f64| {
            mean(&move |run: &RunResult| run.rivals.as_ref().map_or(0.0, value))
        };
        rows.push(vec![
            "CUBIC flows, Mbit/s each".to_owned(),
            mbit(of(|rivals| rivals.goodput_bits_per_s.mean)),
        ]);
        let is_compared = |run: &RunResult| {
            run.rivals
                .as_ref()
                .is_some_and(|r| r.session_to_rival.is_some())
        };
        if result.runs.iter().all(is_compared) {
            rows.push(vec![
                "a session's part of a CUBIC flow's".to_owned(),
                format!("{:.3}", of(|rivals| rivals.session_to_rival.unwrap_or(0.0))),
            ]);
            rows.push(vec![
                "fairness of all flows (Jain)".to_owned(),
                format!(
                    "{:.4}",
                    of(|rivals| rivals.fairness_with_sessions.unwrap_or(0.0))
                ),
            ]);
        }
    }
    headed("what|mean over seeds", rows)
}

fn html(scenario: &Scenario, outcome: &Outcome, place: &Place) -> String {
    let result = &outcome.result;
    let tables = tables(result, place)
        .into_iter()
        .map(|(title, rows)| Table {
            title: title.to_owned(),
            rows,
        });
    // One message has no distribution. Those come last, so that a stream has the same colour in all charts.
    let is_bulk = |stream: &usize| {
        let pattern = &scenario.streams[*stream].traffic.pattern;
        matches!(pattern, Pattern::Bulk { .. })
    };
    let (bulk, others): (Vec<_>, Vec<_>) = (0..scenario.streams.len()).partition(is_bulk);
    let latency = others.iter().map(|&stream| Series {
        name: scenario.streams[stream].name.clone(),
        points: outcome.tallies[stream].latencies().curve(),
    });
    let figures = Figures {
        title: result.scenario.clone(),
        subtitle: format!(
            "{} {} ({}) {}",
            result.about,
            scenario.path,
            place.words,
            place.remarks.join("; ")
        ),
        command: output::command_line(),
        latency: latency.collect(),
        charts: vec![goodput(result, others.iter().chain(&bulk))],
        tables: tables.collect(),
        ..Figures::default()
    };
    let report = Report {
        floors: None,
        settings: settings(scenario, result),
        policies: Vec::new(),
    };
    report::html(&report, &figures)
}

fn settings(scenario: &Scenario, result: &ScenarioResult) -> Value {
    let seeds: Vec<String> = result.seeds.iter().map(u64::to_string).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seeds": seeds.join(", "),
        "sessions": result.sessions,
        "sent_s": result.sent_s,
        "settle_s": result.settle_s,
        "path": scenario.path.to_string(),
        "policy": scenario.policy.to_string(),
    })
}

fn goodput<'a>(result: &ScenarioResult, streams: impl Iterator<Item = &'a usize>) -> LineChart {
    let streams = streams.map(|&stream| &result.streams[stream]);
    let series = streams.map(|stream| Series {
        name: stream.stream.clone(),
        points: (stream.goodput_by_second_bits_per_s.iter().zip(0_u32..))
            .map(|(bits, second)| (result.settle_s + f64::from(second) + 0.5, bits / 1e6))
            .collect(),
    });
    LineChart {
        title: "Goodput".to_owned(),
        caption: "Bits of messages that arrived in each second, over all sessions, as a mean over the seeds.".to_owned(),
        x_label: "seconds".to_owned(),
        y_label: "Mbit/s".to_owned(),
        x_unit: Unit::Number,
        y_unit: Unit::Number,
        series: series.collect(),
        ..LineChart::default()
    }
}

fn optional_ms(ms: Option<f64>) -> String {
    ms.map_or_else(|| "never".to_owned(), |ms| format!("{ms:.1}"))
}

/// The end of an interval; nothing bounds it where there are too few messages.
fn open(ms: Option<f64>) -> String {
    ms.map_or_else(|| "?".to_owned(), |ms| format!("{ms:.1}"))
}

pub(super) fn percent(share: f64) -> String {
    format!("{} %", bare_percent(share))
}

fn bare_percent(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}

/// Names come from outside; control characters would steer the terminal.
fn printable(text: &str) -> String {
    let is_shown = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(is_shown).collect()
}
