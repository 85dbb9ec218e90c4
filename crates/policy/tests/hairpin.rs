//! The Hairpin-style policy: known answers, how it counts layers, and what following it leads to.
#![cfg(feature = "solve")]

use std::time::Duration;

use punctual_policy::solve::{Problem, solve};
use punctual_policy::{
    Deficit, Hairpin, ParityPrice, Policy, PolicyKind, Situation, Timing, predict,
};

fn built(k: u8) -> Hairpin {
    let hairpin = Hairpin::new(ParityPrice::PUBLISHED);
    assert_eq!(hairpin.build(k), 51 * 15);
    assert_eq!(hairpin.build(k), 0, "built already");
    hairpin
}

/// Repair symbols for 1, 2 .. k missing.
fn repair(hairpin: &Hairpin, k: u8, layers: u16, loss: f32) -> Vec<u16> {
    let sent = |missing: u8| {
        let now = Situation {
            deficit: missing,
            ..Situation::first(k, layers, loss)
        };
        hairpin.decide(&now).symbols - u16::from(missing)
    };
    (1..=k).map(sent).collect()
}

/// Computed beforehand from the published sums over all losses of a flight, in another language.
#[test]
fn known_answers() {
    for (loss, layers, expected) in [
        (0.02, 1, &[2, 2, 3, 3][..]),
        (0.02, 2, &[0, 0, 0, 0]),
        (0.1, 1, &[4, 6, 6, 8, 10]),
        (0.1, 2, &[0, 0, 0, 1, 1]),
        (0.2, 1, &[5, 8, 9, 12, 10, 12, 14, 16, 18, 20]),
        (0.2, 2, &[1, 1, 2, 2, 2, 3, 3, 3, 4, 4]),
        (0.2, 3, &[0; 10]),
    ] {
        let k = expected.len() as u8;
        assert_eq!(
            repair(&built(k), k, layers, loss),
            expected,
            "{loss}, {layers} layers"
        );
    }
}

#[test]
fn loss_is_rounded_to_the_nearest_percent() {
    let hairpin = built(4);
    let at = |loss| repair(&hairpin, 4, 1, loss);
    assert_eq!(at(0.004), [0; 4], "as nothing lost");
    assert_eq!(at(0.024), at(0.02));
    assert_eq!(at(0.026), at(0.03));
    assert_eq!(at(0.9), at(0.5));
    assert_eq!(at(f32::NAN), at(0.5));
}

#[test]
fn layers_come_from_the_time_left() {
    let hairpin = built(4);
    let ms = Duration::from_millis;
    let at = |time_left| Situation {
        timing: Timing {
            time_left,
            rtt: ms(90),
            rtt_deviation: ms(10),
            ..Timing::default()
        },
        ..Situation::first(4, 9, 0.1)
    };
    let counted = |layers| hairpin.decide(&Situation::first(4, layers, 0.1));
    assert_eq!(hairpin.decide(&at(ms(10))), counted(1), "at least one");
    assert_eq!(hairpin.decide(&at(ms(199))), counted(1));
    assert_eq!(hairpin.decide(&at(ms(200))), counted(2));
    assert_eq!(hairpin.decide(&at(Duration::MAX)), counted(15));
    assert_ne!(counted(1), counted(2));
    let late = Situation {
        rounds_left: 0,
        ..at(ms(10))
    };
    assert_eq!(
        hairpin.decide(&late).symbols,
        4,
        "too late: what is missing"
    );
}

#[test]
fn what_it_leads_to_is_what_the_solver_says() {
    for (k, rounds, loss) in [(4, 2, 0.02), (8, 3, 0.2), (1, 1, 0.5), (12, 20, 0.3)] {
        let hairpin = built(k);
        assert_eq!(hairpin.counts(), Deficit::Source);
        let problem = Problem {
            loss,
            source_symbols: k,
            rounds,
            miss_target: 0.5,
        };
        let kind = PolicyKind::Hairpin(hairpin.price());
        let solved = solve(kind, &problem).expect("in range");
        let now = Situation::first(k, rounds, loss as f32);
        let found = predict(&hairpin, &now, loss, &[]);
        assert!(
            (found.symbols - solved.expected_symbols).abs() < 1e-9,
            "{found:?} {solved:?}"
        );
        assert!(
            (found.miss - solved.miss_probability).abs() < 1e-12,
            "{found:?} {solved:?}"
        );
        let told = f64::from(hairpin.expected_symbols(k, rounds, loss as f32));
        assert!(
            rounds > 15 || (told - found.symbols).abs() < 1e-5 * told,
            "{told} {found:?}"
        );
        assert_eq!(solved.actions.len(), usize::from(rounds));
    }
}

#[test]
fn nothing_out_of_range_panics() {
    let hairpin = Hairpin::new(ParityPrice::new(1e-9).expect("in range"));
    for _built in [false, true] {
        for k in [0, 1, 64, 65, 255] {
            for deficit in [0, 1, 64, 255] {
                for rounds in [0, 1, 17, u16::MAX] {
                    for loss in [f32::NAN, -1.0, 0.0, 1e-30, 0.5, 2.0, f32::INFINITY] {
                        let now = Situation {
                            deficit,
                            ..Situation::first(k, rounds, loss)
                        };
                        assert!(hairpin.decide(&now).symbols <= 255);
                        assert!(hairpin.expected_symbols(k, rounds, loss).is_finite());
                    }
                }
            }
        }
        assert!(hairpin.wanted() == 0 || hairpin.wanted() == 1 | 1 << 63);
        hairpin.build_wanted();
    }
}
