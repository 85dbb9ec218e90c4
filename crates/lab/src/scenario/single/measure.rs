//! What a run is measured by besides its messages: the link, the rivals, all datagrams.

use punctual_proto::StreamId;

use super::super::ProtocolCounts;
use super::super::run::{RunError, link_result};
use super::super::summary::{MeanMinMax, RivalsResult, RunResult};
use super::super::venue::{RivalFigures, Venue};
use super::{Measured, Single, Stage};
use crate::stats::{Latencies, jain};

impl<V: Venue> Stage<'_, V> {
    /// What belongs to no stream, as it is when the measuring ends.
    pub(super) fn end_measuring(&mut self) -> Result<(), RunError<V::Error>> {
        let window = self.scenario.duration - self.scenario.settle;
        let seconds = window.as_secs_f64();
        let traffic = self.venue.traffic().map_err(RunError::Venue)?;
        let before = self.before.traffic;
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
        let link = self.venue.link().map_err(RunError::Venue)?;
        let link = link.zip(self.scenario.link).map(|(figures, spec)| {
            waits = figures.stats.waits.clone();
            link_result(&spec, &figures, window)
        });
        let rivals = self.venue.rivals().map_err(RunError::Venue)?;
        let result = RunResult {
            seed: self.seed,
            sessions_closed: 0,
            wire_bits_per_s: (traffic.sent_bytes - before.sent_bytes) as f64 * 8.0 / seconds,
            wire_packets_per_s: (traffic.sent - before.sent) as f64 / seconds,
            encapsulation_overhead: None,
            sessions_fairness: jain(&sessions),
            link,
            rivals: self.rivals_result(&rivals, &sessions),
            sessions_goodput_bits_per_s: MeanMinMax::of(&sessions),
        };
        self.measured = Some(Measured { result, waits });
        Ok(())
    }

    fn rivals_result(&self, figures: &RivalFigures, sessions: &[f64]) -> Option<RivalsResult> {
        let rivals = self.scenario.rivals?;
        let begins = rivals.start.max(self.scenario.settle);
        let ends = rivals.stop.unwrap_or(self.scenario.duration);
        let there = ends.min(self.scenario.duration).saturating_sub(begins);
        if there.is_zero() {
            return None;
        }
        let is_always_there = there + self.scenario.settle == self.scenario.duration;
        let seconds = there.as_secs_f64();
        let before = &self.before.rivals;
        let goodput: Vec<f64> = (figures.delivered_bytes.iter())
            .zip(&before.delivered_bytes)
            .map(|(bytes, before)| (bytes - before) as f64 * 8.0 / seconds)
            .collect();
        let all: Vec<f64> = goodput.iter().chain(sessions).copied().collect();
        let mean = MeanMinMax::of(&goodput).mean;
        Some(RivalsResult {
            flows: goodput.len() as u32,
            fairness: jain(&goodput),
            fairness_with_sessions: is_always_there.then(|| jain(&all)),
            session_to_rival: is_always_there
                .then(|| MeanMinMax::of(sessions).mean / mean.max(1.0)),
            goodput_bits_per_s: MeanMinMax::of(&goodput),
            packets_lost: figures.packets_lost.saturating_sub(before.packets_lost),
            timeouts: figures.timeouts.saturating_sub(before.timeouts),
        })
    }

    /// What the protocol has counted so far: of each stream, and at last headers and content of whole sessions.
    pub(super) fn protocol_counts(&self) -> Vec<ProtocolCounts> {
        let mut counts = vec![ProtocolCounts::default(); self.tallies.len() + 1];
        for end in &self.ends {
            for (place, of_stream) in (0..).zip(&mut counts[..self.tallies.len()]) {
                let stats = (self.venue).stream_stats(end.sender, end.session, StreamId(place));
                if let Some(stats) = stats {
                    of_stream.add(&ProtocolCounts::from(&stats));
                }
            }
            if let Some(stats) = self.venue.session_stats(end.sender, end.session) {
                counts[self.tallies.len()].add(&ProtocolCounts {
                    encapsulation_bytes: stats.encapsulation_bytes,
                    message_bytes: stats.message_bytes_sent,
                    ..ProtocolCounts::default()
                });
            }
        }
        counts
    }

    /// The numbers of the run.
    pub(super) fn finish(mut self) -> (Single, V) {
        let fates = self.venue.fates();
        for tally in &mut self.tallies {
            tally.find_limits(self.scenario, self.seed, fates);
        }
        let counts = self.protocol_counts();
        let counts = counts.iter().zip(&self.before.protocol);
        let mut counts: Vec<_> = counts.map(|(now, before)| now.since(before)).collect();
        let of_sessions = counts.pop().unwrap_or_default();
        let (headers, payload) = (of_sessions.encapsulation_bytes, of_sessions.message_bytes);
        for (tally, counts) in self.tallies.iter_mut().zip(counts) {
            tally.add_protocol(&counts);
        }
        if let [only] = &mut self.tallies[..] {
            only.add_protocol(&of_sessions);
        }
        let measured = self.measured.expect("the scenario was played");
        let single = Single {
            seed: self.seed,
            tallies: self.tallies,
            result: RunResult {
                sessions_closed: self.server.sessions_closed,
                encapsulation_overhead: (payload > 0).then(|| headers as f64 / payload as f64),
                ..measured.result
            },
            waits: measured.waits,
        };
        (single, self.venue)
    }
}
