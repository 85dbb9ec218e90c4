//! What a trace says, in numbers and in sentences.
//!
//! Loss, bursts and delays are those of packets sent for the first time: repetitions are sent because a packet was lost, and would
//! count bad moments more often than good ones. Intervals resample whole messages, whose packets share their moment.

use std::time::Duration;

use punctual::{MeasureEnd, Measured, MeasuredPacket, Way};
use punctual_lab::stats::{Cluster, Interval, Latencies, LatencyMs, share_interval};
use punctual_lab::trace::UNANSWERED;
use serde::Serialize;

use crate::output;
use crate::scoreboard::{count, percent};

/// The game message that a measured one stands for: two packets, as in the Pangolin paper.
const MESSAGE_PACKETS: i32 = 2;
/// From so many packets on, what one message in a thousand may miss can be said; below it, one in a hundred; and from so few on
/// nothing.
const PACKETS_FOR_THOUSANDTHS: u64 = 2000;
const PACKETS_MIN: u64 = 100;
/// Sendings after which redundancy is the better way.
const SENDINGS_MAX: i32 = 6;

/// What was found. Field names are those of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Findings {
    end: String,
    messages: u32,
    sample: u16,
    packets: u64,
    packets_sent_again: u64,
    packets_held_back: u32,
    rtt_ms: LatencyMs,
    rtt_min_ms: Option<f64>,
    owd_up_ms: LatencyMs,
    owd_down_ms: LatencyMs,
    owd_residual_ms: Option<f64>,
    owd_bound_ms: Option<f64>,
    up: Direction,
    down: Direction,
    /// Packets of which neither direction knows, since nothing was heard any more.
    unanswered: Unanswered,
    /// Of packets sent for the first time: answered after so many repetitions, from 0.
    answered_after_repetitions: Vec<u64>,
    never_answered: u64,
    trace_packets_kept_by_server: u32,
    trace_refused_by_server: bool,
    deadline: Option<Deadline>,
}

/// One direction.
#[derive(Debug, Serialize)]
struct Direction {
    packets: u64,
    lost: u64,
    loss_share: f64,
    loss_share_95: Interval,
    /// Runs of lost packets within a message, by their length from 1.
    bursts: Vec<u64>,
    reordered: u32,
    session_packets: u64,
    session_packets_twice: u64,
}

/// Of packets sent for the first time, those that nothing was heard of in three seconds.
#[derive(Debug, Serialize)]
struct Unanswered {
    packets: u64,
    of: u64,
    share: f64,
    share_95: Interval,
}

/// Until when a message of two packets arrives with this share by sending again what was lost, and how often it is sent for that.
#[derive(Clone, Copy, Debug, Serialize)]
struct Deadline {
    on_time: f64,
    sent_once_ms: f64,
    sendings: i32,
    kept_ms: f64,
}

impl Findings {
    pub(super) fn of(measured: &Measured) -> Self {
        let packets = &measured.packets;
        let first: Vec<&MeasuredPacket> = packets.iter().filter(|p| p.attempt == 0).collect();
        let up = Direction::of(&first, |p| p.up);
        let down = Direction::of(&first, |p| p.down);
        let took = |way: fn(&MeasuredPacket) -> Option<Duration>| {
            let mut latencies = Latencies::default();
            let times = first.iter().filter_map(|packet| way(packet));
            times.for_each(|time| latencies.record(time.as_micros() as u64));
            latencies
        };
        let rtt = took(MeasuredPacket::rtt);
        let ups = took(|packet| time(packet.up));
        let downs = took(|packet| time(packet.down));
        let (answered, never) = repetitions(packets);
        let is_unanswered = is_unanswered(packets);
        let unanswered = Unanswered::of(&first, &is_unanswered);
        // The worse for a message to the server: all of it was lost on the way up.
        let at_worst = |packet: &MeasuredPacket| match is_unanswered(packet) {
            true => Way::Lost,
            false => packet.up,
        };
        let at_worst = Direction::of(&first, at_worst);
        let clocks = measured.clocks;
        Self {
            end: measured.end.to_string(),
            messages: measured.messages,
            sample: measured.sample,
            packets: first.len() as u64,
            packets_sent_again: (packets.len() - first.len()) as u64,
            packets_held_back: measured.held,
            deadline: deadline(&at_worst, &ups, &rtt),
            unanswered,
            rtt_min_ms: first.iter().filter_map(|p| p.rtt()).min().map(millis),
            rtt_ms: answers(&rtt),
            owd_up_ms: answers(&ups),
            owd_down_ms: answers(&downs),
            owd_residual_ms: clocks.map(|clocks| millis(clocks.residual)),
            owd_bound_ms: clocks.map(|clocks| millis(clocks.bound)),
            up: Direction {
                reordered: measured.reordered_up,
                session_packets: measured.copies_up.packets,
                session_packets_twice: measured.copies_up.copies,
                ..up
            },
            down: Direction {
                reordered: measured.reordered_down,
                session_packets: measured.copies_down.packets,
                session_packets_twice: measured.copies_down.copies,
                ..down
            },
            answered_after_repetitions: answered,
            never_answered: never,
            trace_packets_kept_by_server: measured.kept,
            trace_refused_by_server: measured.is_refused,
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{} messages, {} packets, {} sent again.\n\n",
            count(self.messages.into()),
            count(self.packets),
            count(self.packets_sent_again)
        );
        let mut rows = vec![
            ["ms", "p50", "p95", "p99", "max"]
                .map(str::to_owned)
                .to_vec(),
        ];
        let mut add = |name: &str, times: &LatencyMs| {
            let cells = [times.p50, times.p95, times.p99, times.max];
            let cells = cells.map(|ms| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}")));
            rows.push([&[name.to_owned()][..], &cells].concat());
        };
        add("round trip", &self.rtt_ms);
        add("one way up", &self.owd_up_ms);
        add("one way down", &self.owd_down_ms);
        text += &output::table(&rows);
        if let (Some(residual), Some(bound)) = (self.owd_residual_ms, self.owd_bound_ms) {
            let sentence = format!(
                "One way is right to {residual:.2} ms if both ways are equally long when nothing waits, and to {bound:.1} ms however unequal \
                 they are."
            );
            text += &output::wrapped(&sentence, "");
        }
        text.push('\n');
        text += &self.unanswered.text();
        text += &self.up.text("up");
        text += &self.down.text("down");
        text += &self.meaning();
        text
    }

    fn meaning(&self) -> String {
        let mut text = String::new();
        if self.never_answered > 0 {
            let until = if self.end == MeasureEnd::Complete.to_string() {
                "after all repetitions"
            } else {
                "before the end"
            };
            text += &format!(
                "{} packets had no answer {until}.\n",
                count(self.never_answered)
            );
        }
        if self.packets_held_back > 0 {
            text += &format!(
                "{} packets were left out: the session did not let them go within three seconds.\n",
                count(self.packets_held_back.into())
            );
        }
        text.push('\n');
        text += &match self.deadline {
            Some(deadline) => output::wrapped(&deadline.text(), ""),
            None => "Too few packets, or too much loss, to say which deadline a message keeps.\n"
                .to_owned(),
        };
        text + "What Punctual makes of such a path: punctual lab replay --trace FILE --deadline-ms MS\n"
    }
}

impl Deadline {
    fn text(&self) -> String {
        let percentage = self.on_time * 100.0;
        let kept = self.kept_ms;
        if self.sendings == 1 {
            return format!(
                "A message of two packets to the server keeps a deadline of {kept:.1} ms with {percentage} %, sent once.\n"
            );
        }
        format!(
            "A message of two packets to the server keeps a deadline of {kept:.1} ms with {percentage} %, if lost packets are sent up to {} \
             times and losses come alone. Sent once, packets take up to {:.1} ms: a deadline between the two asks for redundancy.\n",
            self.sendings, self.sent_once_ms
        )
    }
}

impl Unanswered {
    fn of(first: &[&MeasuredPacket], is_it: impl Fn(&MeasuredPacket) -> bool) -> Self {
        let counted = Direction::of(first, |packet| match is_it(packet) {
            true => Way::Lost,
            false => Way::Took(Duration::ZERO),
        });
        Self {
            packets: counted.lost,
            of: counted.packets,
            share: counted.loss_share,
            share_95: counted.loss_share_95,
        }
    }

    /// Nothing, where all were answered for.
    fn text(&self) -> String {
        if self.packets == 0 {
            return String::new();
        }
        format!(
            "lost, not known where: {} of {} packets, {} [{}, {}]: nothing was heard of them in three seconds\n",
            count(self.packets),
            count(self.of),
            percent(self.share),
            percent(self.share_95.low),
            percent(self.share_95.high)
        )
    }
}

impl Direction {
    fn of(first: &[&MeasuredPacket], way: impl Fn(&MeasuredPacket) -> Way) -> Self {
        let mut clusters = Vec::new();
        let mut bursts: Vec<u64> = Vec::new();
        for message in first.chunk_by(|a, b| a.message == b.message) {
            let known: Vec<bool> = message
                .iter()
                .map(|packet| way(packet))
                .filter(|way| *way != Way::Unknown)
                .map(|way| way == Way::Lost)
                .collect();
            clusters.push(Cluster {
                hits: known.iter().filter(|lost| **lost).count() as u64,
                of: known.len() as u64,
            });
            for run in known.chunk_by(|a, b| a == b).filter(|run| run[0]) {
                bursts.resize(bursts.len().max(run.len()), 0);
                bursts[run.len() - 1] += 1;
            }
        }
        let packets: u64 = clusters.iter().map(|cluster| cluster.of).sum();
        let lost: u64 = clusters.iter().map(|cluster| cluster.hits).sum();
        Self {
            packets,
            lost,
            loss_share: lost as f64 / packets.max(1) as f64,
            loss_share_95: share_interval(&clusters, 1),
            bursts,
            reordered: 0,
            session_packets: 0,
            session_packets_twice: 0,
        }
    }

    fn text(&self, name: &str) -> String {
        let interval = self.loss_share_95;
        let mut text = format!(
            "{name}: {} of {} packets lost, {} [{}, {}]",
            count(self.lost),
            count(self.packets),
            percent(self.loss_share),
            percent(interval.low),
            percent(interval.high)
        );
        let runs: u64 = self.bursts.iter().sum();
        if runs > 0 {
            text += &format!(
                ", in runs of {:.1} within a message (longest {})",
                self.lost as f64 / runs as f64,
                self.bursts.len()
            );
        }
        text + &format!(
            "; {} overtaken, {} of the session's {} came twice\n",
            count(self.reordered.into()),
            count(self.session_packets_twice),
            count(self.session_packets)
        )
    }
}

/// Whether nothing was heard of one of these packets, though there was time.
fn is_unanswered(packets: &[MeasuredPacket]) -> impl Fn(&MeasuredPacket) -> bool {
    let end = packets.iter().map(|packet| packet.sent).max();
    move |packet| {
        let is_known = (packet.up, packet.down) != (Way::Unknown, Way::Unknown);
        !is_known && Some(packet.sent + UNANSWERED) <= end
    }
}

/// How many packets were answered after so many repetitions, and how many never.
fn repetitions(packets: &[MeasuredPacket]) -> (Vec<u64>, u64) {
    let mut by_packet: Vec<(u32, u8, u8, bool)> = packets
        .iter()
        .map(|p| (p.message, p.index, p.attempt, p.rtt().is_some()))
        .collect();
    by_packet.sort_unstable();
    let (mut answered, mut never) = (vec![0; 6], 0);
    for sendings in by_packet.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let first = sendings.iter().find(|sending| sending.3);
        match first.and_then(|sending| answered.get_mut(usize::from(sending.2))) {
            Some(count) => *count += 1,
            None => never += 1,
        }
    }
    (answered, never)
}

/// Half of what may miss is granted to delay, half to loss. With `n` sendings of each packet a message of two is whole with
/// (1 - p^n)^2, p being the upper end of the loss up; each sending after the first begins a round trip after the one before.
fn deadline(up: &Direction, ups: &Latencies, rtt: &Latencies) -> Option<Deadline> {
    let known = ups.messages().min(rtt.messages());
    let on_time = match known {
        ..PACKETS_MIN => return None,
        PACKETS_MIN..PACKETS_FOR_THOUSANDTHS => 0.99,
        PACKETS_FOR_THOUSANDTHS.. => 0.999,
    };
    let half = (1.0 - on_time) / 2.0;
    let quantile = 1.0 - half / f64::from(MESSAGE_PACKETS);
    let (one_way, round_trip) = (ups.quantile_ms(quantile)?, rtt.quantile_ms(quantile)?);
    let loss = up.loss_share_95.high;
    let is_enough = |n: &i32| (1.0 - loss.powi(*n)).powi(MESSAGE_PACKETS) >= 1.0 - half;
    let sendings = (1..=SENDINGS_MAX).find(is_enough)?;
    Some(Deadline {
        on_time,
        sent_once_ms: one_way,
        sendings,
        kept_ms: one_way + f64::from(sendings - 1) * round_trip,
    })
}

/// Quantiles of those that have a time; none at all are nulls.
fn answers(latencies: &Latencies) -> LatencyMs {
    if latencies.messages() == 0 {
        LatencyMs::default()
    } else {
        latencies.quantiles()
    }
}

const fn time(way: Way) -> Option<Duration> {
    match way {
        Way::Took(time) => Some(time),
        Way::Lost | Way::Unknown => None,
    }
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(message: u32, index: u8, attempt: u8, up: Way, down: Way) -> MeasuredPacket {
        MeasuredPacket {
            sent: Duration::from_secs(message.into()),
            message,
            index,
            attempt,
            up,
            down,
        }
    }

    #[test]
    fn runs_and_repetitions_are_counted() {
        let took = Way::Took(Duration::from_millis(20));
        let (lost, unknown) = (Way::Lost, Way::Unknown);
        let packets = [
            packet(0, 0, 0, took, took),
            packet(0, 1, 0, lost, unknown),
            packet(0, 2, 0, lost, unknown),
            packet(0, 3, 0, took, lost),
            packet(0, 1, 1, lost, unknown),
            packet(0, 2, 1, took, took),
            packet(0, 1, 2, took, took),
            packet(1, 0, 0, lost, unknown),
        ];
        let first: Vec<&MeasuredPacket> = packets.iter().filter(|p| p.attempt == 0).collect();
        let up = Direction::of(&first, |p| p.up);
        assert_eq!((up.lost, up.packets), (3, 5));
        // The last packet of a message and the first of the next are no run.
        assert_eq!(up.bursts, [1, 1]);
        let down = Direction::of(&first, |p| p.down);
        assert_eq!((down.lost, down.packets), (1, 2));
        // Packets 3 and 1:0 never had an answer.
        assert_eq!(repetitions(&packets), (vec![1, 1, 1, 0, 0, 0], 2));
    }

    /// A regression: of a server that went away in the middle, no packet was lost and every deadline was kept.
    #[test]
    fn what_nobody_answers_any_more_is_lost() {
        let took = Way::Took(Duration::from_millis(20));
        let packets: Vec<MeasuredPacket> = (0..400)
            .map(|i| match i < 300 {
                true => packet(i, 0, 0, took, took),
                false => packet(i, 0, 0, Way::Unknown, Way::Unknown),
            })
            .collect();
        let first: Vec<&MeasuredPacket> = packets.iter().collect();
        let unanswered = Unanswered::of(&first, is_unanswered(&packets));
        // Of the last three seconds an answer may have been on its way.
        assert_eq!((unanswered.packets, unanswered.of), (97, 400));
        assert!(unanswered.text().contains("not known where: 97 of 400"));
    }

    #[test]
    fn the_deadline_grows_with_the_loss() {
        let of = |loss: u32| {
            let took = Way::Took(Duration::from_millis(20));
            let packets: Vec<MeasuredPacket> = (0..1000)
                .map(|i| match i % 1000 < loss {
                    true => packet(i, 0, 0, Way::Lost, Way::Unknown),
                    false => packet(i, 0, 0, took, took),
                })
                .collect();
            let first: Vec<&MeasuredPacket> = packets.iter().collect();
            let up = Direction::of(&first, |p| p.up);
            let mut times = Latencies::default();
            (0..1000).for_each(|_| times.record(20_000));
            deadline(&up, &times, &times)
        };
        let sendings = [0, 20, 200].map(|loss| of(loss).map(|deadline| deadline.sendings));
        // With none of 1,000 lost the loss may still be 0.4 %, and one sending is not enough to be sure.
        assert_eq!(sendings, [Some(2), Some(2), Some(5)]);
        let kept = of(20).map(|deadline| (deadline.on_time, deadline.kept_ms.round()));
        assert_eq!(kept, Some((0.99, 40.0)));
        assert!(of(900).is_none());
    }
}
