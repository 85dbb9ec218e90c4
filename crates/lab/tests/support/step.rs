//! A path whose loss changes at once: what each second brings.

use std::sync::Arc;
use std::time::Duration;

use punctual_lab::channel::{
    ChannelSpec, DelayModel, LossModel, LossSide, LossSpan, LossTrace, PathSpec,
};
use punctual_lab::simulate::{MessageFate, SimulateOptions, simulate};

/// Seconds before the step, at the worse loss, and after it.
pub(crate) const CALM_S: u64 = 30;
pub(crate) const BAD_S: u64 = 10;
pub(crate) const AFTER_S: u64 = 15;

/// 30 messages a second.
const INTERVAL: Duration = Duration::from_nanos(33_333_333);
/// Sessions of one run: they share an endpoint's experience when they begin, and nothing later.
const TOGETHER: u64 = 100;

/// What happened over all sessions, by second of the run.
#[derive(Default)]
pub(crate) struct Seconds {
    pub(crate) late: Vec<u64>,
    pub(crate) messages: Vec<u64>,
}

/// What was sent over all sessions in a part of the run, beyond what was needed, as a share of that.
pub(crate) struct Spent {
    pub(crate) in_calm: f64,
    pub(crate) when_bad: f64,
    /// From five seconds after the end of the bad time on.
    pub(crate) after: f64,
}

/// 0.1 % of packets are lost, then 10 % for [`BAD_S`] seconds, then 0.1 %; two rounds fit into the deadline, and 99.9 % are promised.
fn network() -> PathSpec {
    let span = |from_s: u64, until_s: u64, share: f32| LossSpan {
        start_us: from_s * 1_000_000,
        end_us: until_s * 1_000_000,
        share,
        side: LossSide::Forward,
    };
    let (step, back) = (CALM_S, CALM_S + BAD_S);
    let end = back + AFTER_S + 60;
    let spans = vec![
        span(0, step, 0.001),
        span(step, back, 0.1),
        span(back, end, 0.001),
    ];
    let trace = LossTrace::new(spans, end * 1_000_000, 1.0).expect("in order");
    let channel = |loss| ChannelSpec {
        delay: DelayModel::Fixed(Duration::from_millis(30)),
        loss,
        ..ChannelSpec::default()
    };
    let forward = channel(LossModel::Trace(Arc::new(trace.from_the_beginning())));
    PathSpec::new("step", "a test", forward, channel(LossModel::None))
}

fn options(seed: u64, seconds: u64) -> SimulateOptions {
    SimulateOptions {
        symbols: Some(4),
        message_bytes: 1000,
        sessions: TOGETHER as u32,
        interval: INTERVAL,
        messages: seconds * 30 * TOGETHER,
        seed,
        keeps_fates: true,
        ..SimulateOptions::new(network(), Duration::from_millis(150))
    }
}

/// Plays so many hundreds of sessions.
pub(crate) fn play(hundreds: u64) -> (Seconds, Spent) {
    let all = CALM_S + BAD_S + AFTER_S;
    let mut seconds = Seconds {
        late: vec![0; all as usize + 2],
        messages: vec![0; all as usize + 2],
    };
    // Symbols sent, as multiples of a message's, until four moments: a run that ends earlier is the beginning of the others.
    let ends = [CALM_S, CALM_S + BAD_S, CALM_S + BAD_S + 5, all];
    let mut sent = [0.0; 4];
    for seed in 1..=hundreds {
        for (sent, end) in sent.iter_mut().zip(ends) {
            let options = options(seed, end);
            let results = simulate(&options, |_| {}).expect("sessions begin");
            let result = &results[0];
            *sent += (1.0 + result.summary.recovery_overhead) * (end * 30 * TOGETHER) as f64;
            if end < all {
                continue;
            }
            for (number, fate) in (0..).zip(&result.fates) {
                let (turn, message) = (number % TOGETHER, number / TOGETHER);
                let phase = INTERVAL * turn as u32 / TOGETHER as u32;
                let at = INTERVAL * message as u32 + phase + Duration::from_nanos(result.began.0);
                let second = at.as_secs() as usize;
                seconds.messages[second] += 1;
                seconds.late[second] += u64::from(*fate != MessageFate::OnTime);
            }
        }
    }
    let per_second = (hundreds * 30 * TOGETHER) as f64;
    let spent =
        |from: f64, until: f64, length: u64| (until - from) / (per_second * length as f64) - 1.0;
    let spent = Spent {
        in_calm: spent(0.0, sent[0], CALM_S),
        when_bad: spent(sent[0], sent[1], BAD_S),
        after: spent(sent[2], sent[3], AFTER_S - 5),
    };
    (seconds, spent)
}
