//! What a kernel's TCP counted: `/proc/net/netstat` and `/proc/net/snmp` of a namespace.

use std::collections::BTreeMap;

use crate::emulator::Namespace;

/// Counters by name, such as `TcpExt.TCPLossProbes` and `Tcp.RetransSegs`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelCounts(pub BTreeMap<String, u64>);

impl KernelCounts {
    /// Reads them; what this kernel does not say is missing.
    pub fn read(namespace: &Namespace) -> Self {
        let mut counts = BTreeMap::new();
        for file in ["netstat", "snmp"] {
            let text = namespace.read(&format!("/proc/thread-self/net/{file}"));
            counts.extend(parse(&text.unwrap_or_default()));
        }
        Self(counts)
    }

    /// What has been counted since.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let since = |(name, count): (&String, &u64)| {
            let before = before.0.get(name).copied().unwrap_or(0);
            (name.clone(), count.saturating_sub(before))
        };
        Self(self.0.iter().map(since).collect())
    }

    /// A counter; 0 when this kernel does not have it.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

/// Pairs of lines: names, then numbers, both after the same `Prefix:`.
pub(super) fn parse(text: &str) -> Vec<(String, u64)> {
    let mut counts = Vec::new();
    let mut lines = text.lines();
    while let (Some(names), Some(numbers)) = (lines.next(), lines.next()) {
        let (Some((prefix, names)), Some((_, numbers))) =
            (names.split_once(':'), numbers.split_once(':'))
        else {
            continue;
        };
        for (name, number) in names.split_whitespace().zip(numbers.split_whitespace()) {
            // Some are -1 for "no limit".
            if let Ok(number) = number.parse() {
                counts.push((format!("{prefix}.{name}"), number));
            }
        }
    }
    counts
}
