//! The contenders by name: Punctual under each policy, the kernel's TCP, and rivals where they were built in.

mod punctual;

use punctual_lab::arm::{Arm, ArmError, Tcp};
use punctual_policy::PolicyKind;
use serde::Serialize;

pub(super) use self::punctual::Tuning;
use crate::failure::Failure;

/// Punctual with its default policy; others are compared with it.
pub(super) const REFERENCE: &str = "punctual";

/// Punctual without redundancy.
const WITHOUT_REDUNDANCY: &str = "retransmit";

/// Policies that are arms under their own names.
const POLICIES: [&str; 5] = [
    WITHOUT_REDUNDANCY,
    "fixed(1)",
    "fixed(3)",
    "pangolin",
    "hairpin",
];

/// Rivals that there are in a program built with the feature `rivals`.
const RIVALS: [&str; 7] = [
    "enet",
    "kcp",
    "quic-streams",
    "quic-datagrams",
    "webrtc",
    "webrtc-reliable",
    "renet",
];

/// Rivals, too, that are programs of their own and may not be installed.
const PROGRAMS: [&str; 2] = [SRT, SRT_FEC];
const SRT: &str = "srt";
/// SRT with redundancy that is set by hand.
pub(super) const SRT_FEC: &str = "srt-fec";

/// The names of all arms, in the order of tables.
pub(super) fn names() -> Vec<&'static str> {
    let tcp = Tcp::ALL.iter().map(Arm::name);
    std::iter::once(REFERENCE)
        .chain(POLICIES)
        .chain(tcp)
        .chain(RIVALS)
        .chain(PROGRAMS)
        .collect()
}

/// Stands for a list of the arms, instead of a contest.
pub(super) const HELP: &str = "help";

/// An arm that can be asked for.
#[derive(Serialize)]
pub(super) struct Listed {
    arm: &'static str,
    /// What it takes to have it; None (null) when it is there.
    missing: Option<String>,
}

/// All arms, in the order of tables.
pub(super) fn list() -> Vec<Listed> {
    let one = |arm| Listed {
        arm,
        missing: rival(arm).err().map(|error| error.to_string()),
    };
    names().into_iter().map(one).collect()
}

/// The list for people.
pub(super) fn list_text() -> String {
    let all = list().into_iter();
    // Why one is missing begins with its name.
    let lines = all.map(|listed| listed.missing.unwrap_or_else(|| listed.arm.to_owned()) + "\n");
    let lines: String = lines.collect();
    format!(
        "{lines}\n{ALL}: every one that is there. Any policy is an arm, too: Punctual with it.\n"
    )
}

/// A list of names without `all`, which stands for every one that is installed.
pub(super) fn expanded(names: &[String]) -> Vec<String> {
    let all = || {
        let names = self::names().into_iter();
        let here = names.filter(|name| !PROGRAMS.contains(name) || rival(name).is_ok());
        here.map(str::to_owned).collect()
    };
    let one = |name: &String| match name.as_str() {
        ALL => all(),
        _ => vec![name.clone()],
    };
    names.iter().flat_map(one).collect()
}

/// Stands for every arm that is installed.
const ALL: &str = "all";

/// Why a list with `all` in it is without some arms; a sentence each.
pub(super) fn left_out(names: &[String]) -> Vec<String> {
    if !names.iter().any(|name| name == ALL) {
        return Vec::new();
    }
    let missing = PROGRAMS.iter().filter_map(|name| rival(name).err());
    missing.map(|error| format!("left out: {error}")).collect()
}

/// The arm that is the same without redundancy: what it sends where nothing is lost is no recovery.
pub(super) fn without_redundancy(name: &str) -> &str {
    match name {
        SRT_FEC => SRT,
        name if is_punctual(name) => WITHOUT_REDUNDANCY,
        name => name,
    }
}

/// The sentence and exit code for an arm's error.
pub(super) fn failed(error: &ArmError) -> Failure {
    match error {
        ArmError::Missing { .. } => Failure::bad_input(error),
        _ => Failure::failed(error),
    }
}

/// The arms of a list of names.
pub(super) fn by_names(names: &[String]) -> Result<Vec<Box<dyn Arm>>, Failure> {
    let arms = expanded(names);
    let arms = arms.iter().map(|name| by_name(name));
    let arms = arms.collect::<Result<Vec<_>, _>>()?;
    for (place, arm) in arms.iter().enumerate() {
        if arms[..place].iter().any(|other| other.name() == arm.name()) {
            return Err(Failure::bad_input(format_args!(
                "the arm {} is named twice",
                arm.name()
            )));
        }
    }
    Ok(arms)
}

/// Whether an arm is Punctual, under whichever policy.
pub(super) fn is_punctual(name: &str) -> bool {
    name == REFERENCE || name.parse::<PolicyKind>().is_ok()
}

/// Punctual under a policy, as an experiment wants it.
pub(super) fn tuned(
    name: &str,
    policy: PolicyKind,
    tuning: Tuning,
) -> Result<Box<dyn Arm>, Failure> {
    Ok(Box::new(punctual::Punctual::new(name, policy, tuning)?))
}

/// The arm of a name.
pub(super) fn by_name(name: &str) -> Result<Box<dyn Arm>, Failure> {
    if name == REFERENCE {
        return Ok(Box::new(punctual::Punctual::new(
            name,
            PolicyKind::default(),
            Tuning::default(),
        )?));
    }
    let mut tcps = Tcp::ALL.iter().chain(&Tcp::OF_TWO_AGES);
    if let Some(tcp) = tcps.find(|tcp| tcp.name() == name) {
        return Ok(Box::new(*tcp));
    }
    if let Some(rival) = rival(name).map_err(|error| failed(&error))? {
        return Ok(rival);
    }
    match name.parse() {
        Ok(policy) => Ok(Box::new(punctual::Punctual::new(
            name,
            policy,
            Tuning::default(),
        )?)),
        Err(_) => Err(Failure::bad_input(format_args!(
            "there is no arm {name}: there are {ALL}, {}, and any policy",
            names().join(", ")
        ))),
    }
}

#[cfg(feature = "rivals")]
fn rival(name: &str) -> Result<Option<Box<dyn Arm>>, ArmError> {
    punctual_rivals::arm(name)
}

#[cfg(not(feature = "rivals"))]
fn rival(name: &str) -> Result<Option<Box<dyn Arm>>, ArmError> {
    if RIVALS.contains(&name) || PROGRAMS.contains(&name) {
        return Err(ArmError::Missing {
            arm: name.to_owned(),
            remedy: "this program was built without it: build it with --features rivals".to_owned(),
        });
    }
    Ok(None)
}
