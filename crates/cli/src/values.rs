//! What flags accept: text to checked values, with errors that say what is accepted.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use punctual::Delivery;
use punctual_lab::channel::RttSplit;

/// Delivery modes and what they are called.
const DELIVERIES: [(&str, Delivery); 5] = [
    ("unreliable", Delivery::Unreliable),
    ("sequenced", Delivery::UnreliableSequenced),
    ("reliable", Delivery::Reliable),
    ("ordered", Delivery::ReliableOrdered),
    ("latest", Delivery::Latest),
];

/// A delivery mode.
pub(crate) fn delivery(text: &str) -> Result<Delivery, String> {
    let found = DELIVERIES.iter().find(|(name, _)| *name == text);
    found.map(|(_, delivery)| *delivery).ok_or_else(|| {
        let names = DELIVERIES.map(|(name, _)| name);
        format!("expected one of {}", names.join(", "))
    })
}

/// What [`delivery`] calls it.
pub(crate) fn delivery_name(delivery: Delivery) -> &'static str {
    let found = DELIVERIES.iter().find(|(_, mode)| *mode == delivery);
    found.map_or("", |(name, _)| name)
}

/// A whole number in a range. One that ends with `u64::MAX` has no end but the type's.
pub(crate) fn whole<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| match (range.start(), range.end()) {
            (0, &u64::MAX) => "expected a whole number, 0 or more".to_owned(),
            (start, &u64::MAX) => format!("expected a whole number from {start} on"),
            (start, end) => format!("expected a whole number from {start} to {end}"),
        })
    }
}

/// What is named twice counts once.
pub(crate) fn once_each<T: Copy + PartialEq>(named: &[T]) -> Vec<T> {
    let mut all = Vec::new();
    for value in named {
        if !all.contains(value) {
            all.push(*value);
        }
    }
    all
}

/// Where to listen.
pub(crate) fn listen(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse().ok();
    address.ok_or_else(|| {
        "expected an IP address and a port, such as 0.0.0.0:7777 or [::]:7777".to_owned()
    })
}

/// Deadlines in round trips; how long or short they may be is for the comparison to say.
pub(crate) fn round_trips(text: &str) -> Result<f64, String> {
    number(text, |_| true, "round trips, such as 1.5")
}

/// A share from 0 to 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    number(
        text,
        |value| (0.0..=1.0).contains(&value),
        "a share from 0 to 1, such as 0.02",
    )
}

/// A loss: at least 0 and below 1.
pub(crate) fn loss(text: &str) -> Result<f64, String> {
    let fits = |value| (0.0..1.0).contains(&value);
    number(
        text,
        fits,
        "a share of packets, at least 0 and below 1, such as 0.02",
    )
}

/// A target: so far above 0 and below 1 that it is so as an `f32`, in which messages say it.
pub(crate) fn on_time(text: &str) -> Result<f64, String> {
    let fits = |value| (1e-9..=0.999_999_9).contains(&value);
    number(
        text,
        fits,
        "a share of messages from 1e-9 to 0.9999999, such as 0.999",
    )
}

/// A miss target, as the policies take it.
pub(crate) fn miss(text: &str) -> Result<f64, String> {
    let fits = |value| value >= f64::from(punctual_policy::MISS_TARGET_MIN) && value < 1.0;
    number(
        text,
        fits,
        "a share of messages from 1e-9 to below 1, such as 0.001",
    )
}

/// Milliseconds, from 0 to an hour.
pub(crate) fn millis(text: &str) -> Result<Duration, String> {
    let fits = |value| (0.0..=3_600_000.0).contains(&value);
    number(text, fits, "milliseconds from 0 to 3600000").map(|ms| Duration::from_secs_f64(ms / 1e3))
}

/// Seconds, from 0.1 to a day.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let fits = |value| (0.1..=86_400.0).contains(&value);
    number(text, fits, "seconds from 0.1 to 86400").map(Duration::from_secs_f64)
}

/// Milliseconds, from 0.001 to an hour.
pub(crate) fn millis_above_zero(text: &str) -> Result<Duration, String> {
    let fits = |value| (0.001..=3_600_000.0).contains(&value);
    number(text, fits, "milliseconds above 0, up to 3600000")
        .map(|ms| Duration::from_secs_f64(ms / 1e3))
}

/// Megabits a second, in bits a second.
pub(crate) fn megabits(text: &str) -> Result<u64, String> {
    let fits = |value| (0.001..=1_000_000.0).contains(&value);
    number(text, fits, "Mbit/s from 0.001 to 1000000").map(|rate| (rate * 1e6) as u64)
}

/// `even`, `forward`, `backward`, or the share of the round trip that is forward.
pub(crate) fn split(text: &str) -> Result<RttSplit, String> {
    let share = match text {
        "even" => 0.5,
        "forward" => 1.0,
        "backward" => 0.0,
        other => number(other, |_| true, SPLITS)?,
    };
    RttSplit::ratio(share).ok_or_else(|| format!("expected {SPLITS}"))
}

const SPLITS: &str = "even, forward, backward, or the forward share from 0 to 1";

/// How the delay varies around its mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum DelayShape {
    /// Not at all.
    Fixed,
    /// Normal, with this standard deviation each way.
    Normal(Duration),
    /// A base and an exponential part, with this standard deviation each way.
    Gamma(Duration),
}

/// `fixed`, `normal:SD` or `gamma:SD`, in milliseconds.
pub(crate) fn delay_shape(text: &str) -> Result<DelayShape, String> {
    match text.split_once(':') {
        None if text == "fixed" => Ok(DelayShape::Fixed),
        Some(("normal", sd)) => millis_above_zero(sd).map(DelayShape::Normal),
        Some(("gamma", sd)) => millis_above_zero(sd).map(DelayShape::Gamma),
        _ => Err("expected fixed, normal:SD or gamma:SD with SD in milliseconds".to_owned()),
    }
}

/// `FROM..TO` in seconds.
pub(crate) fn blackout(text: &str) -> Result<(Duration, Duration), String> {
    let expected = || "expected FROM..TO in seconds, such as 10..13.5".to_owned();
    let (from, until) = text.split_once("..").ok_or_else(expected)?;
    let seconds = |text: &str| {
        let value = text
            .parse::<f64>()
            .ok()
            .filter(|value| (0.0..=1e7).contains(value));
        value.map(Duration::from_secs_f64).ok_or_else(expected)
    };
    let span = (seconds(from)?, seconds(until)?);
    if span.0 < span.1 {
        Ok(span)
    } else {
        Err(expected())
    }
}

fn number(text: &str, fits: impl Fn(f64) -> bool, expected: &str) -> Result<f64, String> {
    // NaN fits nowhere: every range check above is written so that it fails.
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && fits(value) => Ok(value),
        _ => Err(format!("expected {expected}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused_and_told_what_is_accepted() {
        for text in ["", "NaN", "inf", "-1", "2", "1e400", "0.1x", "é"] {
            for parse in [share, loss, on_time, miss] {
                let error = parse(text).expect_err(text);
                assert!(error.starts_with("expected a share"), "{error}");
            }
        }
        for text in ["", "NaN", "-1", "1e9", "inf"] {
            assert!(millis(text).is_err() && megabits(text).is_err(), "{text}");
        }
        for text in [
            "5", "5..", "..5", "5..3", "3..3", "a..b", "1..NaN", "0..1e300",
        ] {
            assert!(blackout(text).is_err(), "{text}");
        }
        for text in ["odd", "1.5", "-0.1", "NaN"] {
            assert!(split(text).is_err(), "{text}");
        }
        for text in ["normal", "normal:", "gamma:-1", "cubic:3", "normal:NaN"] {
            assert!(delay_shape(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sense_is_accepted() {
        let ms = Duration::from_millis;
        assert_eq!(
            (share("1"), loss("0"), on_time("0.999")),
            (Ok(1.0), Ok(0.0), Ok(0.999))
        );
        assert_eq!(
            (on_time("0.9999999"), on_time("1e-9")),
            (Ok(0.999_999_9), Ok(1e-9))
        );
        assert!(on_time("0.99999999").is_err() && on_time("1").is_err());
        // It was 0 as an `f32`: `send` panicked.
        assert!(on_time("1e-50").is_err() && on_time("0").is_err());
        assert_eq!(
            (miss("1e-9"), millis("2.5")),
            (Ok(1e-9), Ok(Duration::from_micros(2500)))
        );
        assert_eq!(split("forward"), Ok(RttSplit::FORWARD));
        assert_eq!(split("0.25").map(RttSplit::forward_share), Ok(0.25));
        assert_eq!(delay_shape("gamma:7"), Ok(DelayShape::Gamma(ms(7))));
        assert_eq!(blackout("1..2.5"), Ok((ms(1000), ms(2500))));
    }
}
