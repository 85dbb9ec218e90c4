use super::figures::stretches;
use super::kernel::{not_sent, parse};
use super::{FLOWS_MIN, on_time_difference};
use crate::arm::{NEVER, Played};

/// Flows of 100 messages, of which so many were late.
fn played(late: &[usize]) -> Played {
    let flow = |late: &usize| {
        let latency = |place| if place < *late { NEVER } else { 1000 };
        (0..100).map(latency).collect()
    };
    Played {
        latencies_us: late.iter().map(flow).collect(),
        ..Played::default()
    }
}

/// A regression: of one flow, or of one message that was late, every difference was significant.
#[test]
fn little_tells_no_difference() {
    let (all, few) = (played(&[0; 4]), played(&[9; 4]));
    let difference = on_time_difference(&all, &few, false, 2000);
    assert!((difference.on_time_share - 0.09).abs() < 1e-9);
    assert!(difference.on_time_share_95.is_none());

    let interval = |here: &Played, there: &Played| {
        let difference = on_time_difference(here, there, false, 2000);
        difference.on_time_share_95.expect("there are enough flows")
    };
    let all = played(&[0; FLOWS_MIN]);
    let none = interval(&all, &all);
    assert!(none.low.abs() + none.high.abs() < 1e-9);
    let one = interval(&all, &played(&[1, 0, 0, 0, 0]));
    assert!(one.low < 0.0 && one.high >= 1.0 / 500.0);
    let many = interval(&all, &played(&[9; FLOWS_MIN]));
    assert!(many.low > 0.07 && many.high < 0.0901, "{many:?}");
    let back = interval(&played(&[9; FLOWS_MIN]), &all);
    assert!((back.low + many.high).abs() + (back.high + many.low).abs() < 1e-9);
}

/// A regression: flows behind one link were taken as independent, so that one queue that overflowed once told arms apart for certain.
#[test]
fn what_goes_through_one_link_is_late_together() {
    // The first 5 messages of each of 50 flows.
    let (all, few) = (played(&[0; 50]), played(&[5; 50]));
    let interval = |shares_link| {
        let difference = on_time_difference(&all, &few, shares_link, 2000);
        let interval = difference.on_time_share_95.expect("there are enough");
        (interval.low, interval.high)
    };
    let (low, high) = interval(false);
    assert!(low > 0.04 && high < 0.06, "{low} {high}");
    let (low, high) = interval(true);
    assert!(low <= 0.0 && high > 0.1, "{low} {high}");
}

/// A regression: of one flow the messages were taken as independent, though misses come in runs.
#[test]
fn one_flow_is_cut_into_stretches_of_its_time() {
    let run = played(&[30]).latencies_us;
    let together = stretches(&run, 2000);
    assert_eq!(together.len(), 20);
    assert_eq!(together.iter().filter(|one| one.hits == 0).count(), 6);
    assert_eq!(together.iter().map(|one| one.of).sum::<u64>(), 100);
    assert_eq!(stretches(&played(&[1; 30]).latencies_us, 2000).len(), 30);
    assert_eq!(stretches(&[Vec::new()], 2000).len(), 0);
}

#[test]
fn what_devices_did_not_send_is_found() {
    let devices = "Inter-|   Receive | Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop\n    \
                   lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  tun0:1 2 3 4 5 6 7 8 9 10 11 30 13 14 15 16\n";
    assert_eq!(not_sent(devices), 42);
    assert_eq!(not_sent("no: table\n"), 0);
}

#[test]
fn counters_have_the_names_of_their_lines() {
    let text = "TcpExt: A B C\nTcpExt: 1 -1 3\nIpExt: D\nIpExt: 4\n";
    let expected = [("TcpExt.A", 1), ("TcpExt.C", 3), ("IpExt.D", 4)];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(parse(text), expected);
    assert_eq!(parse("no counters at all\n\n"), []);
}
