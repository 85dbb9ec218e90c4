use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use punctual_policy::PolicyKind;

use super::*;
use crate::simulate::OptionsError;
use crate::stats::Interval;

/// A folder of this test alone; goes away with it.
struct Folder(PathBuf);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("punctual-compare-{}-{number}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).expect("temporary folders can be made");
        for (name, text) in files {
            let file = folder.0.join(name);
            fs::create_dir_all(file.parent().expect("it is in the folder")).expect("as above");
            fs::write(file, text).expect("temporary files can be written");
        }
        folder
    }

    fn recordings(&self) -> Result<Recordings, RecordingsError> {
        Recordings::below(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// 12 s of 40 ms, a row each 15 ms, with this share lost.
fn log(loss: &str) -> String {
    let rows = (0..800).map(|row| format!("{:.3} 5.0 40.0ms {loss}\n", f64::from(row) * 0.015));
    rows.collect()
}

fn plan(files: &[(&str, &str)], policies: &[PolicyKind]) -> Plan {
    let recordings = Folder::new(files)
        .recordings()
        .expect("the traces are fine");
    Plan {
        deadlines_rtt: vec![0.4, 1.2, 3.0],
        on_time_targets: vec![0.99],
        symbols: vec![1, 4],
        messages: 400,
        messages_max: 400,
        ..Plan::new(recordings.used, policies.to_vec())
    }
}

fn play(plan: &Plan, threads: usize) -> Vec<Row> {
    let compared = compare(plan, threads, &|_| true).expect("the plan makes sense");
    assert!(compared.is_complete, "nothing stopped it");
    compared.rows
}

const POLICIES: [PolicyKind; 4] = [
    PolicyKind::Retransmit,
    PolicyKind::Fixed(3),
    PolicyKind::Pangolin,
    PolicyKind::Exact,
];

#[test]
fn the_same_rows_come_whoever_plays_them_and_whatever_was_played_before() {
    let files = [("a.log", &*log("0.05")), ("b.log", &*log("0.00"))];
    let mut plan = plan(&files, &POLICIES);
    let rows = play(&plan, 1);
    assert_eq!(rows.len(), 12);
    assert_eq!(rows, play(&plan, 3));
    plan.recordings.remove(0);
    assert_eq!(rows[6..], play(&plan, 1));
}

#[test]
fn what_is_late_is_told_apart() {
    let plan = plan(&[("a.log", &*log("0.05"))], &POLICIES);
    let rows = play(&plan, 1);
    for row in &rows {
        for policy in &row.policies {
            let parts = policy.not_preventable_share + policy.preventable_late_share;
            assert!((policy.late_share - parts).abs() < 1e-12, "{policy:?}");
            assert_eq!(policy.late_by_cause.hopeless, row.floor_late_share);
            assert!(policy.late_share_95.contains(policy.late_share));
            assert!(policy.late_run_max as f64 <= policy.late_share * 400.0 + 1e-9);
        }
    }
    // One way takes 20 ms. Before that nothing arrives, and it is nobody's fault.
    for policy in &rows[0].policies {
        assert_eq!((policy.late_share, policy.late_run_max), (1.0, 400));
        assert_eq!(policy.not_preventable_share, 1.0);
        assert!(policy.predicted_within_95, "{policy:?}");
    }
    // 48 ms are time for one round: what is lost then was lost for want of symbols.
    let row = &rows[2];
    assert_eq!(
        (row.deadline_rtt, row.deadline_ms, row.symbols),
        (1.2, 48.0, 1)
    );
    let retransmit = &row.policies[0];
    assert!(
        (0.02..0.1).contains(&retransmit.late_share),
        "{retransmit:?}"
    );
    assert_eq!(retransmit.preventable_late_share, retransmit.late_share);
    let fixed = &row.policies[1];
    assert_eq!((fixed.late_share, fixed.late_run_max), (0.0, 0));
    assert!(fixed.recovery_overhead >= 3.0);
    let floor = row.floor_recovery_overhead.expect("most get through");
    assert!((0.02..0.1).contains(&floor), "{floor}");
}

#[test]
fn it_stops_when_told_and_says_how_far_it_is() {
    let plan = plan(&[("a.log", &*log("0.05"))], &POLICIES[..2]);
    let seen = AtomicU64::new(0);
    let stopped = compare(&plan, 2, &|step| {
        assert!(step.messages <= step.of && step.of == 6 * 2 * 400);
        seen.fetch_max(step.messages, Ordering::Relaxed);
        step.messages < 1000
    });
    let nothing = Compared {
        rows: Vec::new(),
        is_complete: false,
    };
    assert_eq!(stopped, Ok(nothing));
    assert!((1000..3000).contains(&seen.into_inner()));
    let last = AtomicU64::new(0);
    let rows = compare(&plan, 1, &|step| {
        last.store(step.messages, Ordering::Relaxed);
        true
    });
    assert_eq!(rows.map(|compared| compared.rows.len()), Ok(6));
    assert_eq!(last.into_inner(), 6 * 2 * 400);
}

/// A regression: Ctrl-C took with it the hours before.
#[test]
fn who_stops_it_keeps_what_was_played_whole() {
    let logs = [("a.log", &*log("0.05")), ("b.log", &*log("0.02"))];
    let plan = plan(&logs, &POLICIES[..1]);
    let all = compare(&plan, 1, &|_| true).expect("the plan makes sense");
    // In the middle of the second recording.
    let stopped = compare(&plan, 1, &|step| step.messages < 8 * 400).expect("the plan makes sense");
    assert!(!stopped.is_complete);
    assert_eq!(stopped.rows, all.rows[..6]);
}

fn rivals(candidate: &str, reference: &str) -> Rivals {
    Rivals {
        candidate: candidate.into(),
        reference: reference.into(),
    }
}

/// A plan of 400 messages, and up to 4,000 where chance leaves a row open between `exact` and `pangolin`.
fn plan_until_told() -> Plan {
    Plan {
        messages_max: 4000,
        rivals: Some(rivals("exact", "pangolin")),
        ..plan(&[("a.log", &*log("0.05"))], &POLICIES[2..])
    }
}

#[test]
fn rows_that_chance_leaves_open_are_played_longer_and_no_others() {
    let plan = plan_until_told();
    let both = plan.rivals.clone().expect("they are set");
    let rows = play(&plan, 2);
    let of = |messages: u64| Plan {
        messages,
        messages_max: messages,
        ..plan.clone()
    };
    let each: Vec<(u64, Vec<Row>)> = [400, 1600, 4000]
        .map(|messages| (messages, play(&of(messages), 2)))
        .into();
    let mut again = 0;
    for (place, row) in rows.iter().enumerate() {
        let (_, last) = (each.iter())
            .map(|(messages, rows)| (messages, &rows[place]))
            .find(|(messages, row)| **messages == 4000 || !both.leave_open(row))
            .expect("the last is taken whatever it is");
        assert_eq!(row, last);
        again += u32::from(row.messages > 400);
    }
    assert!((1..rows.len() as u32).contains(&again), "{again}");
    // Nobody is judged, nothing is open.
    let nobody = Plan {
        rivals: None,
        ..plan
    };
    assert_eq!(play(&nobody, 1), each[0].1);
}

#[test]
fn who_stops_it_in_a_second_go_keeps_the_first() {
    let plan = plan_until_told();
    let first = Plan {
        messages_max: plan.messages,
        ..plan.clone()
    };
    let stopped = compare(&plan, 1, &|step| step.messages_each == 400);
    let stopped = stopped.expect("the plan makes sense");
    assert!(!stopped.is_complete);
    assert_eq!(stopped.rows, play(&first, 1));
}

#[test]
fn folders_are_looked_through_and_what_is_no_trace_is_passed_over() {
    let good = log("0.01");
    let folder = Folder::new(&[
        ("hairpin/wifi/trace1.log", &good),
        ("b.csv", "time_s,rtt_ms\n0,30\n1,\n2,50\n3,30\n"),
        ("README.md", "What these are.\n"),
        ("capacity", "1\n5\n9\n"),
        ("empty", ""),
        ("other.json", "{\"a\": 1}"),
        ("z.log", &good),
    ]);
    let found = folder.recordings().expect("three of them are fine");
    let used: Vec<_> = found
        .used
        .iter()
        .map(|used| (&*used.name, used.part))
        .collect();
    assert_eq!(
        used,
        [
            ("b.csv", Part::Judged),
            ("hairpin/wifi/trace1.log", Part::Tuning),
            ("z.log", Part::Judged)
        ]
    );
    assert_eq!(found.used[0].rtt_median.as_millis(), 30);
    assert_eq!(
        found.passed_over,
        ["README.md", "capacity", "empty", "other.json"]
    );
    let one = Recordings::below(&folder.0.join("b.csv")).expect("a file is a folder of one");
    assert_eq!(one.used[0].name, "b.csv");
    let tuned_on = Recordings::below(&folder.0.join("hairpin")).expect("one is below");
    assert_eq!(
        tuned_on.used[0].part,
        Part::Tuning,
        "whatever folder is named"
    );
}

#[test]
fn what_cannot_be_played_is_told_with_its_place() {
    let refused = |files: &[(&str, &str)]| {
        let error = Folder::new(files).recordings().expect_err("it is refused");
        error.to_string()
    };
    let broken = format!("{}12.1 5.0 fortyms 0.00\n", log("0.01"));
    let error = refused(&[("a.log", &log("0.01")), ("b.log", &broken)]);
    assert!(error.contains("b.log, line 801: expected"), "{error}");
    assert!(refused(&[]).contains("is empty"));
    let error = refused(&[("README.md", "What these are.\n")]);
    assert!(
        error.contains("has no trace with delays among its 1 files"),
        "{error}"
    );
    let error = Recordings::below(Path::new("/no/such/folder")).expect_err("it is not there");
    assert!(
        error
            .to_string()
            .starts_with("/no/such/folder cannot be read")
    );
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let good = plan(&[("a.log", &*log("0.01"))], &POLICIES);
    let refused = |change: fn(&mut Plan), words: &str| {
        let mut plan = good.clone();
        change(&mut plan);
        let error = compare(&plan, 1, &|_| true).expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(|plan| plan.policies.clear(), "at least one policy");
    refused(
        |plan| plan.deadlines_rtt = vec![2.0, f64::NAN],
        "0.1 to 100",
    );
    refused(|plan| plan.deadlines_rtt = vec![0.0], "0.1 to 100");
    refused(|plan| plan.messages = 99, "100 to 1000000");
    refused(|plan| plan.messages_max = 399, "400 to 1000000");
    refused(
        |plan| plan.on_time_targets = vec![0.9; 17],
        "at most 16 targets",
    );
    refused(
        |plan| plan.deadlines_rtt = vec![1.0; 600_000],
        "at most 1000000 rows",
    );
    refused(
        |plan| plan.symbols = vec![65],
        "a.log: a message has 1 to 64",
    );

    let plan = plan(&[("dead.log", &*log("1.00"))], &POLICIES);
    assert_eq!(
        compare(&plan, 2, &|_| true),
        Err(CompareError::Recording {
            name: "dead.log".into(),
            error: OptionsError::Unreachable {
                connected: 0,
                of: 1
            }
        })
    );
}

/// (late, preventable, overhead, predicted, whether that is within)
type Made = (f64, f64, f64, f64, bool);

fn made(part: Part, candidate: Made, reference: Made) -> Row {
    let policy = |name: &str, (late, preventable, overhead, predicted, within): Made| PolicyRow {
        policy: name.into(),
        late_share: late,
        late_share_95: Interval {
            low: late - 0.001,
            high: late + 0.001,
        },
        late_by_cause: CauseShares::default(),
        not_preventable_share: late - preventable,
        preventable_late_share: preventable,
        preventable_late_share_95: Interval {
            low: preventable - 0.001,
            high: preventable + 0.001,
        },
        recovery_overhead: overhead,
        predicted_late_share: Some(predicted),
        predicted_within_95: within,
        late_run_max: 0,
        messages_lost: 0,
        messages_refused: 0,
    };
    Row {
        trace: "made".into(),
        part,
        rtt_median_ms: 40.0,
        deadline_rtt: 2.0,
        deadline_ms: 80.0,
        on_time_target: 0.99,
        symbols: 4,
        messages: 1000,
        floor_late_share: 0.0,
        floor_recovery_overhead: Some(0.01),
        policies: vec![policy("steered", candidate), policy("pangolin", reference)],
    }
}

#[test]
fn a_candidate_is_judged_by_what_is_asked() {
    let rows = [
        // Within the target; a tenth of the cost: 0.0095 + 0.0005 against 0.0995 + 0.0005.
        made(
            Part::Tuning,
            (0.03, 0.01, 0.0195, 0.03, true),
            (0.0, 0.0, 0.1095, 0.0, true),
        ),
        // The reference misses; the candidate less, and above the target. It spends less than the floor, which counts as the floor.
        made(
            Part::Judged,
            (0.02, 0.02, 0.0, 0.01, false),
            (0.03, 0.03, 0.0595, 0.0, true),
        ),
        // 0.2 pp later than the reference: 0.1 too many. The reference spends too little for its cost to count.
        made(
            Part::Judged,
            (0.022, 0.022, 0.02, 0.022, true),
            (0.02, 0.02, 0.02, 0.0, true),
        ),
    ];
    let judgement = Judgement::new(&rows, &rivals("steered", "pangolin")).expect("both are there");
    let [all, tuning, judged] = &judgement.parts[..] else {
        panic!("three parts");
    };
    assert_eq!((all.lateness.rows, all.lateness.rows_held), (3, 2));
    assert_eq!(all.lateness.rows_held_counting_all, 1);
    assert_eq!(all.lateness.rows_missed_beyond_chance, 0);
    assert_eq!(all.lateness.verdict, Verdict::Undecided);
    assert!((all.lateness.excess_max - 0.001).abs() < 1e-12);
    let ratio = |part: &PartJudgement| part.cost.ratio.expect("rows");
    // 0.01 / 0.1 and 0.0005 / 0.05.
    assert!((ratio(tuning) - 0.1).abs() < 1e-9 && (ratio(judged) - 0.01).abs() < 1e-9);
    assert!((ratio(all) - 0.001f64.sqrt()).abs() < 1e-9);
    assert_eq!((all.cost.rows, all.cost.verdict), (2, Verdict::Held));
    assert_eq!(
        all.loss_misses,
        LossMisses {
            rows: 2,
            rows_preventable_less: 1,
            rows_late_less: 1,
            rows_beyond_chance: 2,
            rows_beyond_chance_preventable_less: 1,
            rows_beyond_chance_late_less: 1,
            rows_missed_beyond_chance: 1,
            rows_later_beyond_chance: 1,
            verdict: Verdict::Missed,
        }
    );
    assert_eq!(tuning.loss_misses.verdict, Verdict::Open);
    assert_eq!((all.calibration.rows, all.calibration.rows_within), (3, 2));
    let error = all.calibration.error_mean.expect("rows");
    assert!((error - 0.01 / 3.0).abs() < 1e-12);
    assert_eq!(all.calibration.verdict, Verdict::Missed);
    assert_eq!(tuning.calibration.verdict, Verdict::Held);
    assert_eq!((tuning.traces, judged.traces), (1, 1));

    assert_judged_by_name(&rows);
}

/// Both have to be there; and what is drawn and summed up names them.
fn assert_judged_by_name(rows: &[Row]) {
    assert_eq!(Judgement::new(rows, &rivals("exact", "pangolin")), None);
    assert_eq!(Judgement::new(rows, &rivals("pangolin", "pangolin")), None);
    let overview = Overview::all(rows);
    assert_eq!(overview.len(), 2);
    assert_eq!((overview[0].rows, overview[0].rows_target_met), (3, 1));
    assert_eq!(overview[0].rows_target_met_counting_all, 0);
    assert!((overview[0].recovery_overhead - 0.0395 / 3.0).abs() < 1e-12);
    assert!(
        lines(rows)
            .iter()
            .all(|chart| chart.svg().contains("steered"))
    );
    for scatter in scatters(rows, "steered", "pangolin") {
        assert!(scatter.svg().contains("circle"), "{}", scatter.chart.title);
    }
}

#[test]
fn chance_leaves_a_row_open_where_more_messages_may_turn_an_answer() {
    let both = rivals("steered", "pangolin");
    // Intervals are a tenth of a point to each side; 1 % may be late, and with the candidate a tenth more than with the reference.
    let row = |candidate: f64, reference: f64| {
        let made_of = |late: f64| (late, late, 0.0, late, true);
        made(Part::Judged, made_of(candidate), made_of(reference))
    };
    let is_open = |candidate, reference| both.leave_open(&row(candidate, reference));
    assert!(!is_open(0.005, 0.005), "both are within what may be late");
    assert!(is_open(0.0095, 0.005), "the candidate may be above it");
    assert!(is_open(0.0105, 0.005), "or below");
    assert!(!is_open(0.0115, 0.005), "or is neither");
    assert!(is_open(0.005, 0.0095), "the reference may miss");
    assert!(is_open(0.005, 0.0105), "or not");
    assert!(
        !is_open(0.005, 0.0115),
        "it does, and the candidate is less"
    );
    assert!(
        is_open(0.0145, 0.015),
        "it does, and the candidate may be less"
    );
    assert!(is_open(0.0155, 0.015), "or more");
    assert!(!rivals("exact", "pangolin").leave_open(&row(0.0105, 0.005)));
}

#[test]
fn a_miss_that_chance_explains_is_left_open_and_one_beyond_it_is_a_miss() {
    let verdict = |candidate: f64| {
        let made_of = |late: f64| (late, late, 0.0, late, true);
        let rows = [made(Part::Judged, made_of(candidate), made_of(0.02))];
        let judgement = Judgement::new(&rows, &rivals("steered", "pangolin"));
        judgement.expect("both are there").parts[0]
            .loss_misses
            .verdict
    };
    assert_eq!(verdict(0.0199), Verdict::Held);
    assert_eq!(verdict(0.0201), Verdict::Undecided);
    assert_eq!(verdict(0.0215), Verdict::Missed);
}
