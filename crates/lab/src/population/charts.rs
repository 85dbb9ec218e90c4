//! The Pangolin paper's figures 2 and 3, of synthetic clients.

use super::{Client, Region, Survey, Surveyed};
use crate::report::{LineChart, Scale, Series, Unit};

impl Survey {
    /// What the paper shows of its clients: mean round trips, their variation, variation against round trip, loss; a line a region.
    pub fn charts(clients: &[Client], seed: u64) -> Vec<LineChart> {
        let regions: Vec<(&str, Self)> = [
            ("North America", Region::NORTH_AMERICA.name),
            ("Europe", Region::EUROPE.name),
        ]
        .into_iter()
        .map(|(title, name)| {
            let there = clients.iter().filter(|client| client.region.name == name);
            (title, Self::of(there, seed))
        })
        .filter(|(_, survey)| !survey.clients.is_empty())
        .collect();
        let lines = |points: &dyn Fn(&Self) -> Vec<(f64, f64)>| {
            let line = |(title, survey): &(&str, Self)| Series {
                name: (*title).to_owned(),
                points: points(survey),
            };
            regions.iter().map(line).collect::<Vec<_>>()
        };
        let distribution =
            |title: &str, x_label: &str, x_unit, of: fn(&Surveyed) -> f64| LineChart {
                title: title.to_owned(),
                caption: "Synthetic clients.".to_owned(),
                x_label: x_label.to_owned(),
                y_label: "share of clients below".to_owned(),
                x_unit,
                y_unit: Unit::Share,
                x_scale: Scale::Log,
                series: lines(&|survey| survey.curve(of)),
                ..LineChart::default()
            };
        vec![
            distribution("Average round trip (figure 2a)", "average round trip", Unit::Millis, |client| client.rtt_mean_ms),
            distribution("Variation of the round trip (figure 2b)", "90 % quantile less 10 % quantile", Unit::Millis, |client| client.variation_ms),
            LineChart {
                title: "Variation against average (figure 2c)".to_owned(),
                caption: "The paper shows a dot for each client; here a line connects the means of groups of clients with similar \
                          round trips."
                    .to_owned(),
                x_label: "average round trip".to_owned(),
                y_label: "variation".to_owned(),
                x_unit: Unit::Millis,
                y_unit: Unit::Millis,
                x_scale: Scale::Log,
                y_scale: Scale::Log,
                series: lines(&|survey| survey.variation_by_rtt()),
                ..LineChart::default()
            },
            distribution("Loss (figure 3)", "share of packets lost, where any was", Unit::Share, |client| client.loss),
        ]
    }

    /// Means of (average round trip, variation) of each twentieth of the clients by round trip.
    fn variation_by_rtt(&self) -> Vec<(f64, f64)> {
        const GROUPS: usize = 20;
        let mut clients = self.clients.clone();
        clients.sort_by(|a, b| a.rtt_mean_ms.total_cmp(&b.rtt_mean_ms));
        let group = |group: &[Surveyed]| {
            let mean =
                |of: fn(&Surveyed) -> f64| group.iter().map(of).sum::<f64>() / group.len() as f64;
            (
                mean(|client| client.rtt_mean_ms),
                mean(|client| client.variation_ms),
            )
        };
        clients
            .chunks(clients.len().div_ceil(GROUPS).max(1))
            .map(group)
            .collect()
    }
}
