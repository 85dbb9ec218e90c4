//! What a run is measured by besides its messages: the link, the rivals, all datagrams.

use punctual_proto::StreamId;

use super::super::ProtocolCounts;
use super::super::run::link_result;
use super::super::summary::{MeanMinMax, RivalsResult, RunResult};
use super::{Measured, Single, Stage};
use crate::rival::PACKET_BYTES;
use crate::stats::{Latencies, jain};

/// IP and TCP headers with timestamps, of a rival's packet.
const TCP_IP_HEADER: usize = 52;

impl Stage<'_> {
    /// What belongs to no stream, as it is when the measuring ends.
    pub(super) fn end_measuring(&mut self) {
        let now = self.world.now();
        let window = self.scenario.duration - self.scenario.settle;
        let seconds = window.as_secs_f64();
        let traffic = self.world.traffic();
        let before = self.traffic_before;
        let mut bytes = vec![0; self.ends.len()];
        for tally in &self.tallies {
            for (sum, of_stream) in bytes.iter_mut().zip(tally.bytes_by_session()) {
                *sum += of_stream;
            }
        }
        let sessions: Vec<f64> = (bytes.iter())
            .map(|&bytes| bytes as f64 * 8.0 / seconds)
            .collect();
        let mut waits = Latencies::default();
        let link = self.link.zip(self.scenario.link).map(|(id, spec)| {
            let link = self.world.link_mut(id);
            let queue_mean = link.queue_mean(now);
            waits = link.stats().waits.clone();
            link_result(&spec, link.stats(), queue_mean, window)
        });
        let result = RunResult {
            seed: self.seed,
            sessions_closed: 0,
            wire_bits_per_s: (traffic.sent_bytes - before.sent_bytes) as f64 * 8.0 / seconds,
            wire_packets_per_s: (traffic.sent - before.sent) as f64 / seconds,
            encapsulation_overhead: None,
            sessions_fairness: jain(&sessions),
            link,
            rivals: self.rivals_result(&sessions, seconds),
            sessions_goodput_bits_per_s: MeanMinMax::of(&sessions),
        };
        self.measured = Some(Measured { result, waits });
    }

    fn rivals_result(&self, sessions: &[f64], seconds: f64) -> Option<RivalsResult> {
        if self.rivals.is_empty() {
            return None;
        }
        let stats = self.rivals.iter().map(|id| self.world.rival_stats(*id));
        let stats: Vec<_> = stats.collect();
        let payload = (PACKET_BYTES - TCP_IP_HEADER) as f64 * 8.0;
        let goodput: Vec<f64> = (stats.iter())
            .zip(&self.rivals_before)
            .map(|(stats, before)| (stats.delivered - before) as f64 * payload / seconds)
            .collect();
        let all: Vec<f64> = goodput.iter().chain(sessions).copied().collect();
        let mean = MeanMinMax::of(&goodput).mean;
        Some(RivalsResult {
            flows: goodput.len() as u32,
            fairness: jain(&goodput),
            fairness_with_sessions: jain(&all),
            session_to_rival: MeanMinMax::of(sessions).mean / mean.max(1.0),
            goodput_bits_per_s: MeanMinMax::of(&goodput),
            packets_lost: stats.iter().map(|stats| stats.lost).sum(),
            timeouts: stats.iter().map(|stats| stats.timeouts).sum(),
        })
    }

    /// The numbers of the run.
    pub(super) fn finish(mut self) -> Single {
        let (mut headers, mut payload) = (0, 0);
        for end in &self.ends {
            let endpoint = self.world.endpoint(end.sender);
            for (place, tally) in (0..).zip(&mut self.tallies) {
                if let Some(stats) = endpoint.stream_stats(end.session, StreamId(place)) {
                    tally.add_protocol(&ProtocolCounts::from(&stats));
                }
            }
            if let Some(stats) = endpoint.session_stats(end.session) {
                headers += stats.encapsulation_bytes;
                payload += stats.message_bytes_sent;
            }
        }
        if let [only] = &mut self.tallies[..] {
            only.add_protocol(&ProtocolCounts {
                encapsulation_bytes: headers,
                message_bytes: payload,
                ..ProtocolCounts::default()
            });
        }
        let measured = self.measured.expect("the scenario was played");
        Single {
            seed: self.seed,
            tallies: self.tallies,
            result: RunResult {
                sessions_closed: self.sessions_closed,
                encapsulation_overhead: (payload > 0).then(|| headers as f64 / payload as f64),
                ..measured.result
            },
            waits: measured.waits,
        }
    }
}
