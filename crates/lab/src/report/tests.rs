use serde_json::json;

use super::*;
use crate::chance::{Chance, Purpose};
use crate::genie::Floors;
use crate::stats::{Latencies, Report, Summary, wilson};

/// Made-up latencies: a base, some jitter, and a share repaired later.
fn latencies(repaired: f64, repair_ms: u64, lost: f64, seed: u64) -> Latencies {
    let chance = Chance::new(seed, 0);
    let mut latencies = Latencies::default();
    for i in 0..60_000 {
        if chance.share(Purpose::Loss, i, 0) < lost {
            latencies.record_lost();
            continue;
        }
        let jitter = 6.0 * chance.exponential(Purpose::Jitter, i, 0);
        let mut us = ((35.0 + jitter) * 1000.0) as u64;
        let mut round = 1;
        while chance.share(Purpose::Loss, i, round) < repaired {
            us += repair_ms * 1000;
            round += 1;
        }
        latencies.record(us);
    }
    latencies
}

fn summary(policy: &str, latencies: &Latencies, recovery: f64, predicted: Option<f64>) -> Summary {
    let late = latencies.late(150_000);
    Summary {
        policy: policy.into(),
        messages: latencies.messages(),
        latency_ms: latencies.quantiles(),
        late_share: late as f64 / latencies.messages() as f64,
        late_share_95: wilson(late, latencies.messages()),
        predicted_late_share: predicted,
        recovery_overhead: recovery,
        encapsulation_overhead: Some(0.046),
        lost_messages: latencies.lost(),
        seed: 7,
    }
}

fn example() -> (Report, Figures) {
    let policies = [
        ("exact", latencies(0.02, 75, 0.0, 1), 0.0234, Some(0.0004)),
        (
            "pangolin",
            latencies(0.018, 78, 0.0, 2),
            0.041,
            Some(0.0003),
        ),
        (
            "retransmit",
            latencies(0.04, 90, 0.0002, 3),
            0.0205,
            Some(0.0016),
        ),
        ("fixed(1)", latencies(0.004, 150, 0.0, 4), 0.25, None),
    ];
    let report = Report {
        floors: None,
        settings: json!({
            "path": "bursty-wifi", "deadline_ms": 150, "on_time_target": 0.999, "message_bytes": 2048,
            "messages_per_second": 50, "duration_s": 1200, "version": "punctual 0.1.0", "seed": 7,
        }),
        policies: policies
            .iter()
            .map(|(name, l, cost, predicted)| summary(name, l, *cost, *predicted))
            .collect(),
    };
    let line = |name: &str, factor: f64| Series {
        name: name.into(),
        points: (1..=40)
            .map(|i| f64::from(i) / 100.0)
            .map(|p| (p, factor * p / (1.0 - p) + 0.002))
            .collect(),
    };
    let figures = Figures {
        title: "Four policies on bursty-wifi".into(),
        subtitle: "60,000 messages of 2,048 bytes, 150 ms, 99.9 % on time; the same network for each policy".into(),
        command: "punctual lab --path bursty-wifi --deadline 150ms --on-time 99.9% --seed 7".into(),
        deadline_ms: Some(150.0),
        on_time_target: Some(0.999),
        latency: policies.iter().map(|(name, l, ..)| Series { name: (*name).into(), points: l.curve() }).collect(),
        charts_lead: false,
        charts: vec![LineChart {
            title: "Overhead over loss".into(),
            caption: "What a target of 99.9 % costs on paths with uniform loss.".into(),
            x_label: "loss".into(),
            y_label: "recovery overhead".into(),
            x_unit: Unit::Share,
            y_unit: Unit::Share,
            series: vec![line("4 rounds", 1.0), line("2 rounds", 1.7), line("1 round", 4.0)],
            ..LineChart::default()
        }],
        tables: vec![Table {
            title: "Link".into(),
            rows: [["used", "dropped"], ["98 %", "3"]]
                .map(|row| row.map(str::to_owned).to_vec())
                .to_vec(),
        }],
        scatters: vec![Scatter {
            chart: LineChart {
                title: "Row by row".into(),
                x_scale: Scale::Log,
                y_scale: Scale::Log,
                series: vec![line("<tuning>", 1.0), line("judged", 2.0)],
                ..LineChart::default()
            },
            has_diagonal: true,
        }],
        remarks: Vec::new(),
        cards: [None, Some(true), Some(false)]
            .map(|is_kept| Card {
                name: "rows & traces".into(),
                number: "3 of 4".into(),
                is_kept,
                ..Card::default()
            })
            .into(),
        folded: vec![Table {
            title: "Long <one>".into(),
            rows: vec![vec!["a".into()], vec!["1".into()]],
        }],
    };
    (report, figures)
}

#[test]
fn the_page_needs_nothing_else_and_is_well_formed() {
    let (report, figures) = example();
    let page = html(&report, &figures);
    if let Some(path) = std::env::var_os("PUNCTUAL_REPORT") {
        std::fs::write(path, &page).unwrap();
    }
    let without_namespace = page.replace("http://www.w3.org/2000/svg", "");
    for outside in [
        "http:", "https:", "//", "url(", "<script", "<link", "<img", "@import",
    ] {
        assert!(!without_namespace.contains(outside), "{outside}");
    }
    for name in [
        "svg", "figure", "table", "div", "section", "text", "title", "h2", "td", "th", "details",
        "summary",
    ] {
        let opened =
            page.matches(&format!("<{name}>")).count() + page.matches(&format!("<{name} ")).count();
        assert_eq!(
            opened,
            page.matches(&format!("</{name}>")).count(),
            "{name}"
        );
    }
    assert!(!page.contains("NaN") && !page.contains("inf"));
    assert!(page.len() < 300_000, "{}", page.len());
    for shown in [
        "exact",
        "deadline 150 ms",
        "target 99.9 %",
        "99.99 %",
        "--seed 7",
        "promise kept",
        "bursty-wifi",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
}

#[test]
fn text_from_outside_is_escaped() {
    let evil = "<script>alert(\"x\")</script>&'";
    let (mut report, mut figures) = example();
    report.policies[0].policy = evil.into();
    report.settings = json!({ evil: evil });
    figures.title = evil.into();
    figures.subtitle = evil.into();
    figures.command = evil.into();
    figures.latency[0].name = evil.into();
    figures.charts[0].title = evil.into();
    figures.charts[0].caption = evil.into();
    figures.charts[0].x_label = evil.into();
    figures.charts[0].y_label = evil.into();
    figures.charts[0].series[0].name = evil.into();
    figures.tables[0].title = evil.into();
    figures.tables[0].rows[1][0] = evil.into();
    let page = html(&report, &figures);
    assert!(!page.contains("<script") && !page.contains("alert(\"x"));
    assert!(page.contains("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;&#39;"));
    assert_eq!(escape("a\u{7}b"), "a b");
}

#[test]
fn odd_reports_are_drawn_without_panic() {
    let mut report = Report {
        floors: None,
        settings: serde_json::Value::Null,
        policies: Vec::new(),
    };
    let empty = html(&report, &Figures::default());
    assert!(empty.contains("Punctual report"));
    assert_eq!(rows(&report).len(), 1);
    let nothing = Latencies::default();
    let mut odd = summary("odd", &latencies(0.0, 0, 1.0, 1), 0.0, Some(0.0));
    odd.late_share = 1.0;
    report.policies = vec![
        odd,
        Summary {
            late_share: 0.0,
            predicted_late_share: None,
            ..summary("none", &nothing, 0.0, None)
        },
    ];
    report.policies[1].late_share_95 = wilson(0, 0);
    let figures = Figures {
        latency: vec![
            Series {
                name: "odd".into(),
                points: vec![(0.0, 1.0)],
            },
            Series::default(),
        ],
        charts: vec![
            LineChart::default(),
            LineChart {
                series: vec![Series {
                    name: "one".into(),
                    points: vec![(0.0, f64::NAN), (5.0, 5.0), (f64::INFINITY, 0.0)],
                }],
                x_scale: Scale::Log,
                y_scale: Scale::Log,
                ..LineChart::default()
            },
        ],
        ..Figures::default()
    };
    let page = html(&report, &figures);
    assert!(!page.contains("NaN") && !page.contains("=\"inf"), "{page}");
    assert!(rows(&report).concat().contains(&"never".to_owned()));
    for chart in &figures.charts {
        assert!(!chart.text(0, 0).is_empty());
    }
}

/// In the settings, at the end of the page, a warning was read by nobody.
#[test]
fn remarks_stand_above_the_numbers() {
    let (report, mut figures) = example();
    figures.remarks = vec!["busy <machine>".to_owned()];
    let page = html(&report, &figures);
    let place = |text: &str| page.find(text).expect(text);
    assert!(place("busy &lt;machine&gt;") < place("class=\"cards\""));
}

/// One deadline gave each policy a line of one point: a legend, and nothing drawn.
#[test]
fn a_line_of_one_point_is_a_dot() {
    let chart = |y| LineChart {
        y_scale: Scale::Log,
        series: vec![Series {
            name: "exact".to_owned(),
            points: vec![(2.0, y)],
        }],
        ..LineChart::default()
    };
    assert!(chart(0.5).svg().contains("<circle class=\"f0\""));
    let figures = Figures {
        charts: vec![chart(0.0)],
        ..Figures::default()
    };
    let (report, _) = example();
    assert!(html(&report, &figures).contains("all values are 0"));
}

/// More lines than colours: two with the same looked the same.
#[test]
fn no_two_lines_look_alike() {
    let classes: std::collections::BTreeSet<String> = (0..64).map(svg::series_class).collect();
    assert_eq!(classes.len(), 64);
}

#[test]
fn stragglers_do_not_squeeze_the_latency_plot() {
    let (report, mut figures) = example();
    figures.latency[2].points.push((30_000.0, 0.0));
    let page = html(&report, &figures);
    assert!(page.contains(">800</text>") && !page.contains(">1000</text>"));
}

#[test]
fn tables_have_a_row_a_policy() {
    let (report, _) = example();
    let rows = rows(&report);
    assert_eq!(rows.len(), 5);
    assert_eq!((&rows[0][0][..], &rows[1][0][..]), ("policy", "exact"));
    assert_eq!(rows[0][1], "messages");
    assert!(rows[1..].iter().all(|row| row[1] == "60,000"));
}

#[test]
fn charts_are_drawn_as_text() {
    let (_, figures) = example();
    let text = figures.charts[0].text(78, 20);
    println!("{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 90));
    for shown in [
        "Overhead over loss",
        "o 4 rounds",
        "x 2 rounds",
        "+ 1 round",
        "20 %",
    ] {
        assert!(text.contains(shown), "{shown}");
    }
}

#[test]
fn limits_stand_below_the_policies() {
    let (mut report, figures) = example();
    let lines = rows(&report).len();
    assert!(!html(&report, &figures).contains("<td>floor</td>"));
    report.floors = Some(Floors {
        late_share: 0.0005,
        late_share_95: wilson(5, 10_000),
        recovery_overhead: Some(0.0204),
        recovery_overhead_95: None,
    });
    let rows_with = rows(&report);
    assert_eq!(rows_with.len(), lines + 1);
    let floor = rows_with[lines].join("|");
    assert!(floor.starts_with("floor") && floor.contains("0.050 %") && floor.contains("2.04 %"));
    assert!(html(&report, &figures).contains("<td>floor</td>"));
    let value = serde_json::to_value(&report).expect("plain fields");
    assert_eq!(value["floor_late_share"], json!(0.0005));
    assert_eq!(value["floor_recovery_overhead"], json!(0.0204));
    let back: Report = serde_json::from_value(value).expect("it was one");
    assert_eq!(back, report);
    report.floors.as_mut().expect("just set").recovery_overhead = None;
    assert!(rows(&report)[lines].contains(&"-".to_owned()));
}
