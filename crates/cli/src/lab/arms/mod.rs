//! The contenders by name: Punctual under each policy, the kernel's TCP, and rivals where they were built in.

mod punctual;

use punctual_lab::arm::{Arm, Tcp};
use punctual_policy::PolicyKind;

use crate::failure::Failure;

/// Punctual with its default policy; others are compared with it.
pub(super) const REFERENCE: &str = "punctual";

/// Policies that are arms under their own names.
const POLICIES: [&str; 4] = ["retransmit", "fixed(1)", "fixed(3)", "pangolin"];

/// The names of all arms that this program has, in the order of tables.
pub(super) fn names() -> Vec<&'static str> {
    let tcp = Tcp::ALL.iter().map(Arm::name);
    std::iter::once(REFERENCE)
        .chain(POLICIES)
        .chain(tcp)
        .collect()
}

/// The arms of a list of names; `all` stands for every one.
pub(super) fn by_names(names: &[String]) -> Result<Vec<Box<dyn Arm>>, Failure> {
    let mut arms: Vec<Box<dyn Arm>> = Vec::new();
    for name in names {
        if name == "all" {
            for name in self::names() {
                arms.push(by_name(name)?);
            }
        } else {
            arms.push(by_name(name)?);
        }
    }
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

fn by_name(name: &str) -> Result<Box<dyn Arm>, Failure> {
    if name == REFERENCE {
        return Ok(Box::new(punctual::Punctual::new(name, PolicyKind::Exact)?));
    }
    if let Some(tcp) = Tcp::ALL.iter().find(|tcp| tcp.name() == name) {
        return Ok(Box::new(tcp.clone()));
    }
    match name.parse() {
        Ok(policy) => Ok(Box::new(punctual::Punctual::new(name, policy)?)),
        Err(_) => Err(Failure::bad_input(format_args!(
            "there is no arm {name}: there are all, {}, and any policy",
            names().join(", ")
        ))),
    }
}
