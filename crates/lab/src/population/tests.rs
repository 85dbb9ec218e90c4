use std::time::Duration;

use super::client::{Axis, rank};
use super::*;

const SEED: u64 = 1;

/// Goal: what reports call the paper's marginals is so. Method: as the paper measured, in virtual time.
#[test]
fn the_papers_statements_hold() {
    let clients = Population::new(PopulationKind::Pangolin, SEED).clients(2500);
    for statement in Statement::all(&clients, SEED) {
        assert!(statement.agrees, "{statement:?}");
    }
}

/// Goal: outages and spells change when packets are lost, not how many.
#[test]
fn the_structure_of_losses_leaves_their_share() {
    let expected = (1.0 - Region::EUROPE.lossless) * Region::EUROPE.loss.mean();
    for structures in [
        Structure::FITTED,
        Structure::OUTAGES,
        Structure::INDEPENDENT,
    ] {
        let population = Population::with_structures(PopulationKind::Europe, structures, SEED);
        let survey = Survey::of(&population.clients(1500), SEED);
        let loss = survey.loss_mean();
        assert!(
            (loss / expected - 1.0).abs() < 0.1,
            "{loss} of {expected}: {structures:?}"
        );
        let has_outages = structures[1].outage_share > 0.0;
        assert_eq!(survey.with_outages > 900, has_outages);
        assert_eq!(survey.with_outages > 0, has_outages);
    }
}

#[test]
fn clients_are_functions_of_their_numbers() {
    let some = Population::new(PopulationKind::Pangolin, 7).clients(50);
    let more = Population::new(PopulationKind::Pangolin, 7).clients(500);
    for (one, other) in some.iter().zip(&more) {
        assert_eq!(format!("{one:?}"), format!("{other:?}"));
    }
    let europeans = more
        .iter()
        .filter(|client| client.region.name == "eu")
        .count();
    assert_eq!(europeans, 150);
    // The regions' clients are those of the regions alone.
    let mut alone = Population::new(PopulationKind::Europe, 7)
        .clients(150)
        .into_iter();
    for client in more.iter().filter(|client| client.region.name == "eu") {
        assert_eq!(
            alone.next().map(|client| client.rtt_mean),
            Some(client.rtt_mean)
        );
    }
    let other = Population::new(PopulationKind::Pangolin, 8).clients(1);
    assert_ne!(other[0].rtt_mean, more[0].rtt_mean);
}

#[test]
fn every_path_can_be_made() {
    for kind in PopulationKind::ALL {
        let population = Population::new(kind, 3);
        assert_eq!(kind.name().parse(), Ok(kind));
        assert!(population.typical().check().is_ok());
        for client in population.clients(3000) {
            assert_eq!(client.path.check(), Ok(()), "{client:?}");
            assert!(client.way_back() * 2 <= client.rtt_mean);
        }
    }
    assert!("mars".parse::<PopulationKind>().is_err());
}

#[test]
fn those_beyond_the_deadline_are_left_out_and_counted() {
    let population = Population::new(PopulationKind::NorthAmerica, SEED);
    let (clients, left_out) = population.clients_within(10_000, Duration::from_secs(1));
    assert_eq!(clients.len() + left_out as usize, 10_000);
    // The paper: 19 of 10,304.
    assert!((12..=25).contains(&left_out), "{left_out}");
}

#[test]
fn quantiles_pass_through_their_points() {
    let quantiles = Quantiles(&[(0.0, 10.0), (0.5, 20.0), (0.9, 100.0)]);
    for (share, value) in [
        (0.0, 10.0),
        (0.5, 20.0),
        (0.9, 100.0),
        (0.99, 100.0),
        (1.0, 100.0),
    ] {
        assert!((quantiles.at(share) - value).abs() < 1e-9, "{share}");
    }
    // Between the last two a power law: half as many above are at a fixed factor.
    let factor = 5f64.powf(2f64.ln() / 5f64.ln());
    assert!((quantiles.at(0.75) / 20.0 - factor).abs() < 1e-9);
    let mean: f64 = (0..1000)
        .map(|i| quantiles.at((f64::from(i) + 0.5) / 1000.0))
        .sum::<f64>()
        / 1000.0;
    assert!((quantiles.mean() - mean).abs() < 0.05);
}

/// Goal: few clients are a fair sample already. Method: no rank of 200 clients is farther than a fiftieth from its place.
#[test]
fn ranks_are_spread_evenly() {
    let chance = Chance::new(SEED, RANKS);
    for axis in [Axis::Rtt, Axis::Variation, Axis::Loss, Axis::Outage] {
        let mut ranks: Vec<f64> = (0..200).map(|place| rank(&chance, place, axis)).collect();
        ranks.sort_by(f64::total_cmp);
        for (place, rank) in ranks.iter().enumerate() {
            let expected = (place as f64 + 0.5) / 200.0;
            assert!(
                (rank - expected).abs() < 0.02,
                "{axis:?}: {rank} for {expected}"
            );
        }
    }
}

/// Goal: clients can be played on a real kernel. Method: a few of them, a few messages over TCP; skipped where no namespaces can be made.
#[cfg(target_os = "linux")]
#[test]
fn clients_can_be_played() {
    use crate::arena::Arena;
    use crate::arm::{Contest, NEVER, Sender, Task, Tcp};

    let population =
        Population::with_structures(PopulationKind::Pangolin, Structure::INDEPENDENT, SEED);
    let (clients, _) = population.clients_within(20, Duration::from_millis(300));
    let interval = Duration::from_millis(200);
    let arena = Arena {
        paths: clients.iter().map(|client| client.path.clone()).collect(),
        link: None,
        mtu: 1500,
        is_traced: false,
        seed: SEED,
        contest: Contest {
            task: Task {
                sender: Sender::Server,
                message_bytes: 2048,
                interval,
                deadline: Duration::from_secs(1),
                on_time: 0.999,
                rtt: Duration::from_millis(100),
            },
            messages: 5,
            connect_max: Duration::from_secs(5),
            drain: Duration::from_secs(1),
            seed: SEED,
        },
    };
    let run = match arena.run(&[Box::new(Tcp::ALL[0])], |_| true) {
        Err(error) if error.is_unavailable() => {
            println!("skipped: {error}");
            return;
        }
        run => run.expect("there is a network"),
    };
    for (client, latencies) in clients.iter().zip(&run.arms[0].played.latencies_us) {
        let soonest = latencies.iter().min().copied().unwrap_or(NEVER);
        // No way out is shorter than half of the least round trip.
        assert!(
            soonest >= client.way_back().as_micros() as u32,
            "{client:?}"
        );
        assert_ne!(soonest, NEVER, "{client:?}");
    }
}
