//! What is sent last arrives first: losses that were none.

use std::fmt::Write;
use std::time::Duration;

use punctual_lab::simulate::{LateCause, MessageFate, SimulateOptions, simulate};
use punctual_lab::trace::{PathOptions, parse};
use punctual_policy::PolicyKind;

/// Two minutes of a wire whose round trip of 17 ms is anything up to 80 for a third of a second now and then, and which loses 40 % for 30 ms each 7 s or so.
fn wire() -> Vec<u8> {
    let mut state = 4_u64;
    // (SplitMix64.)
    let mut unit = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    let (mut slow, mut lossy) = (0, 0);
    let mut log = String::new();
    for row in 0..8000 {
        if slow == 0 && unit() < 1.0 / 60.0 {
            slow = 20;
        }
        let rtt_ms = if slow > 0 { 20.0 + 60.0 * unit() } else { 17.0 };
        if unit() < 2e-3 {
            lossy = 2;
        }
        let loss = if lossy > 0 { 0.4 } else { 0.0 };
        (slow, lossy) = (i32::max(slow - 1, 0), i32::max(lossy - 1, 0));
        writeln!(
            log,
            "{:.3} 5.0 {rtt_ms:.1}ms {loss:.2}",
            f64::from(row) * 0.015
        )
        .expect("a string takes it");
    }
    log.into_bytes()
}

/// A regression: of messages that a delay made late, whose symbols were overtaken and so taken for lost until they came, losses were blamed for good. That raised the price;
/// the more symbols were bought, the more were overtaken, and the more misses blamed: 3.7 symbols for each that was needed, and a tenth of
/// the misses that were allowed. (Over a recorded wire, 200,000 messages: 4.1, and 0.017 % of 0.1.)
#[test]
fn losses_are_not_blamed_for_what_was_overtaken() {
    let trace = parse(&wire()).expect("it is one");
    let path = trace.path(&PathOptions::for_trace(&trace));
    let options = SimulateOptions {
        symbols: Some(2),
        message_bytes: 2000,
        sessions: 1,
        interval: Duration::from_millis(20),
        messages: 40_000,
        policies: vec![PolicyKind::Steered],
        keeps_fates: true,
        ..SimulateOptions::new(path.expect("it has delays"), Duration::from_micros(20_400))
    };
    let result = &simulate(&options, |_| {}).expect("sessions begin")[0];
    let count = |is_counted: fn(LateCause) -> bool| {
        let late = result.fates.iter().filter(|fate| match fate {
            MessageFate::OnTime => false,
            MessageFate::Late(cause) => is_counted(*cause),
        });
        late.count()
    };
    let overhead = result.summary.recovery_overhead;
    let (lost, hopeless) = (
        count(LateCause::is_preventable),
        count(|cause| cause == LateCause::Hopeless),
    );
    println!("{overhead} {lost} {hopeless}");
    assert!(hopeless > 4_000, "it is slow at times: {hopeless}");
    assert!((12..65).contains(&lost), "40 are allowed: {lost}");
    assert!(overhead < 2.0, "{overhead}");
}
