//! One library serves all miss targets, and builds what was asked for off the path of a packet.
#![cfg(feature = "solve")]

use punctual_policy::{Library, ParityPrice, ParsePolicyKindError, PolicyKind, Situation};

#[test]
fn kinds_are_read_as_they_are_printed() {
    let kinds = [
        PolicyKind::Retransmit,
        PolicyKind::Fixed(0),
        PolicyKind::Fixed(255),
        PolicyKind::Hairpin(ParityPrice::PUBLISHED),
        PolicyKind::Hairpin(ParityPrice::new(0.003).expect("in range")),
        PolicyKind::Hairpin(ParityPrice::new(1e-7).expect("in range")),
        PolicyKind::Pangolin,
        PolicyKind::Exact,
    ];
    for kind in kinds {
        assert_eq!(kind.to_string().parse(), Ok(kind));
        assert_eq!(Library::new(kind).kind(), kind);
    }
    assert_eq!("fixed:1".parse(), Ok(PolicyKind::Fixed(1)));
    for wrong in [
        "fixed",
        "fixed(",
        "fixed()",
        "fixed(256)",
        "fixed:-1",
        "fixed 1",
    ] {
        assert_eq!(
            wrong.parse::<PolicyKind>(),
            Err(ParsePolicyKindError::RepairCount),
            "{wrong}"
        );
    }
    assert_eq!(
        "hairpin:1e-4".parse(),
        Ok(PolicyKind::Hairpin(ParityPrice::PUBLISHED))
    );
    for wrong in [
        "hairpin(",
        "hairpin()",
        "hairpin(0)",
        "hairpin(-1e-4)",
        "hairpin(1.1)",
        "hairpin(NaN)",
        "hairpin(inf)",
        "hairpin(1e-60)",
        "hairpin0.1",
    ] {
        let parsed = wrong.parse::<PolicyKind>();
        assert_eq!(parsed, Err(ParsePolicyKindError::Price), "{wrong}");
    }
    assert_eq!(
        "Exact".parse::<PolicyKind>(),
        Err(ParsePolicyKindError::UnknownName)
    );
}

#[test]
fn names_are_those_of_the_kind() {
    for (kind, name) in [
        (PolicyKind::Retransmit, "retransmit"),
        (PolicyKind::Fixed(2), "fixed"),
        (PolicyKind::Hairpin(ParityPrice::PUBLISHED), "hairpin"),
        (PolicyKind::Pangolin, "pangolin"),
        (PolicyKind::Exact, "exact"),
    ] {
        assert_eq!(Library::new(kind).policy(0.001).name(), name);
    }
    let now = Situation::first(4, 1, 0.1);
    assert_eq!(
        Library::new(PolicyKind::Fixed(2))
            .policy(0.001)
            .decide(&now)
            .symbols,
        6
    );
}

#[test]
fn what_look_ups_miss_is_built_later() {
    let (stopgap, built) = before_and_after_building(PolicyKind::Exact);
    assert!(built < stopgap, "{built} {stopgap}");
    let hairpin = PolicyKind::Hairpin(ParityPrice::PUBLISHED);
    let (stopgap, built) = before_and_after_building(hairpin);
    assert!(built > 4 && stopgap > 4, "{built} {stopgap}");
}

/// Symbols for four missing in the last of two rounds.
fn before_and_after_building(kind: PolicyKind) -> (u16, u16) {
    let library = Library::new(kind);
    assert!(!library.is_wanting());
    let now = Situation::first(4, 2, 0.02);
    let last = Situation {
        deficit: 4,
        rounds_left: 1,
        draw: u32::MAX,
        ..now
    };
    let stopgap = library.policy(1e-3).decide(&last).symbols;
    assert!(library.is_wanting());
    assert!(library.build_wanted() > 0);
    assert!(!library.is_wanting());
    assert_eq!(library.build_wanted(), 0);
    let built = library.policy(1e-3).decide(&last).symbols;
    assert!(!library.is_wanting());
    (stopgap, built)
}

#[test]
fn prepared_ahead_nothing_is_missed() {
    for kind in [
        PolicyKind::Exact,
        PolicyKind::Pangolin,
        PolicyKind::Hairpin(ParityPrice::PUBLISHED),
        PolicyKind::Retransmit,
    ] {
        let library = Library::new(kind);
        library.prepare(1e-3, [1, 4]);
        for k in [1, 4] {
            library.policy(1e-3).decide(&Situation::first(k, 1, 0.1));
        }
        assert!(!library.is_wanting());
    }
}

#[test]
fn sixteen_targets_are_kept_and_the_nearest_stricter_serves_the_others() {
    let library = Library::new(PolicyKind::Exact);
    let address = |target| std::ptr::from_ref(library.policy(target)).cast::<()>();
    let targets: Vec<f32> = (1..=16_u8).map(|i| f32::from(i) / 100.0).collect();
    let kept: Vec<_> = targets.iter().map(|target| address(*target)).collect();
    for (target, kept) in targets.iter().zip(&kept) {
        assert_eq!(address(*target), *kept);
    }
    assert_eq!(address(0.055), kept[4], "0.05 is the nearest stricter one");
    assert_eq!(address(0.9), kept[15]);
    // A regression: where none was stricter the strictest served, which kept no promise.
    let decade = address(0.001);
    assert!(!kept.contains(&decade));
    assert_eq!(address(0.0013), decade);
    assert_ne!(address(0.0009), decade);
    assert_eq!(address(f32::NAN), address(punctual_policy::MISS_TARGET_MIN));
}

#[test]
fn odd_targets_are_clamped() {
    let library = Library::new(PolicyKind::Pangolin);
    for target in [f32::NAN, -1.0, 0.0, 1.0, f32::INFINITY] {
        assert!(
            library
                .policy(target)
                .decide(&Situation::first(2, 1, 0.1))
                .symbols
                >= 1
        );
    }
}

#[test]
fn look_ups_go_on_while_tables_are_built() {
    let library = Library::new(PolicyKind::Exact);
    let targets = [1e-2, 1e-3];
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for turn in 0..20_000_u32 {
                    let k = 1 + (turn % 8) as u8;
                    let now = Situation {
                        draw: turn << 16,
                        ..Situation::first(k, 2, 0.1)
                    };
                    assert!(
                        library
                            .policy(targets[turn as usize % 2])
                            .decide(&now)
                            .symbols
                            >= u16::from(k)
                    );
                }
            });
        }
        scope.spawn(|| (0..50).map(|_| library.build_wanted()).sum::<usize>());
    });
    library.build_wanted();
    assert!(!library.is_wanting());
}
