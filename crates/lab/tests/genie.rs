//! No policy beats the genie.

mod support;

use std::sync::Arc;
use std::time::Duration;

use punctual_lab::channel::{ChannelSpec, LossModel, Outages, PathSpec, Reorder};
use punctual_lab::profile::Profile;
use punctual_lab::simulate::{PolicyResult, SimulateOptions, simulate};
use punctual_lab::trace::{PathOptions, Trace};
use punctual_policy::{ParityPrice, PolicyKind};
use support::{ms, path};

const POLICIES: [PolicyKind; 4] = [
    PolicyKind::Exact,
    PolicyKind::Retransmit,
    PolicyKind::Fixed(3),
    PolicyKind::Hairpin(ParityPrice::PUBLISHED),
];

/// All policies over a network, none of which may be late less often than the genie.
fn check(network: PathSpec, deadline: Duration) -> Vec<PolicyResult> {
    let name = network.name.clone();
    let options = SimulateOptions {
        sessions: 30,
        interval: ms(100),
        messages: 3000,
        policies: POLICIES.to_vec(),
        ..SimulateOptions::new(network, deadline)
    };
    let results = simulate(&options, |_| {}).expect("sessions can be opened");
    for PolicyResult {
        summary, floors, ..
    } in &results
    {
        println!(
            "{name}: {} late {} for {}, {floors:?}",
            summary.policy, summary.late_share, summary.recovery_overhead
        );
        assert!(
            floors.late_share <= summary.late_share,
            "{name}: {} beats the genie: {} against {floors:?}",
            summary.policy,
            summary.late_share
        );
    }
    results
}

#[test]
fn no_policy_is_late_less_often_over_made_networks() {
    for (profile, deadline) in [
        (Profile::BurstyWifi, 45),
        (Profile::Starlink, 120),
        (Profile::Lte, 35),
    ] {
        let results = check(profile.path(), ms(deadline));
        assert!(
            results[0].floors.late_share > 0.0,
            "{profile}: the deadline should be too short for some"
        );
    }
}

#[test]
fn no_policy_is_late_less_often_where_everything_goes_wrong() {
    let wrong = path(ms(60), |channel: &mut ChannelSpec| {
        channel.loss = LossModel::Gilbert {
            loss_share: 0.1,
            mean_burst: ms(50),
            loss_in_good: 0.02,
            loss_in_bad: 1.0,
        };
        channel.jitter = ms(3);
        channel.duplicate = 0.05;
        channel.reorder = Reorder {
            share: 0.05,
            extra: ms(7),
        };
        channel.outages = Some(Outages {
            period: Duration::from_secs(3),
            length: ms(150),
            share: 0.5,
        });
    });
    let results = check(wrong, ms(100));
    assert!(results[0].floors.late_share > 0.01);
}

/// Goal: a sender that never adds anything pays the floor.   Method: uniform loss, and time for every repair.
#[test]
fn retransmission_alone_pays_the_least_overhead() {
    let mut lossy = path(ms(60), |_| {});
    Arc::make_mut(&mut lossy.forward).loss = LossModel::Uniform(0.05);
    let results = check(lossy, ms(600));
    let retransmit = &results[1];
    let floor = retransmit
        .floors
        .recovery_overhead
        .expect("not all is lost");
    let above = retransmit.summary.recovery_overhead - floor;
    assert!(above.abs() < 0.002, "{above} above {floor}");
    assert!(results[2].summary.recovery_overhead > floor + 0.1);
}

#[test]
fn no_policy_is_late_less_often_over_recorded_networks() {
    let Some(root) = support::traces() else {
        println!("skipped: no PUNCTUAL_TRACES and no ../shared/traces");
        return;
    };
    let mut seen = 0;
    for folder in ["hairpin/wifi", "hairpin/cell", "starlink_ping", "capacity"] {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
            println!("skipped: {folder} is not there");
            continue;
        };
        let mut files: Vec<_> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        files.sort();
        // What is no recording (licences) is left out; one of each folder is enough here.
        let Some(trace) = files.iter().find_map(|file| Trace::open(file).ok()) else {
            println!("skipped: {folder} has no recording");
            continue;
        };
        let network = trace
            .path(&PathOptions::for_trace(&trace))
            .expect("it was read");
        let deadline = network.median_rtt().mul_f64(1.2);
        check(network, deadline);
        seen += 1;
    }
    println!("{seen} recordings");
}
