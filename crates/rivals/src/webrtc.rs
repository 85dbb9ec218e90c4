//! A WebRTC data channel, by str0m.
//!
//! What signalling would exchange is known from the start: both sides come from the same [`WebRtc`], which made their
//! certificates, and the ICE credentials of a flow follow from its number. The server is "ice-lite", as servers with a public
//! address are: it learns each client's address from the client's first check.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_lab::arm::{ArmError, Refused, Task};
use str0m::channel::{ChannelConfig, ChannelId, Reliability};
use str0m::crypto::dtls::DtlsCert;
use str0m::crypto::{CryptoProvider, Fingerprint};
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, IceCreds, Input, Output, Rtc, RtcConfig};

use crate::engine::{Engine, Link, Maker, Rival, Role};
use crate::{QUEUE_BYTES_MAX, failed};

/// The channel's SCTP stream, agreed without a message.
const STREAM: u16 = 1;
/// STUN checks are repeated at most this far apart; this many in vain end the connection: 30 x 2 s.
const STUN_RTO_MAX: Duration = Duration::from_secs(2);
const STUN_TRIES: usize = 30;

/// How long a message is tried for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// `maxPacketLifeTime` is the task's deadline.
    Deadline,
    /// Until it arrives.
    Unlimited,
}

/// The arms.
pub(crate) struct WebRtc {
    lifetime: Lifetime,
    crypto: Arc<CryptoProvider>,
    server_certificate: DtlsCert,
    client_certificate: DtlsCert,
}

impl WebRtc {
    /// Makes the certificates.
    ///
    /// # Errors
    /// When they cannot be made.
    pub(crate) fn new(lifetime: Lifetime) -> Result<Self, ArmError> {
        let crypto = Arc::new(str0m::crypto::from_feature_flags());
        let certificate = || {
            crypto
                .dtls_provider
                .generate_certificate()
                .ok_or_else(|| failed(name(lifetime), "no certificate can be made"))
        };
        Ok(Self {
            lifetime,
            server_certificate: certificate()?,
            client_certificate: certificate()?,
            crypto,
        })
    }
}

impl Rival for WebRtc {
    type Flow = Flow;

    fn name(&self) -> &'static str {
        name(self.lifetime)
    }

    fn settings(&self) -> String {
        let lifetime = match self.lifetime {
            Lifetime::Deadline => "maxPacketLifeTime is the deadline",
            Lifetime::Unlimited => "reliable",
        };
        format!(
            "str0m 0.25: one unordered data channel, {lifetime}; ICE over the one path with an ice-lite server, DTLS 1.2; SCTP's \
             least retransmission timeout stays 1 s (RFC 9260; neither WebRTC nor str0m lets it be set); {} KiB may be \
             unacknowledged; ICE gives up after {} checks up to {} s apart",
            QUEUE_BYTES_MAX >> 10,
            STUN_TRIES,
            STUN_RTO_MAX.as_secs()
        )
    }

    fn maker(&self, task: &Task) -> Result<Maker<'_, Flow>, ArmError> {
        let channel = ChannelConfig {
            ordered: false,
            reliability: match self.lifetime {
                Lifetime::Unlimited => Reliability::Reliable,
                Lifetime::Deadline => Reliability::MaxPacketLifetime {
                    lifetime: u16::try_from(task.deadline.as_millis()).unwrap_or(u16::MAX),
                },
            },
            negotiated: Some(STREAM),
            ..ChannelConfig::default()
        };
        Ok(Box::new(move |link| Flow::new(self, channel.clone(), link)))
    }
}

const fn name(lifetime: Lifetime) -> &'static str {
    match lifetime {
        Lifetime::Deadline => "webrtc",
        Lifetime::Unlimited => "webrtc-reliable",
    }
}

/// The credentials of an end of a flow, long enough for ICE (RFC 8445: 4 and 22 characters).
fn credentials(role: Role, flow: u32) -> IceCreds {
    let end = match role {
        Role::Server => 's',
        Role::Client => 'c',
    };
    IceCreds {
        ufrag: format!("{end}{flow:08}"),
        pass: format!("{end}{flow:031}"),
    }
}

fn fingerprint(certificate: &DtlsCert) -> Fingerprint {
    Fingerprint {
        hash_func: "sha-256".to_owned(),
        bytes: certificate.fingerprint(),
    }
}

/// A flow.
pub(crate) struct Flow {
    rtc: Rtc,
    channel: ChannelId,
    local: SocketAddr,
    is_open: bool,
    arrived: Vec<Vec<u8>>,
    outbox: VecDeque<Vec<u8>>,
    timeout: Option<Instant>,
}

impl Flow {
    fn new(arm: &WebRtc, channel: ChannelConfig, link: Link) -> Result<Self, ArmError> {
        let is_client = link.role == Role::Client;
        let (own, peers, peer) = match link.role {
            Role::Server => (
                &arm.server_certificate,
                &arm.client_certificate,
                Role::Client,
            ),
            Role::Client => (
                &arm.client_certificate,
                &arm.server_certificate,
                Role::Server,
            ),
        };
        let failed = |error: &dyn std::error::Error| failed(name(arm.lifetime), error);
        let mut config = RtcConfig::new()
            .clear_codecs()
            .set_crypto_provider(Arc::clone(&arm.crypto))
            .set_dtls_cert(own.clone())
            .set_local_ice_credentials(credentials(link.role, link.flow))
            .set_ice_lite(!is_client)
            .set_sctp_max_buffered_amount(QUEUE_BYTES_MAX);
        config.set_max_stun_rto(STUN_RTO_MAX);
        config.set_max_stun_retransmits(STUN_TRIES);
        let mut rtc = config.build(Instant::now());

        let candidate = |at| Candidate::host(at, "udp").map_err(|error| failed(&error));
        rtc.add_local_candidate(candidate(link.local)?);
        if is_client {
            rtc.add_remote_candidate(candidate(link.server)?);
        }
        let mut direct = rtc.direct_api();
        direct.set_remote_fingerprint(fingerprint(peers));
        direct.set_remote_ice_credentials(credentials(peer, link.flow));
        direct.set_ice_controlling(is_client);
        direct
            .start_dtls(is_client)
            .map_err(|error| failed(&error))?;
        direct.start_sctp(is_client);
        let channel = direct.create_data_channel(channel);
        Ok(Self {
            rtc,
            channel,
            local: link.local,
            is_open: false,
            arrived: Vec::new(),
            outbox: VecDeque::new(),
            timeout: None,
        })
    }

    /// Takes everything out of str0m, as it demands after each input.
    fn settle(&mut self) {
        self.timeout = loop {
            match self.rtc.poll_output() {
                Ok(Output::Timeout(at)) => break Some(at),
                Ok(Output::Transmit(datagram)) => self.outbox.push_back(datagram.contents.into()),
                Ok(Output::Event(event)) => self.note(event),
                Err(_) => {
                    self.rtc.disconnect();
                    break None;
                }
            }
        };
        if !self.rtc.is_alive() {
            self.is_open = false;
            self.timeout = None;
        }
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::ChannelOpen(..) => self.is_open = true,
            Event::ChannelClose(_) => self.is_open = false,
            Event::ChannelData(data) => self.arrived.push(data.data),
            _ => {}
        }
    }
}

impl Engine for Flow {
    fn is_ready(&self) -> bool {
        self.is_open
    }

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        // What is no packet of WebRTC's is no input.
        if let Ok(packet) = Receive::new(Protocol::Udp, from, self.local, datagram) {
            if self.rtc.handle_input(Input::Receive(now, packet)).is_err() {
                self.rtc.disconnect();
            }
            self.settle();
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.rtc.handle_input(Input::Timeout(now)).is_err() {
            self.rtc.disconnect();
        }
        self.settle();
    }

    fn send(&mut self, now: Instant, message: &[u8]) -> Result<(), Refused> {
        // str0m dates what is sent by its last input.
        _ = self.rtc.handle_input(Input::Timeout(now));
        let mut channel = self.rtc.channel(self.channel).ok_or(Refused)?;
        let is_taken = channel.write(true, message);
        self.settle();
        match is_taken {
            Ok(true) => Ok(()),
            _ => Err(Refused),
        }
    }

    fn poll_messages(&mut self, deliver: &mut dyn FnMut(&[u8])) {
        for message in self.arrived.drain(..) {
            deliver(&message);
        }
    }

    fn poll_transmit(&mut self, _: Instant, transmit: &mut dyn FnMut(&[u8])) {
        for datagram in self.outbox.drain(..) {
            transmit(&datagram);
        }
    }

    fn next_timeout(&mut self, _: Instant) -> Option<Instant> {
        self.timeout
    }
}
