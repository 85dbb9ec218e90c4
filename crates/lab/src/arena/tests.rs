use super::kernel::parse;
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

#[test]
fn counters_have_the_names_of_their_lines() {
    let text = "TcpExt: A B C\nTcpExt: 1 -1 3\nIpExt: D\nIpExt: 4\n";
    let expected = [("TcpExt.A", 1), ("TcpExt.C", 3), ("IpExt.D", 4)];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(parse(text), expected);
    assert_eq!(parse("no counters at all\n\n"), []);
}
