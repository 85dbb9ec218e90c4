//! The contenders by name: Punctual under each policy, the kernel's TCP, and rivals where they were built in.

mod punctual;

use punctual_lab::arm::{Arm, Tcp};
use punctual_policy::PolicyKind;

pub(super) use self::punctual::Tuning;
use crate::failure::Failure;

/// Punctual with its default policy; others are compared with it.
pub(super) const REFERENCE: &str = "punctual";

/// Policies that are arms under their own names.
const POLICIES: [&str; 5] = ["retransmit", "fixed(1)", "fixed(3)", "pangolin", "hairpin"];

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

/// The names of all arms, in the order of tables.
pub(super) fn names() -> Vec<&'static str> {
    let tcp = Tcp::ALL.iter().map(Arm::name);
    std::iter::once(REFERENCE)
        .chain(POLICIES)
        .chain(tcp)
        .chain(RIVALS)
        .collect()
}

/// A list of names without `all`, which stands for every one.
pub(super) fn expanded(names: &[String]) -> Vec<String> {
    let one = |name: &String| match name.as_str() {
        "all" => self::names().into_iter().map(str::to_owned).collect(),
        _ => vec![name.clone()],
    };
    names.iter().flat_map(one).collect()
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
    if let Some(rival) = rival(name)? {
        return Ok(rival);
    }
    match name.parse() {
        Ok(policy) => Ok(Box::new(punctual::Punctual::new(
            name,
            policy,
            Tuning::default(),
        )?)),
        Err(_) => Err(Failure::bad_input(format_args!(
            "there is no arm {name}: there are all, {}, and any policy",
            names().join(", ")
        ))),
    }
}

#[cfg(feature = "rivals")]
fn rival(name: &str) -> Result<Option<Box<dyn Arm>>, Failure> {
    punctual_rivals::arm(name).map_err(Failure::failed)
}

#[cfg(not(feature = "rivals"))]
fn rival(name: &str) -> Result<Option<Box<dyn Arm>>, Failure> {
    if RIVALS.contains(&name) {
        return Err(Failure::bad_input(format_args!(
            "this program was built without {name}: build it with --features rivals"
        )));
    }
    Ok(None)
}
