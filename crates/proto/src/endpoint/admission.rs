//! Newcomers: what a HELLO costs, and how many may be half-way in at once.
//!
//! Nothing is kept for an address before it has sent a valid HELLO; what is kept then is bounded in all and for each address,
//! and goes after five seconds. Once many are half-open, for the room that there is, or many HELLOs were opened within a second, a cookie is asked for before anything is
//! kept or computed. When no place is left a newcomer may have the oldest of whoever has most. No answer is larger than the HELLO that it answers (1,200 bytes).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use core::time::Duration;

use super::effort::Effort;
use super::routing::Slot;
use super::{Ecn, Endpoint, Route, Transmit};
use crate::handshake::{Admission, Parameters, ServerHandshake, read_hello};
use crate::limits::{HALF_OPEN_MAX, HALF_OPEN_PART_OF_FREE, HALF_OPEN_PER_ADDRESS, HALF_OPEN_TIME};
use crate::session::{Role, Session};
use crate::time::Instant;
use crate::wire::{ConnectionId, HandshakePacket, Hello, Refusal, Refuse, Retry};

/// Whoever is there has answered for an ACCEPT within this.
const ANSWER_TIME: Duration = Duration::from_secs(1);
/// Answers that wait to be sent. More than this in one batch of datagrams is a flood, and may be dropped.
const REPLIES_MAX: usize = 256;

/// One handshake of one client: its address, its connection id, and the beginning of its ephemeral key, so that neither a
/// spoofed HELLO nor a client that began anew gets the answer of another handshake.
type Newcomer = (SocketAddr, ConnectionId, [u8; 16]);

fn newcomer(from: SocketAddr, hello: &Hello<'_>) -> Newcomer {
    (
        from,
        hello.source,
        hello.noise.first_chunk().copied().unwrap_or_default(),
    )
}

/// A session whose client has not yet shown that it received the ACCEPT.
struct HalfOpen {
    id: ConnectionId,
    accept: Vec<u8>,
    expires_at: Instant,
}

/// Who is half-way in.
#[derive(Default)]
pub(super) struct Admissions {
    /// A repeated HELLO gets the same answer.
    half_open: BTreeMap<Newcomer, HalfOpen>,
    by_id: BTreeMap<ConnectionId, Newcomer>,
    /// By [`site`], the oldest first.
    of_site: BTreeMap<IpAddr, VecDeque<ConnectionId>>,
    /// In the order of their expiry.
    expiries: VecDeque<(Instant, ConnectionId)>,
    replies: VecDeque<(Route, Vec<u8>)>,
    effort: Effort,
}

impl Admissions {
    pub(super) fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<Transmit> {
        let (route, reply) = self.replies.pop_front()?;
        buffer[..reply.len()].copy_from_slice(&reply);
        Some(Transmit {
            to: route.remote,
            from: route.local,
            len: reply.len(),
            ecn: Ecn::NotEct,
        })
    }

    fn reply(&mut self, to: Route, packet: &HandshakePacket<'_>) {
        let mut buffer = [0; 128];
        if let Some(len) = packet.encode(&mut buffer) {
            self.reply_with(to, buffer[..len].to_vec());
        }
    }

    /// What was spent in this second on who has no session.
    pub(super) fn effort_at(&mut self, now: Instant) -> &mut Effort {
        self.effort.see(now);
        &mut self.effort
    }

    /// Whether there is room for it.
    pub(super) fn reply_with(&mut self, to: Route, packet: Vec<u8>) -> bool {
        let has_room = self.replies.len() < REPLIES_MAX;
        if has_room {
            self.replies.push_back((to, packet));
        }
        has_room
    }

    /// The client has shown itself: what was kept for it is no longer needed.
    pub(super) fn on_confirmed(&mut self, id: ConnectionId) {
        self.on_gone(id);
    }

    pub(super) fn on_gone(&mut self, id: ConnectionId) {
        let Some(key) = self.by_id.remove(&id) else {
            return;
        };
        self.half_open.remove(&key);
        let site = site(key.0.ip());
        if let Some(ids) = self.of_site.get_mut(&site) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.of_site.remove(&site);
            }
        }
    }

    fn count_of(&self, site: IpAddr) -> usize {
        self.of_site.get(&site).map_or(0, VecDeque::len)
    }

    /// Whose place a newcomer of this site may have where none is left: the oldest of the site that has most, if that is more than this one has with it, and if it had time to
    /// be answered for. O(sites).
    fn yields_to(&self, now: Instant, site: IpAddr) -> Option<ConnectionId> {
        let most = self.of_site.values().max_by_key(|ids| ids.len())?;
        let oldest = *most.front()?;
        let half_open = self.half_open.get(self.by_id.get(&oldest)?)?;
        let had_time = half_open.expires_at <= now + (HALF_OPEN_TIME - ANSWER_TIME);
        (had_time && most.len() > self.count_of(site) + 1).then_some(oldest)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.expiries.front().map(|expiry| expiry.0)
    }

    /// Sessions whose client never showed itself.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<ConnectionId> {
        let mut expired = Vec::new();
        while let Some(&(at, id)) = self.expiries.front() {
            if at > now {
                break;
            }
            self.expiries.pop_front();
            if self.by_id.contains_key(&id) {
                expired.push(id);
            }
        }
        expired
    }

    fn insert(&mut self, now: Instant, newcomer: Newcomer, id: ConnectionId, accept: Vec<u8>) {
        let expires_at = now + HALF_OPEN_TIME;
        self.half_open.insert(
            newcomer,
            HalfOpen {
                id,
                accept,
                expires_at,
            },
        );
        self.by_id.insert(id, newcomer);
        let ids = self.of_site.entry(site(newcomer.0.ip())).or_default();
        ids.push_back(id);
        self.expiries.push_back((expires_at, id));
    }
}

/// Whose address it is: of IPv6 the first 48 bits, since whoever has one address may have all with these (RFC 6177). (A socket for both sees IPv4 addresses mapped.)
fn site(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 80 << 80).into(),
    }
}

impl Endpoint {
    pub(super) fn handle_handshake(&mut self, now: Instant, route: Route, datagram: &[u8]) {
        let from = route.remote;
        let packet = match HandshakePacket::decode(datagram) {
            Ok(packet) => packet,
            Err(crate::wire::DecodeError::Version { .. }) => {
                if let Some(source) =
                    HandshakePacket::source_of(datagram).filter(|_| self.config.server.is_some())
                {
                    self.refuse(route, source, Refusal::Version);
                }
                return;
            }
            Err(_) => {
                self.stats.malformed += 1;
                return;
            }
        };
        match packet {
            HandshakePacket::Hello(hello) => self.handle_hello(now, route, &hello),
            HandshakePacket::Retry(retry) => {
                if let Some((id, Slot::Connecting(connecting))) =
                    self.table.get_mut(retry.destination)
                    && connecting.remote() == from
                    && connecting.handshake.handle_retry(&retry)
                {
                    connecting.on_cookie();
                    self.after_change(id);
                }
            }
            HandshakePacket::Accept(accept) => {
                let Some((id, Slot::Connecting(connecting))) =
                    self.table.get_mut(accept.destination)
                else {
                    return;
                };
                if connecting.remote() != from {
                    return;
                }
                let round_trip = connecting.round_trip(now);
                let Some(established) = connecting.handshake.handle_accept(&accept) else {
                    self.stats.unauthentic += 1;
                    return;
                };
                let shared = self.commons.share(&self.config, true);
                let mut session = Session::new(
                    now,
                    Role::Client,
                    from.into(),
                    established,
                    Vec::new(),
                    &shared,
                );
                if let Some(round_trip) = round_trip {
                    session.on_handshake_round_trip(now, round_trip);
                }
                session.announce();
                self.table.fill(id, Slot::Session(Box::new(session)));
                self.after_change(id);
            }
            HandshakePacket::Refuse(refuse) => {
                if let Some((id, Slot::Connecting(connecting))) =
                    self.table.get_mut(refuse.destination)
                    && connecting.remote() == from
                {
                    connecting.on_refused(now, refuse.why);
                    self.after_change(id);
                }
            }
        }
    }

    fn handle_hello(&mut self, now: Instant, route: Route, hello: &Hello<'_>) {
        if self.config.server.is_none() {
            self.stats.unknown_session += 1;
            return;
        }
        self.stats.hellos += 1;
        if let Some(half_open) = self
            .admissions
            .half_open
            .get(&newcomer(route.remote, hello))
        {
            // Sent again: the same answer, and nothing computed. Smaller than the HELLO, so no amplification.
            let (id, accept) = (half_open.id, half_open.accept.clone());
            if half_open.expires_at > now
                && self.admissions.reply_with(route, accept)
                && let Some((_, Slot::Session(session))) = self.table.get_mut(id)
            {
                session.on_accept_repeated();
            }
            return;
        }
        let is_validated = self
            .cookies
            .is_ours(now, route.remote, hello.source, hello.cookie);
        if !self.is_welcome(now, route, hello, is_validated) {
            return;
        }
        let answer = self.accept_hello(now, route, hello);
        let site = site(route.remote.ip());
        self.admissions
            .effort
            .on_opened(site, is_validated, answer.is_err());
        if let Err(why) = answer {
            self.refuse(route, hello.source, why);
        }
    }

    /// Whether anything may be spent on this HELLO; asks for a cookie or refuses otherwise.
    fn is_welcome(
        &mut self,
        now: Instant,
        route: Route,
        hello: &Hello<'_>,
        is_validated: bool,
    ) -> bool {
        let from = route.remote;
        let Some(server) = &self.config.server else {
            return false;
        };
        let admissions = &mut self.admissions;
        let (open, site) = (admissions.half_open.len(), site(from.ip()));
        let (of_site, slots) = (admissions.count_of(site), self.table.free_slots());
        let places = slots.min(HALF_OPEN_MAX.saturating_sub(open));
        // (Who yields is looked for only for who has shown that it receives.)
        let yields = || !is_validated || admissions.yields_to(now, site).is_some();
        if places == 0 && (open == 0 || !yields()) {
            self.refuse(route, hello.source, Refusal::Full);
            return false;
        }
        let asks_for_cookies = admissions.effort_at(now).asks_for_cookies();
        // (Who may not be there at all does not get the last place.)
        let is_much = open >= server.cookie_threshold.min(slots.saturating_sub(1))
            || of_site >= HALF_OPEN_PER_ADDRESS
            || asks_for_cookies;
        if !is_validated && is_much {
            let cookie = self.cookies.bake(now, from, hello.source);
            self.stats.retries += 1;
            self.admissions.reply(
                route,
                &HandshakePacket::Retry(Retry {
                    destination: hello.source,
                    cookie: &cookie,
                }),
            );
            return false;
        }
        if is_validated && admissions.effort.is_tired_of(site) {
            return false;
        }
        if places > 0 && of_site >= places.div_ceil(HALF_OPEN_PART_OF_FREE) {
            self.refuse(route, hello.source, Refusal::Full);
            return false;
        }
        true
    }

    fn open_hello(&mut self, now: Instant, hello: &Hello<'_>) -> Result<ServerHandshake, Refusal> {
        let Some(server) = &self.config.server else {
            return Err(Refusal::Full);
        };
        self.stats.handshakes += 1;
        let admission = Admission {
            aead: &*self.config.aead,
            key: &server.key,
            token_key: server.token_key.as_ref(),
            now_unix_s: server
                .epoch_unix_s
                .saturating_add(now.as_nanos() / 1_000_000_000),
        };
        read_hello(&mut self.commons.entropy, &admission, hello)
    }

    fn accept_hello(
        &mut self,
        now: Instant,
        route: Route,
        hello: &Hello<'_>,
    ) -> Result<(), Refusal> {
        let mut handshake = self.open_hello(now, hello)?;
        let identity = core::mem::take(&mut handshake.identity);
        if self.table.free_slots() == 0 || self.admissions.half_open.len() >= HALF_OPEN_MAX {
            let site = site(route.remote.ip());
            let who = self.admissions.yields_to(now, site).ok_or(Refusal::Full)?;
            self.remove(who);
        }
        let Some(server) = &self.config.server else {
            return Err(Refusal::Full);
        };
        let id = self.table.reserve().ok_or(Refusal::Full)?;
        let parameters = Parameters {
            datagram_max: self.config.datagram_max,
            idle_timeout: self.config.idle_timeout,
        };
        let gone_token = server.key.gone_token(id, route.remote);
        let Some((established, accept)) = handshake.accept(id, &parameters, &gone_token) else {
            self.table.free(id);
            return Err(Refusal::Key);
        };
        let shared = self.commons.share(&self.config, true);
        let session = Session::new(now, Role::Server, route, established, identity, &shared);
        self.table.fill(id, Slot::Session(Box::new(session)));
        self.admissions.reply_with(route, accept.clone());
        self.admissions
            .insert(now, newcomer(route.remote, hello), id, accept);
        self.after_change(id);
        Ok(())
    }

    fn refuse(&mut self, route: Route, source: ConnectionId, why: Refusal) {
        self.stats.refusals += 1;
        self.admissions.reply(
            route,
            &HandshakePacket::Refuse(Refuse {
                destination: source,
                why,
            }),
        );
    }
}
