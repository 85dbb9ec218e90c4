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
            link_result(&spec, &figures.stats, figures.queue_mean, window)
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
            rivals: self.rivals_result(&rivals, &sessions, seconds),
            sessions_goodput_bits_per_s: MeanMinMax::of(&sessions),
        };
        self.measured = Some(Measured { result, waits });
        Ok(())
    }

    fn rivals_result(
        &self,
        figures: &RivalFigures,
        sessions: &[f64],
        seconds: f64,
    ) -> Option<RivalsResult> {
        if figures.delivered_bytes.is_empty() {
            return None;
        }
        let goodput: Vec<f64> = (figures.delivered_bytes.iter())
            .zip(&self.before.rivals)
            .map(|(bytes, before)| (bytes - before) as f64 * 8.0 / seconds)
            .collect();
        let all: Vec<f64> = goodput.iter().chain(sessions).copied().collect();
        let mean = MeanMinMax::of(&goodput).mean;
        Some(RivalsResult {
            flows: goodput.len() as u32,
            fairness: jain(&goodput),
            fairness_with_sessions: jain(&all),
            session_to_rival: MeanMinMax::of(sessions).mean / mean.max(1.0),
            goodput_bits_per_s: MeanMinMax::of(&goodput),
            packets_lost: figures.packets_lost,
            timeouts: figures.timeouts,
        })
    }

    /// The numbers of the run.
    pub(super) fn finish(mut self) -> (Single, V) {
        let fates = self.venue.fates();
        for tally in &mut self.tallies {
            tally.find_limits(self.scenario, self.seed, fates);
        }
        let (mut headers, mut payload) = (0, 0);
        for end in &self.ends {
            for (place, tally) in (0..).zip(&mut self.tallies) {
                let stats = (self.venue).stream_stats(end.sender, end.session, StreamId(place));
                if let Some(stats) = stats {
                    tally.add_protocol(&ProtocolCounts::from(&stats));
                }
            }
            if let Some(stats) = self.venue.session_stats(end.sender, end.session) {
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
