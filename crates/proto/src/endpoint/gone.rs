//! Packets of sessions that are not there. A server says so, in fewer bytes than came and without a memory of its own: its clients need not wait for the idle
//! timeout after it has restarted. A client believes it by its token.

use super::routing::Slot;
use super::{Endpoint, Route};
use crate::session::CloseReason;
use crate::time::Instant;
use crate::wire::{ConnectionId, Gone};

impl Endpoint {
    /// A packet came for a session that is not there.
    pub(super) fn tell_gone(&mut self, now: Instant, route: Route, id: ConnectionId) {
        let Some(server) = &self.config.server else {
            return;
        };
        // Another thread's may well be there.
        if id.thread() == self.config.thread && self.admissions.effort_at(now).may_tell_gone() {
            let gone = Gone {
                source: id,
                token: server.key.gone_token(id, route.remote),
            };
            let is_told = self.admissions.reply_with(route, gone.encode().to_vec());
            self.stats.gone += u64::from(is_told);
        }
    }

    /// A server says that it knows nothing of a session: of which one is looked for among all, since it does not know this side's id either.
    pub(super) fn handle_gone(&mut self, now: Instant, route: Route, datagram: &[u8]) {
        let Ok(gone) = Gone::decode(datagram) else {
            self.stats.malformed += 1;
            return;
        };
        let effort = self.admissions.effort_at(now);
        if !effort.may_look_at(self.table.slots()) {
            return;
        }
        let is_its = |slot: &Slot| matches!(slot, Slot::Session(session) if session.is_gone_by(&gone, route.remote));
        let Some(name) = self.table.find(is_its) else {
            self.stats.unknown_session += 1;
            return;
        };
        self.with_session(name, |session, shared| {
            session.end(CloseReason::Gone, shared);
        });
    }
}
