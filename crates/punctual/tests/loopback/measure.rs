//! Measuring beside ordinary traffic, over real sockets.

use std::time::Duration;

use punctual::{
    Config, MeasureEnd, MeasureError, MeasureOptions, MeasureRules, MeasureState, SendOptions, Way,
};

use crate::support::{PATIENCE, pair_of, recv, stream};

fn config() -> Config {
    Config {
        measure: Some(MeasureRules {
            sample: 1,
            ..MeasureRules::default()
        }),
        ..Config::default()
    }
}

fn options() -> MeasureOptions {
    MeasureOptions {
        interval: Duration::from_millis(10),
        messages: Some(4),
        ..MeasureOptions::default()
    }
}

/// Goal: the trace is whole, the server has the same, and the application's messages are not touched by it.
#[test]
fn a_session_is_measured() {
    let pair = pair_of(config());
    let measurement = pair.ours.measure(options()).unwrap();
    let again = pair.ours.measure(options()).unwrap_err();
    assert!(matches!(again, MeasureError::Stream(_)), "{again}");
    let out = stream(&pair.ours);
    out.send(b"north", SendOptions::default()).unwrap();
    assert_eq!(recv(&pair.theirs).1, b"north");

    let measured = measurement.result_timeout(PATIENCE).unwrap();
    assert_eq!(measured.end, MeasureEnd::Complete);
    assert_eq!(measurement.progress().state, MeasureState::Over);
    assert_eq!(measured.packets.len(), 20);
    for packet in &measured.packets {
        assert!(packet.rtt().is_some() && packet.attempt == 0, "{packet:?}");
    }
    let clocks = measured.clocks.unwrap();
    assert!(clocks.residual <= clocks.bound);
    assert_eq!(measured.kept, 20);

    let mut kept = Vec::new();
    loop {
        let part = pair.server.next_trace_timeout(PATIENCE).unwrap().unwrap();
        assert_eq!((part.trace, part.session), (0, pair.theirs.id()));
        kept.extend(part.packets);
        if part.is_last {
            break;
        }
    }
    assert_eq!(kept, measured.packets);
    assert!(pair.theirs.try_recv().unwrap().is_none());

    // The same session may measure again.
    let measured = pair.ours.measure(options()).unwrap();
    let measured = measured.result_timeout(PATIENCE).unwrap();
    assert!(matches!(measured.packets[0].up, Way::Took(_)));
}

/// A server whose application was busy was said not to measure: what waited for that application held the measurement's messages back as well.
#[test]
fn a_busy_application_does_not_hold_up_a_measurement() {
    let pair = pair_of(config());
    let out = stream(&pair.ours);
    for _ in 0..1200 {
        out.send_blocking([7; 20], SendOptions::default()).unwrap();
    }
    for _ in 0..1200 {
        assert!(out.next_outcome_timeout(PATIENCE).unwrap().is_some());
    }
    let measurement = pair.ours.measure(options()).unwrap();
    let measured = measurement.result_timeout(PATIENCE).unwrap();
    assert_eq!(measured.end, MeasureEnd::Complete);
    assert_eq!((measured.packets.len(), measured.kept), (20, 20));
    for _ in 0..1200 {
        assert_eq!(recv(&pair.theirs).1, [7; 20]);
    }
}

/// Goal: the server's switch stops clients that measure, and those that come later; a trace that was begun has its end.
#[test]
fn a_server_switches_measuring_off() {
    let pair = pair_of(config());
    let endless = MeasureOptions {
        messages: None,
        ..options()
    };
    let measurement = pair.ours.measure(endless.clone()).unwrap();
    while measurement.progress().messages < 2 {
        assert!(
            measurement
                .result_timeout(Duration::from_millis(1))
                .is_none()
        );
    }
    pair.server.set_measuring(MeasureRules::off());
    let measured = measurement.result_timeout(PATIENCE).unwrap();
    assert_eq!(measured.end, MeasureEnd::Off);
    if measured.kept > 0 {
        while !pair
            .server
            .next_trace_timeout(PATIENCE)
            .unwrap()
            .unwrap()
            .is_last
        {}
    }
    let later = pair.ours.measure(endless).unwrap();
    assert_eq!(later.result_timeout(PATIENCE).unwrap().end, MeasureEnd::Off);
    assert_eq!(later.progress().packets, 0);
}

/// Goal: the end of the session is the end of the measurement.
#[test]
fn a_measurement_ends_with_its_session() {
    let pair = pair_of(config());
    let measurement = pair.ours.measure(MeasureOptions::default()).unwrap();
    pair.ours.close(punctual::CloseCode::DONE, "");
    let measured = measurement.result_timeout(PATIENCE).unwrap();
    assert_eq!(measured.end, MeasureEnd::Closed);
    assert!(pair.ours.measure(MeasureOptions::default()).is_err());
    pair.server.close();
    assert!(pair.server.next_trace_timeout(PATIENCE).is_err());
}
