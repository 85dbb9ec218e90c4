//! What a kernel counted: `/proc/net/netstat`, `/proc/net/snmp` and `/proc/net/dev` of a namespace.

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
        let devices = namespace.read("/proc/thread-self/net/dev");
        let dropped = not_sent(&devices.unwrap_or_default());
        counts.insert(NOT_SENT.to_owned(), dropped);
        Self(counts)
    }

    /// Packets that this machine dropped, and no network: datagrams for which a receiver had no room, and what its devices did not send.
    pub fn dropped_here(&self) -> u64 {
        self.get("Udp.RcvbufErrors") + self.get(NOT_SENT)
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

/// What devices were given to send, and dropped.
const NOT_SENT: &str = "Dev.TxDropped";

/// Packets that devices of this table dropped instead of sending them.
pub(super) fn not_sent(devices: &str) -> u64 {
    // Eight numbers of what came, then bytes, packets, errors and drops of what was to be sent.
    const DROPS: usize = 8 + 3;
    let numbers = (devices.lines()).filter_map(|line| line.split_once(':'));
    let drops =
        numbers.filter_map(|(_, line)| line.split_whitespace().nth(DROPS)?.parse::<u64>().ok());
    drops.sum()
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
