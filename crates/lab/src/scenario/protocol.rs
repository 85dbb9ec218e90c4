//! What a scenario says, in the protocol's own words.

use punctual_proto::{
    Delivery, EndpointConfig, Fairness, SendOptions, StreamConfig, StreamStats, ThinStreams,
};

use super::{DeliveryMode, FairnessMeasure, ProtocolCounts, StreamSpec, Thin};

impl From<DeliveryMode> for Delivery {
    fn from(mode: DeliveryMode) -> Self {
        match mode {
            DeliveryMode::Unreliable => Self::Unreliable,
            DeliveryMode::UnreliableSequenced => Self::UnreliableSequenced,
            DeliveryMode::Reliable => Self::Reliable,
            DeliveryMode::ReliableOrdered => Self::ReliableOrdered,
            DeliveryMode::Latest => Self::Latest,
        }
    }
}

/// The stream at `place` in the scenario; that is its number, too.
pub(super) fn stream_config(stream: &StreamSpec, place: u16) -> StreamConfig {
    let fairness = match stream.fairness {
        FairnessMeasure::Bytes => Fairness::Bytes,
        FairnessMeasure::Quality => Fairness::Quality,
    };
    StreamConfig::new(stream.delivery.into())
        .weight(stream.weight)
        .fairness(fairness)
        .number(place)
}

/// Of message `number` of the stream in its session.
pub(super) fn send_options(stream: &StreamSpec, number: u64) -> SendOptions {
    SendOptions {
        within: stream.deadline,
        on_time: stream.on_time,
        when_late: stream.when_late,
        key: stream.key_of(number),
        importance: stream.importance,
        loss_tolerance: stream.loss_tolerance,
        quality: stream.quality(),
        ..SendOptions::default()
    }
}

/// The endpoint with what the scenario says of thin streams.
pub(super) fn with_thin(config: EndpointConfig, thin: Thin) -> EndpointConfig {
    let default = ThinStreams::default();
    let bundle_bytes_max = thin.bundle_bytes_max.map(|bytes| bytes as u16);
    EndpointConfig {
        thin_streams: ThinStreams {
            linear_timeouts: thin.has_linear_timeouts,
            one_later_ack: thin.has_one_later_ack,
            bundling: thin.has_bundling,
            bundle_bytes_max: bundle_bytes_max.unwrap_or(default.bundle_bytes_max),
        },
        ..config
    }
}

impl From<&StreamStats> for ProtocolCounts {
    /// Headers are the session's, not a stream's: they are left out.
    fn from(stats: &StreamStats) -> Self {
        Self {
            messages_promised: stats.promised,
            predicted_misses: stats.predicted_misses,
            source_symbols: stats.source_symbols,
            symbols_sent: stats.symbols_sent,
            encapsulation_bytes: 0,
            message_bytes: 0,
        }
    }
}
