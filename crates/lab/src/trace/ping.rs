//! What `ping` prints, and tables made of it.

use std::io::BufRead;

use super::error::excerpt;
use super::lines::{Lines, PROBES_LOST_IN_A_ROW, SAMPLES};
use super::{LostSide, Outcome, Sample, Timeline, TraceErrorKind, number, rtt_us};

/// Output of `ping -D`. The time stamp is that of the answer, so the probe was sent a round trip earlier. A lost probe was
/// sent at a time between its neighbours', in proportion to the sequence numbers.
pub(super) fn read_ping<R: BufRead>(lines: &mut Lines<R>) -> Result<Vec<Sample>, TraceErrorKind> {
    let mut answers: Vec<Answer> = Vec::new();
    let mut first_s = None;
    let mut unwrap = SequenceUnwrap::default();
    while let Some(line) = lines.next()? {
        if line.starts_with("PING ") && !answers.is_empty() {
            return Err(begins_again(excerpt(line)));
        }
        // Warnings, "no answer yet", errors of routers and the summary are passed over; so are copies.
        if !line.contains("bytes from") || line.contains("(DUP!)") {
            continue;
        }
        let (stamp_s, seq, rtt_us) = parse_answer(line)?;
        let first_s = *first_s.get_or_insert(stamp_s);
        // Stamps may step back a little; a log that covers more than a century either way is broken.
        let since_us = number_within_century(stamp_s - first_s, line)?;
        answers.push(Answer {
            seq: unwrap.unwrap(seq),
            sent_us: since_us - i64::from(rtt_us),
            rtt_us,
        });
    }
    answers.sort_by_key(|answer| answer.seq);
    let is_again = |pair: &[Answer]| {
        pair[0].seq == pair[1].seq && pair[0].sent_us.abs_diff(pair[1].sent_us) > SAME_PROBE_US
    };
    if let Some(pair) = answers.windows(2).find(|pair| is_again(pair)) {
        return Err(begins_again(format!("a second icmp_seq={}", pair[1].seq)));
    }
    answers.dedup_by_key(|answer| answer.seq);
    fill_gaps(&answers)
}

/// Copies of an answer tell of one moment, but for what the clock was set by.
const SAME_PROBE_US: u64 = 10_000_000;

fn begins_again(found: String) -> TraceErrorKind {
    let what = "one log of ping, not another one after it: keep each in a file of its own";
    TraceErrorKind::Expected { what, found }
}

#[derive(Debug, Clone, Copy)]
struct Answer {
    seq: u64,
    sent_us: i64,
    rtt_us: u32,
}

/// `[1723489200.167948] 64 bytes from host: icmp_seq=1 ttl=63 time=144 ms`
fn parse_answer(line: &str) -> Result<(f64, u64, u32), TraceErrorKind> {
    let expected = |what| TraceErrorKind::Expected {
        what,
        found: excerpt(line),
    };
    let (stamp, rest) = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
        .ok_or_else(|| expected("a line that begins with `[unix time]` (ping needs -D)"))?;
    let stamp_s = number(stamp, 0.0, 1e11, "a time stamp in seconds")?;
    let field = |name| {
        let (_, value) = rest.split_once(name)?;
        value.split_ascii_whitespace().next()
    };
    let seq = field("icmp_seq=")
        .and_then(|value| value.parse::<u32>().ok())
        .ok_or_else(|| expected("icmp_seq=<number>"))?;
    let rtt = field("time=").ok_or_else(|| expected("time=<milliseconds>"))?;
    Ok((
        stamp_s,
        u64::from(seq),
        rtt_us(rtt, "a round-trip time in ms")?,
    ))
}

fn number_within_century(seconds: f64, line: &str) -> Result<i64, TraceErrorKind> {
    if seconds.abs() < 3.2e9 {
        return Ok((seconds * 1e6).round() as i64);
    }
    Err(TraceErrorKind::Expected {
        what: "a time stamp near the first",
        found: excerpt(line),
    })
}

/// Sequence numbers have 16 bits on the wire and begin again at 0 after 65535.
#[derive(Debug, Default)]
struct SequenceUnwrap {
    highest: u64,
}

impl SequenceUnwrap {
    fn unwrap(&mut self, seq: u64) -> u64 {
        const SPAN: u64 = 1 << 16;
        // Some systems print more than 16 bits; then there is nothing to unwrap.
        let mut full = if seq < SPAN {
            self.highest / SPAN * SPAN + seq
        } else {
            seq
        };
        if full + SPAN / 2 < self.highest {
            full += SPAN;
        } else if full > self.highest + SPAN / 2 && self.highest > 0 && full >= SPAN && seq < SPAN {
            full -= SPAN;
        }
        self.highest = self.highest.max(full);
        full
    }
}

/// Answers in order of sequence, with the lost probes between them.
fn fill_gaps(answers: &[Answer]) -> Result<Vec<Sample>, TraceErrorKind> {
    let Some(first) = answers.first() else {
        return Ok(Vec::new());
    };
    let last = &answers[answers.len() - 1];
    if last.seq - first.seq >= SAMPLES {
        return Err(TraceErrorKind::TooLarge {
            what: "probes by sequence number",
            limit: SAMPLES,
        });
    }
    if answers
        .windows(2)
        .any(|pair| pair[1].seq - pair[0].seq > PROBES_LOST_IN_A_ROW)
    {
        let limit = PROBES_LOST_IN_A_ROW;
        return Err(TraceErrorKind::TooLarge {
            what: "probes lost in a row by sequence number",
            limit,
        });
    }
    let base = answers
        .iter()
        .map(|answer| answer.sent_us)
        .min()
        .unwrap_or(0);
    let mut samples: Vec<Sample> = Vec::with_capacity(answers.len());
    let mut push = |at_us: i64, outcome| {
        // In order of sending, whatever the stamps say.
        let at_us = samples
            .last()
            .map_or(0, |last: &Sample| last.at_us)
            .max((at_us - base) as u64);
        samples.push(Sample { at_us, outcome });
    };
    for (i, answer) in answers.iter().enumerate() {
        push(
            answer.sent_us,
            Outcome::RoundTrip {
                rtt_us: answer.rtt_us,
            },
        );
        let Some(next) = answers.get(i + 1) else {
            break;
        };
        let steps = (next.seq - answer.seq) as f64;
        for lost in 1..next.seq - answer.seq {
            let way = lost as f64 / steps * (next.sent_us - answer.sent_us) as f64;
            push(
                answer.sent_us + way as i64,
                Outcome::Lost(LostSide::Unknown),
            );
        }
    }
    Ok(samples)
}

/// `unix_time seq rtt_ms`; a negative time is a lost probe.
pub(super) fn read_table<R: BufRead>(lines: &mut Lines<R>) -> Result<Vec<Sample>, TraceErrorKind> {
    let mut samples = Vec::new();
    let mut timeline = Timeline::default();
    while let Some(line) = lines.next()? {
        let fields: Vec<&str> = line.split_ascii_whitespace().take(4).collect();
        let [time, seq, rtt] = fields[..] else {
            let what = "three columns: unix_time seq rtt_ms";
            return Err(TraceErrorKind::Expected {
                what,
                found: excerpt(line),
            });
        };
        number(seq, 0.0, 1e18, "a sequence number")?;
        let at_us = timeline.at_us(time)?;
        let outcome = if number(rtt, -3.6e6, 3.6e6, "a round-trip time in ms, or -1")? < 0.0 {
            Outcome::Lost(LostSide::Unknown)
        } else {
            Outcome::RoundTrip {
                rtt_us: rtt_us(rtt, "a round-trip time in ms, or -1")?,
            }
        };
        samples.push(Sample { at_us, outcome });
    }
    Ok(samples)
}
