use super::*;

fn close(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 0.0015 * expected.abs() + 1e-9,
        "{found}, not {expected}"
    );
}

#[test]
fn quantiles_of_a_known_series() {
    let mut latencies = Latencies::default();
    // 1 ..= 1000 ms, in any order.
    for i in 0..1000u64 {
        latencies.record((i * 389 % 1000 + 1) * 1000);
    }
    let quantiles = latencies.quantiles();
    close(quantiles.p50.unwrap(), 500.0);
    close(quantiles.p95.unwrap(), 950.0);
    close(quantiles.p99.unwrap(), 990.0);
    close(quantiles.p99_5.unwrap(), 995.0);
    close(quantiles.p99_9.unwrap(), 999.0);
    assert_eq!(quantiles.max, Some(1000.0));
    assert!(latencies.late(900_000).abs_diff(100) <= 1);
    assert_eq!(latencies.messages(), 1000);
}

/// A regression: of 29, 87 or 149 messages the median was the one after it.
#[test]
fn a_quantile_is_a_rank() {
    for messages in 1..400u64 {
        let mut latencies = Latencies::default();
        (1..=messages).for_each(|us| latencies.record(us));
        for quantile in [0.5, 0.95, 0.99, 0.995, 0.999] {
            let rank = (quantile * messages as f64).ceil();
            let found = latencies.quantile_ms(quantile).unwrap() * 1000.0;
            assert!(
                (found - rank).abs() < 1e-6,
                "{quantile} of {messages}: {found}"
            );
        }
    }
}

#[test]
fn what_never_arrives_is_later_than_all() {
    let mut latencies = Latencies::default();
    let mut others = Latencies::default();
    (0..98).for_each(|_| latencies.record(10_000));
    others.record_lost();
    others.record_lost();
    latencies.merge(&others);
    let quantiles = latencies.quantiles();
    close(quantiles.p95.unwrap(), 10.0);
    assert_eq!((quantiles.p99, quantiles.p99_9), (None, None));
    assert_eq!(quantiles.max, Some(10.0));
    assert_eq!((latencies.late(20_000), latencies.lost()), (2, 2));
    let curve = latencies.curve();
    close(curve.last().unwrap().1, 0.02);
    assert_eq!(Latencies::default().quantiles(), LatencyMs::default());
    assert!(Latencies::default().curve().is_empty());
}

#[test]
fn curves_fall_and_are_short() {
    let mut latencies = Latencies::default();
    for i in 0..200_000u64 {
        latencies.record(50_000 + (i * 48_271) % 65_537 + if i % 1000 == 0 { 250_000 } else { 0 });
    }
    let curve = latencies.curve();
    assert!((50..1200).contains(&curve.len()), "{}", curve.len());
    assert!(
        curve
            .windows(2)
            .all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 >= pair[1].1)
    );
    assert_eq!(curve.last().unwrap().1, 0.0);
}

#[test]
fn wilson_has_known_values() {
    // Newcombe 1998, table 1: 81 of 263 -> 0.2553 .. 0.3662; 0 of 20 -> 0 .. 0.1611.
    let interval = wilson(81, 263);
    assert!((interval.low - 0.2553).abs() < 5e-5 && (interval.high - 0.3662).abs() < 5e-5);
    let none = wilson(0, 20);
    assert!(none.low == 0.0 && (none.high - 0.1611).abs() < 5e-5);
    assert_eq!(
        wilson(0, 0),
        Interval {
            low: 0.0,
            high: 1.0
        }
    );
    assert_eq!(wilson(5, 5).high, 1.0);
}

#[test]
fn resampling_by_path_is_wider_when_paths_differ() {
    let alike = vec![Cluster { hits: 10, of: 1000 }; 50];
    let different: Vec<_> = (0..50)
        .map(|i| Cluster {
            hits: if i % 10 == 0 { 100 } else { 0 },
            of: 1000,
        })
        .collect();
    let (narrow, wide) = (share_interval(&alike, 1), share_interval(&different, 1));
    assert_eq!(
        narrow,
        wilson(500, 50_000),
        "never narrower than independent messages allow"
    );
    assert!(
        wide.high - wide.low > 3.0 * (narrow.high - narrow.low),
        "{wide:?}"
    );
    assert!(wide.contains(0.01) && narrow.contains(0.01));
    assert_eq!(resample(&different, 500, 1), resample(&different, 500, 1));
    assert_eq!(resample(&different[..1], 500, 1), None);
    let no_hits = share_interval(&[Cluster { hits: 0, of: 100 }; 9], 1);
    assert!(no_hits.high > 0.003);
}

/// The share of intervals that hold the truth, over many made-up studies.
#[test]
fn resampled_intervals_cover_the_truth() {
    use crate::chance::{Chance, Purpose};
    let studies = 300;
    let covered = (0..studies)
        .filter(|&study| {
            let chance = Chance::new(study, 9);
            // Paths whose own share is 0 .. 10 %, evenly: 5 % in the mean.
            let clusters: Vec<_> = (0..60)
                .map(|path| {
                    let share = 0.1 * chance.share(Purpose::Workload, path, 0);
                    let is_hit = |i: &u64| chance.share(Purpose::Loss, path, *i) < share;
                    Cluster {
                        hits: (0..200).filter(is_hit).count() as u64,
                        of: 200,
                    }
                })
                .collect();
            resample(&clusters, 300, study).unwrap().contains(0.05)
        })
        .count();
    // 95 % of 300 is 285; the percentile bootstrap of 60 clusters covers slightly less.
    assert!(covered >= 270, "{covered} of {studies}");
}

#[test]
fn blocks_cut_a_series() {
    let series = [true, false, true, true, false];
    let expected = [
        Cluster { hits: 1, of: 2 },
        Cluster { hits: 2, of: 2 },
        Cluster { hits: 0, of: 1 },
    ];
    assert_eq!(blocks(&series, 2), expected);
}

#[test]
fn summaries_have_exactly_the_documented_fields() {
    let summary = Summary {
        policy: "exact".into(),
        messages: 1000,
        latency_ms: LatencyMs {
            p50: Some(50.5),
            max: Some(99.0),
            ..LatencyMs::default()
        },
        late_share: 0.001,
        late_share_95: Interval {
            low: 0.0005,
            high: 0.002,
        },
        predicted_late_share: Some(0.0011),
        recovery_overhead: 0.04,
        encapsulation_overhead: Some(0.1),
        lost_messages: 0,
        seed: 7,
    };
    let text = serde_json::to_string(&summary).unwrap();
    assert_eq!(
        text,
        "{\"policy\":\"exact\",\"messages\":1000,\"latency_ms\":{\"p50\":50.5,\"p95\":null,\"p99\":null,\"p99_5\":null,\
         \"p99_9\":null,\"max\":99.0},\"late_share\":0.001,\"late_share_95\":[0.0005,0.002],\
         \"predicted_late_share\":0.0011,\"recovery_overhead\":0.04,\"encapsulation_overhead\":0.1,\
         \"lost_messages\":0,\"seed\":7}"
    );
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
}

/// A regression: messages of one path, whose misses come in runs, had the interval of independent ones.
#[test]
fn few_paths_are_cut_into_stretches() {
    for (paths, messages, clusters) in [
        (1, 1000, 20),
        (3, 1000, 21),
        (20, 1000, 20),
        (500, 1000, 500),
        (1, 7, 7),
        (0, 0, 1),
    ] {
        let turns = Turns::new(paths, messages);
        assert_eq!(turns.count(), clusters, "{paths} {messages}");
        let mut sizes = vec![0; turns.count()];
        for number in 0..messages {
            sizes[turns.cluster_of(number)] += 1;
        }
        let spread = sizes.iter().max().unwrap() - sizes.iter().min().unwrap();
        assert!(spread <= 2, "{paths} {messages}: {sizes:?}");
        assert!(turns.cluster_of(u64::MAX) < turns.count());
    }
}
