//! The networks that are measured. Each direction has a fault of its own, so that one run shows two.

use std::time::Duration;

use super::probe::{Flow, HEADERS, PAYLOAD_MIN, Plan, probe};
use super::{CalibrationError, Effort, Row};
use crate::channel::{ChannelSpec, LossModel, Outages, PathSpec, RateSpec, Reorder};
use crate::emulator::{Cable, Emulator, EmulatorOptions, Report, SITES, Site};
use crate::world::Forward;

/// A network and what is measured of it.
pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) measure: fn(Effort, u64) -> Result<Vec<Row>, CalibrationError>,
}

pub(super) const SCENES: [Scene; 7] = [
    scene("delay", delay),
    scene("jitter, duplicates", jitter_and_duplicates),
    scene("loss, reordering", loss_and_reordering),
    scene("bursts, outages", bursts_and_outages),
    scene("rate, queue", rate_and_queue),
    scene("MTU", mtu),
    scene("timing", timing),
];

const fn scene(
    name: &'static str,
    measure: fn(Effort, u64) -> Result<Vec<Row>, CalibrationError>,
) -> Scene {
    Scene { name, measure }
}

/// The row that says whether the machine is fast enough.
pub(super) const TIMING: &str = "error of 99 % of 20,000 packets a second";

/// What a packet takes besides: through two devices and two sockets, and what the machine is late.
const SLACK_MS: f64 = 1.0;
/// How long timing is measured in quick mode.
const TIMED: Duration = ms(1500);
/// Clocks are read before a packet is sent and after it was received, so nothing is early.
const EARLY_MS: f64 = 0.01;
const ETHERNET_MTU: u16 = 1500;
const SMALL: usize = HEADERS + PAYLOAD_MIN;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// So long in quick mode.
fn length(effort: Effort, quick: Duration) -> Duration {
    match effort {
        Effort::Quick => quick,
        Effort::Full => 4 * quick,
    }
}

/// Packets of the least size.
const fn small(every: Duration, at_once: u32, length: Duration) -> Plan {
    Plan {
        every,
        at_once,
        bytes: SMALL,
        length,
    }
}

/// Sends through a network of one path; forward is from the client.
fn run(
    ways: [ChannelSpec; SITES],
    mtu: u16,
    seed: u64,
    plans: [Option<Plan>; SITES],
) -> Result<([Flow; SITES], Report), CalibrationError> {
    let [forward, backward] = ways;
    let emulator = Emulator::start(EmulatorOptions {
        paths: vec![PathSpec::new(
            "calibration",
            "made for it",
            forward,
            backward,
        )],
        forward: Forward::ToServer,
        link: None,
        seed,
        mtu,
        cables: vec![Cable::default()],
    })?;
    let flows = probe(&emulator, plans)?;
    Ok((flows, emulator.stop()?))
}

/// What is lost must have been dropped, or the machine lost it.
fn unexplained(flows: &[Flow; SITES], report: &Report, scene: &str) -> Row {
    let lost: u64 = flows.iter().map(Flow::lost).sum();
    let counts = &report.cables[0];
    let dropped = counts.total(Site::Client).dropped + counts.total(Site::Server).dropped;
    let measured = lost as f64 - dropped as f64;
    let check = format!("{scene}: packets lost that were not dropped");
    Row::new(check, "", 0.0, (0.0, 0.0), measured)
}

/// Of numbers in order.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let at = (last as f64 * share).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn delay(effort: Effort, seed: u64) -> Result<Vec<Row>, CalibrationError> {
    let ways = [30, 20].map(|delay| ChannelSpec::fixed(ms(delay)));
    let plan = Some(small(ms(1), 1, length(effort, ms(700))));
    let (flows, report) = run(ways, ETHERNET_MTU, seed, [plan, plan])?;
    let ways = [("to the server", 30.0), ("to the client", 20.0)];
    let mut rows = Vec::new();
    for ((way, delay), flow) in ways.into_iter().zip(&flows) {
        let bounds = (delay - EARLY_MS, delay + SLACK_MS);
        let measured = quantile(&flow.delays_ms(), 0.5);
        let check = format!("delay {way}, median");
        rows.push(Row::new(check, "ms", delay, bounds, measured));
    }
    rows.push(unexplained(&flows, &report, "delay"));
    Ok(rows)
}

fn jitter_and_duplicates(effort: Effort, seed: u64) -> Result<Vec<Row>, CalibrationError> {
    let (base, jitter, share) = (20.0, 10.0, 0.05);
    let ways = [
        ChannelSpec {
            jitter: ms(10),
            ..ChannelSpec::fixed(ms(20))
        },
        ChannelSpec {
            duplicate: share,
            ..ChannelSpec::fixed(ms(20))
        },
    ];
    let plan = Some(small(ms(1), 2, length(effort, ms(1200))));
    let (flows, report) = run(ways, ETHERNET_MTU, seed, [plan, plan])?;
    let delays = flows[0].delays_ms();
    let least = (base - EARLY_MS, base + SLACK_MS);
    let most = (base + jitter - SLACK_MS, base + jitter + SLACK_MS);
    // An even distribution's deviation is its length by the root of 12.
    let half = super::Z95 * jitter / 12_f64.sqrt() / (delays.len().max(1) as f64).sqrt();
    let middle = base + jitter / 2.0;
    let sent = flows[1].sent_ns.len() as u64;
    let twice = flows[1].arrivals.len() as u64 - (sent - flows[1].lost());
    Ok(vec![
        Row::new(
            "delay with jitter of 10 ms, least 1 %",
            "ms",
            base,
            least,
            quantile(&delays, 0.01),
        ),
        Row::new(
            "delay with jitter, mean",
            "ms",
            middle,
            (middle - half, middle + half + SLACK_MS),
            mean(&delays),
        ),
        Row::new(
            "delay with jitter, 99 %",
            "ms",
            base + jitter,
            most,
            quantile(&delays, 0.99),
        ),
        Row::share("packets that arrive twice, share", share, twice, sent),
        unexplained(&flows, &report, "jitter, duplicates"),
    ])
}

fn loss_and_reordering(effort: Effort, seed: u64) -> Result<Vec<Row>, CalibrationError> {
    let (loss, reorder) = (0.02, 0.05);
    let ways = [
        ChannelSpec::fixed(ms(20)).with_loss(LossModel::Uniform(loss)),
        ChannelSpec {
            reorder: Reorder {
                share: reorder,
                extra: ms(20),
            },
            ..ChannelSpec::fixed(ms(20))
        },
    ];
    let plan = Some(small(ms(1), 3, length(effort, ms(1500))));
    let (flows, report) = run(ways, ETHERNET_MTU, seed, [plan, plan])?;
    let sent = flows.each_ref().map(|flow| flow.sent_ns.len() as u64);
    let delays = flows[1].delays_ms();
    let held: Vec<f64> = delays.into_iter().filter(|delay| *delay > 30.0).collect();
    let bounds = (40.0 - EARLY_MS, 40.0 + SLACK_MS);
    Ok(vec![
        Row::share("packets lost, share", loss, flows[0].lost(), sent[0]),
        Row::share(
            "packets held back, share",
            reorder,
            held.len() as u64,
            sent[1],
        ),
        Row::new(
            "delay of packets held back by 20 ms, median",
            "ms",
            40.0,
            bounds,
            quantile(&held, 0.5),
        ),
        unexplained(&flows, &report, "loss, reordering"),
    ])
}

/// Lengths of the runs of packets that did not arrive, in milliseconds from the first to the one after the last, and when they began.
/// Those at the ends of the flow are cut, and left out.
pub(super) fn gaps(flow: &Flow) -> Vec<(f64, f64)> {
    let arrived = flow.arrived();
    let mut gaps = Vec::new();
    let mut begin = None;
    for number in 1..arrived.len() {
        match (arrived[number - 1], arrived[number]) {
            (true, false) => begin = Some(number),
            (false, true) => {
                if let Some(begin) = begin.take() {
                    let at = |number: usize| flow.sent_ns[number] as f64 / 1e6;
                    gaps.push((at(begin), at(number) - at(begin)));
                }
            }
            _ => {}
        }
    }
    gaps
}

fn bursts_and_outages(effort: Effort, seed: u64) -> Result<Vec<Row>, CalibrationError> {
    let (loss, burst_ms) = (0.1, 5.0);
    let (every_ms, outage_ms) = (1000.0, 200.0);
    let ways = [
        ChannelSpec::fixed(ms(20)).with_loss(LossModel::Gilbert {
            loss_share: loss,
            mean_burst: ms(5),
            loss_in_good: 0.0,
            loss_in_bad: 1.0,
        }),
        ChannelSpec {
            outages: Some(Outages {
                period: ms(1000),
                length: ms(200),
                share: 1.0,
            }),
            ..ChannelSpec::fixed(ms(20))
        },
    ];
    let plan = Some(small(ms(1), 1, length(effort, ms(3000))));
    let (flows, report) = run(ways, ETHERNET_MTU, seed, [plan, plan])?;
    let bursts: Vec<f64> = gaps(&flows[0]).iter().map(|gap| gap.1).collect();
    let expected = seen_burst_ms(loss, burst_ms);
    // Lengths of spells are exponential: their deviation is their mean.
    let half = super::Z95 * expected / (bursts.len().max(1) as f64).sqrt();
    let outages = gaps(&flows[1]);
    let lengths: Vec<f64> = outages.iter().map(|gap| gap.1).collect();
    let periods: Vec<f64> = outages
        .windows(2)
        .map(|pair| pair[1].0 - pair[0].0)
        .collect();
    // Dark begins and ends with a millisecond, packets are a millisecond apart.
    let around = |value: f64| (value - 2.0, value + 2.0);
    Ok(vec![
        Row::new(
            "bursts of 5 ms, mean as seen once a ms",
            "ms",
            expected,
            (expected - half, expected + half),
            mean(&bursts),
        ),
        Row::new(
            "outages, mean length",
            "ms",
            outage_ms,
            around(outage_ms),
            mean(&lengths),
        ),
        Row::new(
            "from one outage to the next, mean",
            "ms",
            every_ms,
            around(every_ms),
            mean(&periods),
        ),
        unexplained(&flows, &report, "bursts, outages"),
    ])
}

/// The mean length of bursts that packets a millisecond apart see: spells between two of them are not seen, and spells with no packet
/// between them are one. Of a process with two states the share that is still bad after a millisecond is known.
pub(super) fn seen_burst_ms(loss: f64, burst_ms: f64) -> f64 {
    let good_ms = burst_ms * (1.0 - loss) / loss;
    let stays = loss + (1.0 - loss) * (-(1.0 / burst_ms + 1.0 / good_ms)).exp();
    1.0 / (1.0 - stays)
}

fn rate_and_queue(effort: Effort, seed: u64) -> Result<Vec<Row>, CalibrationError> {
    // 1,000 bytes take a millisecond, the queue holds 40 of them; twice the rate comes.
    let (mbit, queue_ms, bytes) = (8.0, 40.0, 1000);
    let limited = ChannelSpec {
        rate: Some(RateSpec::constant(8_000_000, 40_000)),
        ..ChannelSpec::fixed(ms(20))
    };
    let plan = Plan {
        every: ms(1),
        at_once: 2,
        bytes,
        length: length(effort, ms(1200)),
    };
    let idle = ChannelSpec::fixed(ms(20));
    let (flows, report) = run([limited, idle], ETHERNET_MTU, seed, [Some(plan), None])?;
    let flow = &flows[0];
    let end_ns = flow.sent_ns.last().copied().unwrap_or_default();
    // The queue is full after 40 ms: from 200 ms on all is steady, until the sender ends.
    let begin_ns = flow.sent_ns.first().map_or(0, |first| first + 200_000_000);
    let steady: Vec<_> = (flow.arrivals.iter())
        .filter(|arrival| (begin_ns..end_ns).contains(&arrival.at_ns))
        .collect();
    let carried = match (steady.first(), steady.last()) {
        (Some(first), Some(last)) if last.at_ns > first.at_ns => {
            let bits = (steady.len() - 1) as f64 * bytes as f64 * 8.0;
            bits * 1e3 / (last.at_ns - first.at_ns) as f64
        }
        _ => f64::NAN,
    };
    let mut waits: Vec<f64> = steady
        .iter()
        .map(|arrival| arrival.delay_ms() - 20.0)
        .collect();
    waits.sort_unstable_by(f64::total_cmp);
    // A packet is taken when it fits: one less may wait before it, and it waits for itself.
    let queue = (queue_ms - 1.0 - EARLY_MS, queue_ms + SLACK_MS);
    let arrived = flow.arrived();
    let late = flow.sent_ns.partition_point(|at| *at < begin_ns);
    let dropped = arrived[late..].iter().filter(|arrived| !**arrived).count();
    let offered = arrived.len() - late;
    let seconds = end_ns.saturating_sub(begin_ns) as f64 / 1e9;
    let expected = 1.0 - mbit * 1e6 * seconds / (offered.max(1) as f64 * bytes as f64 * 8.0);
    Ok(vec![
        Row::new(
            "rate of 8 Mbit/s, used to the full",
            "Mbit/s",
            mbit,
            (mbit * 0.99, mbit * 1.01),
            carried,
        ),
        Row::new(
            "wait in a full queue of 40 ms, median",
            "ms",
            queue_ms,
            queue,
            quantile(&waits, 0.5),
        ),
        Row::new(
            "wait in it, 99 %",
            "ms",
            queue_ms,
            queue,
            quantile(&waits, 0.99),
        ),
        Row::new(
            "packets dropped at twice the rate, share",
            "",
            expected,
            (expected - 0.02, expected + 0.02),
            dropped as f64 / offered as f64,
        ),
        unexplained(&flows, &report, "rate, queue"),
    ])
}

fn mtu(_: Effort, seed: u64) -> Result<Vec<Row>, CalibrationError> {
    const MTU: u16 = 1300;
    let ways = || [ms(1), ms(1)].map(ChannelSpec::fixed);
    let one = |bytes| Plan {
        every: ms(1),
        at_once: 1,
        bytes,
        length: ms(1),
    };
    let mut rows = Vec::new();
    for (bytes, packets, check) in [
        (
            usize::from(MTU),
            1.0,
            "packets of a datagram as large as the MTU of 1,300",
        ),
        (
            usize::from(MTU) + 1,
            2.0,
            "packets of one that is a byte larger",
        ),
    ] {
        let (flows, report) = run(ways(), MTU, seed, [Some(one(bytes)), None])?;
        let sent = report.cables[0].total(Site::Client).packets as f64;
        rows.push(Row::new(check, "", packets, (packets, packets), sent));
        let arrived = flows[0].arrivals.len() as f64;
        rows.push(Row::new(
            format!("{check}: arrivals"),
            "",
            1.0,
            (1.0, 1.0),
            arrived,
        ));
    }
    Ok(rows)
}

fn timing(effort: Effort, seed: u64) -> Result<Vec<Row>, CalibrationError> {
    let ways = [25, 25].map(|delay| ChannelSpec::fixed(ms(delay)));
    // 10,000 a second each way.
    let plan = Some(Plan {
        bytes: 200,
        ..small(Duration::from_micros(500), 5, length(effort, TIMED))
    });
    let (flows, report) = run(ways, ETHERNET_MTU, seed, [plan, plan])?;
    let mut errors: Vec<f64> = (flows.iter().flat_map(|flow| &flow.arrivals))
        .map(|arrival| (arrival.delay_ms() - 25.0).abs())
        .collect();
    errors.sort_unstable_by(f64::total_cmp);
    let sent: usize = flows.iter().map(|flow| flow.sent_ns.len()).sum();
    let seconds = length(effort, TIMED).as_secs_f64();
    let rate = sent as f64 / seconds;
    let bounds = (0.0, SLACK_MS);
    let own = report.timing.error_ms_p99();
    Ok(vec![
        Row::new(
            "packets sent a second",
            "",
            20_000.0,
            (19_000.0, 20_100.0),
            rate,
        ),
        Row::new(TIMING, "ms", 0.0, bounds, quantile(&errors, 0.99)),
        Row::new("the same as the emulator sees it", "ms", 0.0, bounds, own),
        unexplained(&flows, &report, "timing"),
    ])
}
