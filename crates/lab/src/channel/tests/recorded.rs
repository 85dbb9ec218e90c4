//! Limited rates and recorded channels.

use super::*;

#[test]
fn a_limited_rate_queues_and_then_drops() {
    // 1.2 Mbit/s: 1500 bytes take 10 ms; 4500 bytes wait at most.
    let spec = ChannelSpec {
        rate: Some(RateSpec::constant(1_200_000, 4500)),
        ..ChannelSpec::default()
    };
    let mut channel = channel(spec, 6);
    let fates: Vec<_> = (0..4).map(|_| channel.fate(0, 1500)).collect();
    assert_eq!(
        fates[..3].iter().map(|&f| delay(f)).collect::<Vec<_>>(),
        [10_000, 20_000, 30_000]
    );
    assert_eq!(fates[3], Fate::Lost(LossReason::Queue));
    // At 25 ms half a packet is left to send.
    assert_eq!(delay(channel.fate(25_000, 1500)), 15_000);
    assert_eq!(
        delay(channel.fate(1_000_000, 9000)),
        60_000,
        "an idle link takes any packet"
    );
}

#[test]
fn recorded_capacity_serves_at_its_opportunities() {
    let trace = Arc::new(CapacityTrace::new(vec![10, 10, 30, 100]).unwrap());
    assert!((trace.bits_per_second() - 480_000.0).abs() < 1.0);
    let rate = RateSpec {
        capacity: Capacity::Trace(Arc::clone(&trace)),
        queue_bytes: 6000,
    };
    let mut channel = channel(
        ChannelSpec {
            rate: Some(rate),
            ..ChannelSpec::default()
        },
        1,
    );
    let offset = trace.offset_us(Chance::new(1, 0));
    // Begin at the trace's beginning: three small packets share the first opportunity, full ones take one each.
    let start = 100_000 - offset;
    let waits: Vec<_> = [500, 500, 500, 1500, 1500, 1500]
        .iter()
        .map(|&bytes| channel.fate(start, bytes))
        .collect();
    let ends: Vec<_> = waits[..5].iter().map(|&fate| delay(fate) / 1000).collect();
    assert_eq!(ends, [10, 10, 10, 10, 30]);
    assert_eq!(delay(waits[5]) / 1000, 100);
    assert_eq!(channel.fate(start, 1500 * 9), Fate::Lost(LossReason::Queue));
}

/// A regression: both ways of a path began at the same share of recordings of different lengths, seconds apart.
#[test]
fn both_ways_of_recorded_capacity_begin_at_the_same_moment() {
    let trace = |last_ms| CapacityTrace::new(vec![1, last_ms]).unwrap();
    let (out, back) = trace(120_000).together(trace(140_000));
    for seed in 0..100 {
        let chance = Chance::new(seed, 0);
        assert_eq!(out.offset_us(chance), back.offset_us(chance));
        assert!(out.offset_us(chance) < 120_000_000);
    }
}

#[test]
fn recorded_delay_and_loss_are_played_in_both_directions() {
    let delays = Arc::new(DelayTrace::new(vec![(0, 10_000), (50_000, 20_000)], 100_000).unwrap());
    let span = |start_ms: u64, side| LossSpan {
        start_us: start_ms * 1000,
        end_us: (start_ms + 5) * 1000,
        share: 1.0,
        side,
    };
    let spans = vec![
        span(10, LossSide::Forward),
        span(20, LossSide::Backward),
        span(30, LossSide::Both),
        span(40, LossSide::Drawn { run: 0 }),
        span(60, LossSide::Drawn { run: 0 }),
    ];
    let losses = Arc::new(LossTrace::new(spans, 100_000, 0.3).unwrap());
    let spec = Arc::new(ChannelSpec {
        delay: DelayModel::Trace(delays),
        loss: LossModel::Trace(losses),
        ..ChannelSpec::default()
    });
    let count = |direction| {
        let mut channel = Channel::new(Arc::clone(&spec), 5, 2, direction);
        (0..100_000u64)
            .filter(|slot| is_lost(channel.fate(slot * 1000, 1)))
            .count() as f64
            / 1000.0
    };
    // A lap: 10 ms known to each direction (its own and both), and 10 ms to one of them, forward in 30 % of laps.
    let (forward, backward) = (count(Direction::Forward), count(Direction::Backward));
    assert!((forward - 13.0).abs() < 0.6, "{forward}");
    assert!((backward - 17.0).abs() < 0.6, "{backward}");
    assert!((forward + backward - 30.0).abs() < 0.1);
    let mut channel = Channel::new(Arc::clone(&spec), 5, 2, Direction::Forward);
    for slot in 0..1000 {
        if let Fate::Delivered { delay_us, .. } = channel.fate(slot * 1000, 1) {
            assert!((10_000..=20_000).contains(&delay_us));
        }
    }
}

#[test]
fn playback_refuses_disorder() {
    assert_eq!(
        DelayTrace::new(vec![], 5).unwrap_err(),
        PlaybackError::Empty
    );
    let error = DelayTrace::new(vec![(3, 1), (3, 1)], 5).unwrap_err();
    assert_eq!(error, PlaybackError::OutOfOrder { entry: 1 });
    assert!(DelayTrace::new(vec![(5, 1)], 5).is_err());
    assert!(CapacityTrace::new(vec![3, 2]).is_err());
    assert!(CapacityTrace::new(vec![]).is_err());
}
