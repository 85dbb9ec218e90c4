//! One connection, with the endpoint that it needs to itself: routing by connection id is not needed where the address tells
//! the flow.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use punctual_lab::arm::{ArmError, Refused};
use quinn_proto::{Connection, ConnectionHandle, DatagramEvent, Endpoint, Event, Incoming};

use super::{SERVER_NAME, Setup, owned};
use crate::engine::{Engine, Link, Role};
use crate::failed;

/// How messages are carried by a connection.
pub(super) trait Carrier {
    /// Gives a message to the connection.
    fn send(&mut self, connection: &mut Connection, message: &[u8]) -> Result<(), Refused>;

    /// The connection reports something; whole messages go to `arrived`.
    fn handle_event(
        &mut self,
        connection: &mut Connection,
        event: &Event,
        arrived: &mut Vec<Vec<u8>>,
    );
}

/// A flow.
pub(crate) struct Flow {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    carrier: Box<dyn Carrier>,
    is_ready: bool,
    arrived: Vec<Vec<u8>>,
    /// What the endpoint, and not the connection, has to send.
    responses: Vec<Vec<u8>>,
    buffer: Vec<u8>,
}

impl Flow {
    pub(super) fn new(
        setup: &Setup,
        link: Link,
        carrier: Box<dyn Carrier>,
        name: &str,
    ) -> Result<Self, ArmError> {
        let server = (link.role == Role::Server).then(|| Arc::clone(&setup.server));
        let mut endpoint = Endpoint::new(Arc::clone(&setup.endpoint), server, true, None);
        let connection = match link.role {
            Role::Server => None,
            Role::Client => Some(
                endpoint
                    .connect(
                        Instant::now(),
                        setup.client.clone(),
                        link.server,
                        SERVER_NAME,
                    )
                    .map_err(|error| failed(name, error))?,
            ),
        };
        Ok(Self {
            endpoint,
            connection,
            carrier,
            is_ready: false,
            arrived: Vec::new(),
            responses: Vec::new(),
            buffer: Vec::new(),
        })
    }

    fn accept(&mut self, now: Instant, incoming: Incoming) {
        if self.connection.is_some() {
            self.endpoint.ignore(incoming);
            return;
        }
        self.buffer.clear();
        match self.endpoint.accept(incoming, now, &mut self.buffer, None) {
            Ok(accepted) => self.connection = Some(accepted),
            Err(error) => {
                if let Some(response) = error.response {
                    self.responses.push(self.buffer[..response.size].to_vec());
                }
            }
        }
    }

    /// Passes on between endpoint, connection and carrier what they have to tell each other.
    fn settle(&mut self) {
        let Some((handle, connection)) = &mut self.connection else {
            return;
        };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.is_ready = true,
                Event::ConnectionLost { .. } => self.is_ready = false,
                _ => self
                    .carrier
                    .handle_event(connection, &event, &mut self.arrived),
            }
        }
    }
}

impl Engine for Flow {
    fn is_ready(&self) -> bool {
        self.is_ready
    }

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        self.buffer.clear();
        let event = self
            .endpoint
            .handle(now, from, None, None, owned(datagram), &mut self.buffer);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(now, incoming),
            Some(DatagramEvent::Response(response)) => {
                self.responses.push(self.buffer[..response.size].to_vec());
            }
            None => {}
        }
        self.settle();
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(now);
        }
        self.settle();
    }

    fn send(&mut self, _: Instant, message: &[u8]) -> Result<(), Refused> {
        let (_, connection) = self.connection.as_mut().ok_or(Refused)?;
        self.carrier.send(connection, message)
    }

    fn poll_messages(&mut self, deliver: &mut dyn FnMut(&[u8])) {
        for message in self.arrived.drain(..) {
            deliver(&message);
        }
    }

    fn poll_transmit(&mut self, now: Instant, transmit: &mut dyn FnMut(&[u8])) {
        for response in self.responses.drain(..) {
            transmit(&response);
        }
        let Some((_, connection)) = &mut self.connection else {
            return;
        };
        loop {
            self.buffer.clear();
            let Some(datagram) = connection.poll_transmit(now, 1, &mut self.buffer) else {
                return;
            };
            transmit(&self.buffer[..datagram.size]);
        }
    }

    fn next_timeout(&mut self, _: Instant) -> Option<Instant> {
        self.connection.as_mut()?.1.poll_timeout()
    }
}
