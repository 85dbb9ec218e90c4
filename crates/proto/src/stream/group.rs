//! Promises that streams of several sessions share.

use alloc::collections::BTreeMap;

use super::promise::Promises;

/// A name, of the application's choice, for a promise that streams share: of an endpoint's streams that have it, whichever session they
/// belong to, so many messages together are on time. For one message to many receivers it says whose share it is: all receivers' as one.
///
/// Redundancy then goes to the receivers where it saves most misses. None of them is given more than ten times its share, as far as symbols
/// can prevent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PromiseGroup(pub u64);

/// Groups that an endpoint remembers; then that which was used least lately is forgotten, and begins anew when it is used again.
const GROUPS_MAX: usize = 1024;

/// The promises of an endpoint's groups.
#[derive(Default)]
pub(crate) struct Groups {
    by_name: BTreeMap<PromiseGroup, Group>,
    uses: u64,
}

#[derive(Default)]
struct Group {
    promises: Promises,
    used: u64,
}

impl Groups {
    pub(crate) fn get(&self, group: PromiseGroup) -> Option<&Promises> {
        Some(&self.by_name.get(&group)?.promises)
    }

    /// O(log groups); O(groups) for a new one when there are [`GROUPS_MAX`].
    pub(crate) fn get_mut(&mut self, group: PromiseGroup) -> &mut Promises {
        if self.by_name.len() >= GROUPS_MAX && !self.by_name.contains_key(&group) {
            let oldest = self.by_name.iter().min_by_key(|(_, group)| group.used);
            if let Some(name) = oldest.map(|(name, _)| *name) {
                self.by_name.remove(&name);
            }
        }
        self.uses += 1;
        let entry = self.by_name.entry(group).or_default();
        entry.used = self.uses;
        &mut entry.promises
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_apart_and_bounded() {
        let mut groups = Groups::default();
        let first = PromiseGroup(u64::MAX);
        groups.get_mut(first).steering_mut(0.01);
        for name in 0..5000 {
            assert!(groups.get(PromiseGroup(name)).is_none());
            groups.get_mut(PromiseGroup(name)).steering_mut(0.01);
            // The one that is used stays.
            assert_eq!(groups.get_mut(first).targets(), 1);
        }
        assert_eq!(groups.by_name.len(), GROUPS_MAX);
        assert!(groups.get(PromiseGroup(0)).is_none());
        assert!(groups.get(PromiseGroup(4999)).is_some());
    }
}
