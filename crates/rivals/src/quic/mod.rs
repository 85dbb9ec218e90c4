//! QUIC, by quinn's protocol crate over the sockets of [`crate::flows`].
//!
//! The two arms differ in how a message is carried: `streams.rs` and `datagrams.rs`. The connection is the same (`flow.rs`).

mod datagrams;
mod flow;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use punctual_lab::arm::{ArmError, Task};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, EndpointConfig, IdleTimeout, ServerConfig, TransportConfig,
    VarInt,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use self::datagrams::DatagramCarrier;
use self::flow::{Carrier, Flow};
use self::streams::StreamCarrier;
use crate::engine::{Maker, Rival};
use crate::{DEAD_AFTER, QUEUE_BYTES_MAX, failed};

/// The name in the servers' certificate.
const SERVER_NAME: &str = "localhost";
/// Messages of a flow that may be on their way at a time; each is a stream of its own.
const STREAMS_MAX: u32 = 10_000;
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// A handshake may take this long at a busy server. Timeouts that fire before it are doubled until the handshake ends, so that a
/// loss near its end is repaired late; after the first sample this counts no more.
const INITIAL_RTT_MIN: Duration = Duration::from_millis(100);

/// How messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carriage {
    /// Each in a stream of its own, so that none waits for another.
    Streams,
    /// In datagrams, which nobody repairs.
    Datagrams,
}

/// The arms.
pub(crate) struct Quic {
    carriage: Carriage,
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Quic {
    /// Makes a certificate.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn new(carriage: Carriage) -> Result<Self, ArmError> {
        let made = rcgen::generate_simple_self_signed([SERVER_NAME.to_owned()])
            .map_err(|error| failed(name(carriage), error))?;
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())
            .map_err(|error| failed(name(carriage), error))?;
        Ok(Self {
            carriage,
            certificate: made.cert.der().clone(),
            key,
        })
    }

    fn setup(&self, task: &Task) -> Result<Setup, ArmError> {
        let failed = |error: &dyn std::error::Error| failed(name(self.carriage), error);
        let transport = Arc::new(transport(task));

        let mut roots = RootCertStore::empty();
        roots
            .add(self.certificate.clone())
            .map_err(|error| failed(&error))?;
        let mut client = ClientConfig::with_root_certificates(Arc::new(roots))
            .map_err(|error| failed(&error))?;
        client.transport_config(Arc::clone(&transport));

        let chain = vec![self.certificate.clone()];
        let mut server = ServerConfig::with_single_cert(chain, self.key.clone_key())
            .map_err(|error| failed(&error))?;
        server.transport_config(transport);

        Ok(Setup {
            endpoint: Arc::new(EndpointConfig::default()),
            client,
            server: Arc::new(server),
        })
    }
}

impl Rival for Quic {
    type Flow = Flow;

    fn name(&self) -> &'static str {
        name(self.carriage)
    }

    fn settings(&self) -> String {
        let carriage = match self.carriage {
            Carriage::Streams => {
                "a unidirectional stream a message, so that no message waits for another (quinn's advice for games)"
            }
            Carriage::Datagrams => {
                "messages cut into datagrams (RFC 9221) of the path's largest size, none repaired"
            }
        };
        format!(
            "quinn-proto 0.11: {carriage}; the initial round trip is the network's (at least {} ms), every packet is acknowledged at once (ACK \
             frequency extension), no round robin between streams, cubic, MTU discovery from 1,200 bytes, idle timeout {} s",
            INITIAL_RTT_MIN.as_millis(),
            DEAD_AFTER.as_secs()
        )
    }

    fn maker(&self, task: &Task) -> Result<Maker<'_, Flow>, ArmError> {
        let setup = self.setup(task)?;
        let name = self.name();
        Ok(Box::new(move |link| {
            let carrier: Box<dyn Carrier> = match self.carriage {
                Carriage::Streams => Box::new(StreamCarrier::default()),
                Carriage::Datagrams => Box::new(DatagramCarrier::default()),
            };
            Flow::new(&setup, link, carrier, name)
        }))
    }
}

const fn name(carriage: Carriage) -> &'static str {
    match carriage {
        Carriage::Streams => "quic-streams",
        Carriage::Datagrams => "quic-datagrams",
    }
}

/// What all flows of a side share.
struct Setup {
    endpoint: Arc<EndpointConfig>,
    client: ClientConfig,
    server: Arc<ServerConfig>,
}

/// quinn's documentation of each of these says what it is good for; all else is its default.
fn transport(task: &Task) -> TransportConfig {
    let mut acks = AckFrequencyConfig::default();
    // Otherwise a single packet's acknowledgement waits for 25 ms, and with it the repair of what was before it.
    acks.ack_eliciting_threshold(VarInt::from_u32(0));
    let mut transport = TransportConfig::default();
    transport
        .initial_rtt(task.rtt.max(INITIAL_RTT_MIN))
        .ack_frequency_config(Some(acks))
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(
            DEAD_AFTER.as_millis() as u32,
        ))))
        .keep_alive_interval(Some(KEEP_ALIVE))
        .max_concurrent_uni_streams(VarInt::from_u32(STREAMS_MAX))
        .send_fairness(false)
        .send_window(QUEUE_BYTES_MAX as u64)
        .datagram_send_buffer_size(QUEUE_BYTES_MAX)
        .enable_segmentation_offload(false);
    transport
}

/// A copy, for an interface that wants to own what it is given.
fn owned(datagram: &[u8]) -> BytesMut {
    BytesMut::from(datagram)
}
