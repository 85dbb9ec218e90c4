//! renet over netcode: one reliable, unordered channel.
//!
//! `renetcode` is what renet's own transport wraps; only its sockets are replaced. renet's connection is the same type at both
//! ends.
//!
//! A game calls renet's send step once a tick, and renet then sends an acknowledgement every time, also of acknowledgements. Here
//! the step comes when there is something for it to do: a message is sent, one is due to be sent again, or one has arrived. So
//! renet gets its best latency without a packet every few milliseconds.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ::renet::{ChannelConfig, ConnectionConfig, RenetClient, SendType};
use punctual_lab::arm::{ArmError, Refused, Task};
use renetcode::{
    ClientAuthentication, ConnectToken, NETCODE_KEY_BYTES, NetcodeClient, NetcodeServer,
    ServerAuthentication, ServerConfig, ServerResult,
};

use crate::engine::{Engine, Link, Maker, Rival, Role};
use crate::{DEAD_AFTER, QUEUE_BYTES_MAX, failed};

const CHANNEL: u8 = 0;
const PROTOCOL_ID: u64 = 1;
/// Acknowledgements leave at most this often; in a game, every 16 ms.
const ACK_INTERVAL: Duration = Duration::from_millis(4);
/// netcode's keep-alives and handshake are looked after this often.
const NETCODE_INTERVAL: Duration = Duration::from_millis(50);
/// The first byte of those of renet 2's packets that hold messages is at most this; 4 begins an acknowledgement.
const MESSAGE_PACKET_MAX: u8 = 3;
/// Clients that have not connected by then never do.
const CONNECT_WITHIN_S: u64 = 600;
/// Added to a round trip before a message is sent again: the wait of acknowledgements, and some variation of the path.
const RESEND_MARGIN: Duration = Duration::from_millis(12);

/// The arm.
pub(crate) struct Renet {
    key: [u8; NETCODE_KEY_BYTES],
    /// Both sides count time from here, since tokens expire by it.
    epoch: Instant,
}

impl Renet {
    pub(crate) fn new() -> Self {
        Self {
            key: renetcode::generate_random_bytes(),
            epoch: Instant::now(),
        }
    }
}

impl Rival for Renet {
    type Flow = Flow;

    fn name(&self) -> &'static str {
        "renet"
    }

    fn settings(&self) -> String {
        format!(
            "one reliable unordered channel over netcode with connect tokens; resend time max(1.25 x, {} ms +) the network's \
             round trip (its default is 300 ms on any path); its send step runs at each send, when a message is due again, and \
             to acknowledge messages at most every {} ms (a game: every 16 ms, with a packet each); no limit of bytes a step; \
             timeout {} s",
            RESEND_MARGIN.as_millis(),
            ACK_INTERVAL.as_millis(),
            DEAD_AFTER.as_secs()
        )
    }

    fn maker(&self, task: &Task) -> Result<Maker<'_, Flow>, ArmError> {
        let resend_time = resend_time(task);
        Ok(Box::new(move |link| Flow::new(self, resend_time, link)))
    }
}

/// renet's `resend_time`, which it has constant.
fn resend_time(task: &Task) -> Duration {
    task.rtt.mul_f64(1.25).max(task.rtt + RESEND_MARGIN)
}

fn connection(resend_time: Duration) -> ConnectionConfig {
    let channels = vec![ChannelConfig {
        channel_id: CHANNEL,
        // More than the sender's share: a receiver that runs out of it ends the connection.
        max_memory_usage_bytes: 4 * QUEUE_BYTES_MAX,
        send_type: SendType::ReliableUnordered { resend_time },
    }];
    ConnectionConfig {
        available_bytes_per_tick: u64::MAX,
        server_channels_config: channels.clone(),
        client_channels_config: channels,
    }
}

enum Netcode {
    Server(Box<NetcodeServer>, u64),
    Client(Box<NetcodeClient>),
}

/// A flow.
pub(crate) struct Flow {
    netcode: Netcode,
    connection: RenetClient,
    /// What a fresh channel has room for: less means that something is not acknowledged.
    room: usize,
    last_update: Instant,
    last_send: Instant,
    /// A message, or a part of one, came since the last send.
    owes_ack: bool,
    resend_time: Duration,
    /// When what was sent is due again, unless it is acknowledged by then; one for each send step of the last resend time.
    resends: VecDeque<Instant>,
    outbox: Vec<Vec<u8>>,
    scratch: Vec<u8>,
}

impl Flow {
    fn new(arm: &Renet, resend_time: Duration, link: Link) -> Result<Self, ArmError> {
        let now = Instant::now();
        let current_time = now.saturating_duration_since(arm.epoch);
        let client_id = u64::from(link.flow);
        let netcode = match link.role {
            Role::Server => {
                let config = ServerConfig {
                    current_time,
                    max_clients: 1,
                    protocol_id: PROTOCOL_ID,
                    public_addresses: vec![link.server],
                    authentication: ServerAuthentication::Secure {
                        private_key: arm.key,
                    },
                };
                Netcode::Server(Box::new(NetcodeServer::new(config)), client_id)
            }
            Role::Client => {
                let connect_token = ConnectToken::generate(
                    current_time,
                    PROTOCOL_ID,
                    CONNECT_WITHIN_S,
                    client_id,
                    DEAD_AFTER.as_secs() as i32,
                    vec![link.server],
                    None,
                    &arm.key,
                )
                .map_err(|error| failed("renet", error))?;
                let authentication = ClientAuthentication::Secure { connect_token };
                let client = NetcodeClient::new(current_time, authentication)
                    .map_err(|error| failed("renet", error))?;
                Netcode::Client(Box::new(client))
            }
        };
        let connection = RenetClient::new(connection(resend_time));
        Ok(Self {
            room: connection.channel_available_memory(CHANNEL),
            netcode,
            connection,
            last_update: now,
            last_send: now,
            owes_ack: false,
            resend_time,
            resends: VecDeque::new(),
            outbox: Vec::new(),
            scratch: Vec::new(),
        })
    }

    /// Moves renet's and netcode's clocks on.
    fn update(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.last_update);
        self.last_update = now;
        self.connection.update(passed);
        match &mut self.netcode {
            Netcode::Server(server, id) => {
                server.update(passed);
                match server.update_client(*id) {
                    ServerResult::PacketToSend { payload, .. } => {
                        self.outbox.push(payload.to_vec());
                    }
                    ServerResult::ClientDisconnected { .. } => self.connection.disconnect(),
                    _ => {}
                }
            }
            Netcode::Client(client) => {
                if let Some((packet, _)) = client.update(passed) {
                    self.outbox.push(packet.to_vec());
                }
                if client.is_connected() {
                    self.connection.set_connected();
                } else if client.is_disconnected() {
                    self.connection.disconnect_due_to_transport();
                }
            }
        }
    }

    /// renet's send step. What acknowledgements alone are for that nobody waits for is not sent: renet has some each time, for the acknowledgements that it got, and a step that
    /// was to send messages again which have arrived since would send nothing else.
    fn send_packets(&mut self, now: Instant) {
        let packets = self.connection.get_packets_to_send();
        let holds_messages = packets.iter().any(|packet| is_of_messages(packet));
        if !holds_messages && !self.owes_ack {
            return;
        }
        self.last_send = now;
        self.owes_ack = false;
        for packet in packets {
            let sealed = match &mut self.netcode {
                Netcode::Server(server, id) => server.generate_payload_packet(*id, &packet),
                Netcode::Client(client) => client.generate_payload_packet(&packet),
            };
            if let Ok((_, datagram)) = sealed {
                self.outbox.push(datagram.to_vec());
            }
        }
        if holds_messages {
            self.resends.push_back(now + self.resend_time);
        }
    }

    /// Bytes of messages that are not acknowledged.
    fn waiting(&self) -> usize {
        self.room - self.connection.channel_available_memory(CHANNEL)
    }
}

/// Whether one of renet's packets holds messages or parts of one, and not acknowledgements.
fn is_of_messages(packet: &[u8]) -> bool {
    packet
        .first()
        .is_some_and(|&kind| kind <= MESSAGE_PACKET_MAX)
}

impl Engine for Flow {
    fn is_ready(&self) -> bool {
        self.connection.is_connected()
    }

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        self.update(now);
        self.scratch.clear();
        self.scratch.extend_from_slice(datagram);
        let payload = match &mut self.netcode {
            Netcode::Server(server, _) => match server.process_packet(from, &mut self.scratch) {
                ServerResult::Payload { payload, .. } => Some(payload),
                ServerResult::PacketToSend { payload, .. } => {
                    self.outbox.push(payload.to_vec());
                    None
                }
                ServerResult::ClientConnected { payload, .. } => {
                    self.outbox.push(payload.to_vec());
                    self.connection.set_connected();
                    None
                }
                ServerResult::ClientDisconnected { .. } => {
                    self.connection.disconnect();
                    None
                }
                ServerResult::None => None,
            },
            Netcode::Client(client) => client.process_packet(&mut self.scratch),
        };
        if let Some(payload) = payload {
            self.owes_ack |= is_of_messages(payload);
            self.connection.process_packet(payload);
            if self.waiting() == 0 {
                self.resends.clear();
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.update(now);
        let due = self.resends.partition_point(|&at| at <= now);
        self.resends.drain(..due);
        if due > 0 || self.owes_ack && self.last_send + ACK_INTERVAL <= now {
            self.send_packets(now);
        }
    }

    fn send(&mut self, now: Instant, message: &[u8]) -> Result<(), Refused> {
        if self.waiting() + message.len() > QUEUE_BYTES_MAX {
            return Err(Refused);
        }
        self.update(now);
        self.connection.send_message(CHANNEL, message.to_vec());
        self.send_packets(now);
        Ok(())
    }

    fn poll_messages(&mut self, deliver: &mut dyn FnMut(&[u8])) {
        while let Some(message) = self.connection.receive_message(CHANNEL) {
            deliver(&message);
        }
    }

    fn poll_transmit(&mut self, _: Instant, transmit: &mut dyn FnMut(&[u8])) {
        for datagram in self.outbox.drain(..) {
            transmit(&datagram);
        }
    }

    fn next_timeout(&mut self, _: Instant) -> Option<Instant> {
        let ack = self.owes_ack.then_some(self.last_send + ACK_INTERVAL);
        let resend = self.resends.front().copied();
        let netcode = self.last_update + NETCODE_INTERVAL;
        ack.into_iter().chain(resend).chain([netcode]).min()
    }
}
