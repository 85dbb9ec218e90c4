//! The sessions of a server, and what came through each.

use std::net::SocketAddr;
use std::time::Duration;

use punctual::{CloseCode, Event, Piece, Session, SessionClosed};
use serde_json::{Value, json};

/// A session and its counts.
#[derive(Debug)]
pub(crate) struct Guest {
    session: Session,
    pub(crate) number: u64,
    pub(crate) remote: Option<SocketAddr>,
    /// Who it is by its token, as text; None without one.
    pub(crate) identity: Option<String>,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// Why it is over.
    pub(crate) reason: Option<String>,
}

impl Guest {
    /// Takes the messages that have come; false when there will be no more.
    fn take(&mut self) -> bool {
        loop {
            match self.session.next_event_timeout(Duration::ZERO) {
                Ok(Some(Event::Message(message))) => {
                    self.messages += 1;
                    self.bytes += message.data.len() as u64;
                    self.session.recycle(message);
                }
                Ok(Some(Event::Piece(piece))) => {
                    self.messages += u64::from(piece.is_last());
                    if let Piece::Data { data, .. } = piece {
                        self.bytes += data.len() as u64;
                        self.session.recycle(data);
                    }
                }
                Ok(Some(Event::Closed { why })) | Err(SessionClosed { why }) => {
                    self.reason = Some(why.to_string());
                    return false;
                }
                Ok(Some(_)) => {}
                Ok(None) => return true,
            }
        }
    }

    /// That it has come, for people and for programs.
    pub(crate) fn connected(&self) -> (String, Value) {
        let name = self.name();
        let text = match &self.identity {
            Some(identity) => format!("{name} connected as {identity}"),
            None => format!("{name} connected"),
        };
        let event = json!({
            "event": "connected",
            "session": self.number,
            "remote": name,
            "identity": self.identity,
        });
        (text, event)
    }

    /// Where it is.
    pub(crate) fn name(&self) -> String {
        self.remote
            .map_or_else(|| "unknown".to_owned(), |remote| remote.to_string())
    }
}

/// It ends on a terminal, which control characters would steer.
fn identity_of(session: &Session) -> Option<String> {
    let text = String::from_utf8_lossy(session.identity()).replace(char::is_control, "\u{fffd}");
    (!text.is_empty()).then_some(text)
}

/// All sessions that are open, and the counts of those that were.
#[derive(Debug, Default)]
pub(crate) struct Guests {
    open: Vec<Guest>,
    /// Sessions so far.
    pub(crate) admitted: u64,
    /// Messages of sessions that are over.
    messages_before: u64,
}

impl Guests {
    pub(crate) fn admit(&mut self, session: Session) -> &Guest {
        self.admitted += 1;
        self.open.push(Guest {
            remote: session.remote_addr(),
            identity: identity_of(&session),
            session,
            number: self.admitted,
            messages: 0,
            bytes: 0,
            reason: None,
        });
        &self.open[self.open.len() - 1]
    }

    /// Takes what has come; returns those whose session is over.
    pub(crate) fn serve(&mut self) -> Vec<Guest> {
        let gone: Vec<Guest> = self.open.extract_if(.., |guest| !guest.take()).collect();
        self.messages_before += gone.iter().map(|guest| guest.messages).sum::<u64>();
        gone
    }

    /// Ends all sessions.
    pub(crate) fn dismiss(&mut self, code: CloseCode, reason: &str) -> Vec<Guest> {
        self.open
            .iter()
            .for_each(|guest| guest.session.close(code, reason));
        let mut gone = std::mem::take(&mut self.open);
        for guest in &mut gone {
            guest.take();
            guest.reason = Some(reason.to_owned());
            self.messages_before += guest.messages;
        }
        gone
    }

    pub(crate) fn open(&self) -> &[Guest] {
        &self.open
    }

    /// Messages of all sessions.
    pub(crate) fn messages(&self) -> u64 {
        self.messages_before + self.open.iter().map(|guest| guest.messages).sum::<u64>()
    }
}
