use super::*;

const HERE: Option<f64> = Some(100.0);

#[test]
fn numbers_agree_within_a_tenth_or_the_interval() {
    let interval = |low, high| Some(Interval { low, high });
    for (paper, here_95, expected) in [
        (109.0, None, Verdict::Agrees),
        (112.0, None, Verdict::Differs),
        (150.0, interval(90.0, 160.0), Verdict::Agrees),
        (150.0, interval(90.0, 140.0), Verdict::Differs),
        // Within a tenth though the interval is narrow.
        (105.0, interval(99.0, 101.0), Verdict::Agrees),
    ] {
        let row = Row::compared("latency", Unit::Millis, paper, HERE, here_95);
        assert_eq!(row.verdict, expected, "{paper} {here_95:?}");
    }
    let never = Row::compared("latency", Unit::Millis, 100.0, None, None);
    assert_eq!(never.verdict, Verdict::Differs);
    assert_eq!(never.cells()[2], "never");
}

#[test]
fn reasons_are_only_for_what_differs() {
    let row = |paper| Row::compared("a", Unit::Number, paper, HERE, None).with_reason("why");
    assert_eq!(row(100.0).note, "");
    assert_eq!(row(1.0).note, "why");
    let said = Row::said("b", Unit::Share, 0.2, true).with_note("more");
    let all = Reproduced {
        name: "paper-table-1",
        title: "Numbers".to_owned(),
        setup: String::new(),
        rows: vec![
            row(1.0),
            said,
            Row::shown("c", Unit::Number, Some(2.0), None),
        ],
        remarks: vec!["remark".to_owned()],
        charts: Vec::new(),
    };
    assert_eq!(all.notes(), ["a: why", "b: more", "remark"]);
    assert_eq!(all.count(Verdict::Agrees), 1);
    assert_eq!(all.table().rows.len(), 4);
}

#[cfg(target_os = "linux")]
mod sample {
    use std::time::Duration;

    use crate::arm::NEVER;
    use crate::reproduce::Sample;

    fn sample() -> Sample {
        let client = |client: u32| (0..100).map(|number| 1000 * (client + number)).collect();
        Sample((1..=50).map(client).collect())
    }

    #[test]
    fn drawn_messages_are_the_clients_own_and_once_each() {
        let all = sample();
        let drawn = all.drawn(10, 1);
        assert_eq!(drawn.0, all.drawn(10, 1).0);
        assert_ne!(drawn.0, all.drawn(10, 2).0);
        for (own, some) in all.0.iter().zip(&drawn.0) {
            let mut some = some.clone();
            some.sort_unstable();
            some.dedup();
            assert_eq!(some.len(), 10);
            assert!(some.iter().all(|latency| own.contains(latency)));
        }
        assert_eq!(all.drawn(1000, 1).0[0].len(), 100);
    }

    #[test]
    fn quantiles_and_shares_are_over_all_messages() {
        let mut sample = sample();
        let median = sample.quantile_ms(0.5).unwrap();
        let interval = sample.quantile_ms_95(0.5).unwrap();
        assert!(
            (median - 75.0).abs() < 1.0 && interval.contains(median),
            "{median} {interval:?}"
        );
        let (late, late_95) = sample.later_than(Duration::from_millis(75));
        assert!(
            (late - 0.5).abs() < 0.02 && late_95.contains(late),
            "{late}"
        );
        assert_eq!(sample.of_clients(|client| client < 3).0.len(), 3);
        sample.0.push(vec![NEVER; 4900]);
        assert_eq!(sample.quantile_ms(0.6), None);
    }
}
