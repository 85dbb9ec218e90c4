//! What a reader must know to trust the numbers: where the machine, not the path, delayed or lost packets.

use super::settings::{POLICIES, Settings};
use super::stage::Performance;
use crate::scoreboard::count;

/// Lateness of the relay or the server (p99) from which on it is pointed out. Latencies differ by tens of milliseconds.
const LATENESS_MAX_MS: f64 = 1.0;

/// Remarks, in sentences.
pub(super) fn notes(settings: &Settings, performance: &Performance) -> Vec<String> {
    let mut notes = Vec::new();
    let relay = &performance.relay;
    if let Some(ms) = relay_lateness_ms(performance).filter(|&ms| ms > LATENESS_MAX_MS) {
        notes.push(format!(
            "this machine was too busy to emulate the path exactly: 1 % of packets were passed on {ms:.1} ms late or later; \
             for exact figures stop other work, or take fewer --clients"
        ));
    }
    let server_ms = performance.server.lateness.quantile_ms(0.99);
    if let Some(ms) = server_ms.filter(|&ms| ms > 5.0 * LATENESS_MAX_MS) {
        notes.push(format!(
            "1 % of messages were sent {ms:.1} ms or more after their turn: the sending was less even than it should be"
        ));
    }
    let dropped = dropped_by_machine(performance);
    if dropped > 0 {
        notes.push(format!(
            "{} of {} packets were lost by this machine, not by the path: it was too busy to take them in time",
            count(dropped),
            count(relay.received)
        ));
    }
    if performance.server.missing > 0 {
        notes.push(format!(
            "{} of {} clients could not connect under every policy and got no messages",
            performance.server.missing, settings.clients
        ));
    }
    for (kind, sent) in POLICIES.iter().zip(&performance.server.lanes) {
        if sent.refused > 0 {
            notes.push(format!(
                "{kind}: {} messages were not accepted for sending, and count as lost",
                count(sent.refused)
            ));
        }
        if let Some(why) = sent.why_closed.as_ref().filter(|_| sent.closed > 0) {
            notes.push(format!(
                "{kind}: {} sessions ended before the end ({why})",
                sent.closed
            ));
        }
    }
    if performance.is_interrupted {
        notes.push("interrupted: the figures are of the messages sent until then".to_owned());
    } else if settings.messages() < 10_000 {
        notes.push("so few messages say little about the tail: see the intervals".to_owned());
    }
    notes
}

/// How late the relay passed packets on: 99 % of them were no later.
pub(super) fn relay_lateness_ms(performance: &Performance) -> Option<f64> {
    performance.relay.lateness.quantile_ms(0.99)
}

/// Packets lost between the sockets of this machine.
pub(super) fn dropped_by_machine(performance: &Performance) -> u64 {
    let servers = performance.server.lanes.iter();
    let clients = performance.received.iter();
    let at_servers: u64 = servers.clone().map(|lane| lane.kernel_drops).sum();
    let at_clients: u64 = clients.clone().map(|lane| lane.kernel_drops).sum();
    let sent = servers.map(|lane| lane.datagrams).sum::<u64>()
        + clients.map(|lane| lane.datagrams).sum::<u64>();
    let relay = &performance.relay;
    // At the moment of the end some packets are on their way to the relay.
    let on_their_way = 100;
    let at_relay = sent.saturating_sub(relay.received + on_their_way);
    at_servers + at_clients + at_relay + relay.overflowed + relay.refused
}
