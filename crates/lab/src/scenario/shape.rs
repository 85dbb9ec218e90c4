//! The traffic of ten games, from numbers.
//!
//! Petlund, Evensen, Halvorsen and Griwodz, "Improving application layer latency for reliable thin-stream game traffic"
//! (NetGames 2008), table 1: of each trace the payload sizes (average, least, greatest) and the packet interarrival times
//! (average, median, least, greatest, 1 % and 99 %). What is here has those numbers and is otherwise made up: the form between
//! the quantiles (`curve.rs`), sizes that mostly lie near their average, and gaps and sizes that do not depend on those before
//! them. The table counts whole milliseconds: 0 means less than that, and is taken for at once.
//!
//! Some rows were recorded as TCP segments, which may hold several messages of the game; here each is one message.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::curve::{Knot, QuantileCurve};
use super::sizes::Sizes;

/// Whose traffic: a row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// Anarchy Online, at the server.
    AnarchyOnline,
    /// World of Warcraft.
    WorldOfWarcraft,
    /// Age of Conan.
    AgeOfConan,
    /// Counter-Strike.
    CounterStrike,
    /// Halo 3 in its intense moments.
    Halo3High,
    /// Halo 3 in its moderate moments.
    Halo3Moderate,
    /// Tony Hawk's Project 8.
    TonyHawk,
    /// Test Drive Unlimited.
    TestDrive,
    /// BZFlag.
    BzFlag,
    /// Skype between two, over TCP.
    Skype,
}

/// A row of the table as it is printed there: sizes in bytes, gaps in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Payload, average.
    pub bytes_mean: f64,
    /// Payload, least.
    pub bytes_min: u32,
    /// Payload, greatest.
    pub bytes_max: u32,
    /// Time between packets, average.
    pub gap_ms_mean: f64,
    /// Median.
    pub gap_ms_p50: f64,
    /// Least.
    pub gap_ms_min: f64,
    /// Greatest.
    pub gap_ms_max: f64,
    /// A hundredth is less.
    pub gap_ms_p1: f64,
    /// A hundredth is more.
    pub gap_ms_p99: f64,
}

/// In the order of the table's columns.
const fn row(bytes: (f64, u32, u32), gaps: (f64, f64, f64, f64, f64, f64)) -> Row {
    Row {
        bytes_mean: bytes.0,
        bytes_min: bytes.1,
        bytes_max: bytes.2,
        gap_ms_mean: gaps.0,
        gap_ms_p50: gaps.1,
        gap_ms_min: gaps.2,
        gap_ms_max: gaps.3,
        gap_ms_p1: gaps.4,
        gap_ms_p99: gaps.5,
    }
}

impl Shape {
    /// All of them, as the table has them.
    pub const ALL: [Self; 10] = [
        Self::AnarchyOnline,
        Self::WorldOfWarcraft,
        Self::AgeOfConan,
        Self::CounterStrike,
        Self::Halo3High,
        Self::Halo3Moderate,
        Self::TonyHawk,
        Self::TestDrive,
        Self::BzFlag,
        Self::Skype,
    ];

    /// The name in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AnarchyOnline => "anarchy-online",
            Self::WorldOfWarcraft => "world-of-warcraft",
            Self::AgeOfConan => "age-of-conan",
            Self::CounterStrike => "counter-strike",
            Self::Halo3High => "halo3-high",
            Self::Halo3Moderate => "halo3-moderate",
            Self::TonyHawk => "tony-hawk",
            Self::TestDrive => "test-drive",
            Self::BzFlag => "bzflag",
            Self::Skype => "skype",
        }
    }

    /// The row of the table.
    pub const fn row(self) -> Row {
        // Bytes: average, min, max. Gaps in ms: average, median, min, max, 1 %, 99 %.
        match self {
            Self::AnarchyOnline => row((98.0, 8, 1333), (632.0, 449.0, 7.0, 17032.0, 83.0, 4195.0)),
            Self::WorldOfWarcraft => {
                row((26.0, 6, 1228), (314.0, 133.0, 0.0, 14855.0, 0.0, 3785.0))
            }
            Self::AgeOfConan => row((80.0, 5, 1460), (86.0, 57.0, 0.0, 1375.0, 24.0, 386.0)),
            Self::CounterStrike => row((36.0, 25, 1342), (124.0, 65.0, 0.0, 66354.0, 34.0, 575.0)),
            Self::Halo3High => row((247.0, 32, 1264), (36.0, 33.0, 0.0, 1403.0, 32.0, 182.0)),
            Self::Halo3Moderate => row((270.0, 32, 280), (67.0, 66.0, 32.0, 716.0, 64.0, 69.0)),
            Self::TonyHawk => row((90.0, 32, 576), (308.0, 163.0, 0.0, 4070.0, 53.0, 2332.0)),
            Self::TestDrive => row((80.0, 34, 104), (40.0, 33.0, 0.0, 298.0, 0.0, 158.0)),
            Self::BzFlag => row((30.0, 4, 1448), (24.0, 0.0, 0.0, 540.0, 0.0, 151.0)),
            Self::Skype => row((236.0, 14, 1267), (34.0, 40.0, 0.0, 1671.0, 4.0, 80.0)),
        }
    }

    /// Times between messages, in milliseconds.
    pub fn gaps_ms(self) -> QuantileCurve {
        let row = self.row();
        // The leans are chosen: both tails thin out away from the median, the upper ones more.
        let knot = |share, value, lean| Knot { share, value, lean };
        let knots = [
            knot(0.0, row.gap_ms_min, 0.8),
            knot(0.01, row.gap_ms_p1, 0.65),
            knot(0.5, row.gap_ms_p50, 0.25),
            knot(0.99, row.gap_ms_p99, 0.2),
            knot(1.0, row.gap_ms_max, 0.5),
        ];
        QuantileCurve::fit(&knots, row.gap_ms_mean).expect("constants of this file, tested")
    }

    /// Bytes of messages.
    pub fn sizes(self) -> Sizes {
        let row = self.row();
        Sizes::spread(row.bytes_min, row.bytes_mean, row.bytes_max)
            .expect("constants of this file, tested")
    }

    /// The share of gaps that are `gap` or less, by the curve (not by drawing). For spans of a millisecond and less it tells how
    /// many messages follow so closely on another that one packet could carry both.
    pub fn share_of_gaps_within(self, gap: Duration) -> f64 {
        self.gaps_ms().share_within(gap.as_secs_f64() * 1e3)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Shape {
    type Err = UnknownShape;

    fn from_str(name: &str) -> Result<Self, UnknownShape> {
        Self::ALL
            .into_iter()
            .find(|shape| shape.name() == name)
            .ok_or(UnknownShape)
    }
}

/// There is no shape of that name; the message lists those that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownShape;

impl fmt::Display for UnknownShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Shape::ALL.map(Shape::name).join(", "))
    }
}

impl std::error::Error for UnknownShape {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::{Chance, Purpose};

    const DRAWS: u64 = 200_000;

    #[test]
    fn names_are_read_back() {
        for shape in Shape::ALL {
            assert_eq!(shape.name().parse(), Ok(shape));
        }
        assert_eq!("quake".parse::<Shape>(), Err(UnknownShape));
        assert!(UnknownShape.to_string().starts_with("anarchy-online, "));
    }

    /// The table's averages, and how far they are from what its other numbers admit: no row is an exception so far.
    #[test]
    fn every_row_admits_its_mean() {
        for shape in Shape::ALL {
            let (row, mean) = (shape.row(), shape.gaps_ms().mean());
            assert!(
                (mean - row.gap_ms_mean).abs() < 1e-6 * row.gap_ms_mean,
                "{shape}: {mean}, not {}",
                row.gap_ms_mean
            );
        }
    }

    #[test]
    fn draws_agree_with_the_table() {
        println!(
            "shape                mean ms (table)      p1   p50    p99    max   bytes (table)"
        );
        for shape in Shape::ALL {
            let (row, curve, sizes) = (shape.row(), shape.gaps_ms(), shape.sizes());
            let chance = Chance::new(1, 0);
            let mut gaps: Vec<f64> = (0..DRAWS)
                .map(|i| curve.value(chance.share(Purpose::Workload, i, 0)))
                .collect();
            gaps.sort_by(f64::total_cmp);
            let n = DRAWS as f64;
            let mean = gaps.iter().sum::<f64>() / n;
            let bytes: Vec<u32> = (0..DRAWS).map(|i| sizes.draw(&chance, i)).collect();
            let bytes_mean = bytes.iter().map(|&b| f64::from(b)).sum::<f64>() / n;
            let at = |share: f64| gaps[(share * n) as usize];
            println!(
                "{shape:18} {mean:10.2} ({:5}) {:7.1} {:5.1} {:6.1} {:6.0} {bytes_mean:7.2} ({})",
                row.gap_ms_mean,
                at(0.01),
                at(0.5),
                at(0.99),
                gaps[gaps.len() - 1],
                row.bytes_mean
            );
            assert!(
                (mean / row.gap_ms_mean - 1.0).abs() < 0.05,
                "{shape}: {mean}"
            );
            // As many draws below each quantile as there should be, to within 4.5 standard errors.
            for (share, value) in [
                (0.01, row.gap_ms_p1),
                (0.5, row.gap_ms_p50),
                (0.99, row.gap_ms_p99),
            ] {
                let (below, within) = (
                    gaps.partition_point(|&gap| gap < value) as f64 / n,
                    gaps.partition_point(|&gap| gap <= value) as f64 / n,
                );
                let error = 4.5 * libm::sqrt(share * (1.0 - share) / n);
                // Where quantiles are equal (0 ms), many draws have that very value.
                assert!(
                    below <= share + error && within >= share - error,
                    "{shape} {share}: {below}..{within}"
                );
            }
            assert!(gaps[0] >= row.gap_ms_min && gaps[gaps.len() - 1] <= row.gap_ms_max);
            assert!(
                (bytes_mean / row.bytes_mean - 1.0).abs() < 0.02,
                "{shape}: {bytes_mean}"
            );
            let bounds = row.bytes_min..=row.bytes_max;
            assert!(bytes.iter().all(|size| bounds.contains(size)), "{shape}");
            // The bounds are reached, nearly.
            let least = *bytes.iter().min().unwrap();
            let greatest = *bytes.iter().max().unwrap();
            let near = f64::from(row.bytes_min) * 0.8 + row.bytes_mean * 0.2;
            assert!(
                f64::from(least) <= near && greatest >= row.bytes_max * 9 / 10,
                "{shape}: {least}..{greatest}"
            );
        }
    }

    #[test]
    fn shares_of_short_gaps_are_those_of_the_draws() {
        let ms = Duration::from_millis(1);
        for shape in Shape::ALL {
            let curve = shape.gaps_ms();
            let chance = Chance::new(2, 0);
            let short = (0..DRAWS)
                .filter(|&i| curve.value(chance.share(Purpose::Workload, i, 0)) <= 1.0)
                .count();
            let (drawn, computed) = (short as f64 / DRAWS as f64, shape.share_of_gaps_within(ms));
            assert!(
                (drawn - computed).abs() < 0.005,
                "{shape}: {drawn}, not {computed}"
            );
        }
        // Half of BZFlag's gaps are below a millisecond by the table alone.
        assert!(Shape::BzFlag.share_of_gaps_within(Duration::ZERO) >= 0.5);
        assert!(Shape::Halo3Moderate.share_of_gaps_within(ms) == 0.0);
    }
}
