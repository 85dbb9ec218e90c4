//! The messages of all streams of all sessions, in the order of their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::{Due, Generator, Next, Scenario, Source};

/// What is to be sent, in order. Saturating streams have no times: whoever runs the scenario asks for [`Schedule::hungry`] and
/// takes as many of their messages as there is room for.
#[derive(Debug)]
pub struct Schedule {
    streams: u32,
    duration: Duration,
    /// By session, then stream.
    generators: Vec<Generator>,
    /// Times, with the place in `generators`; equal times by place.
    times: BinaryHeap<Reverse<(Duration, u32)>>,
    /// In order.
    hungry: Vec<Turn>,
}

/// A stream in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    /// The session, from 0.
    pub session: u32,
    /// The stream's place in the scenario.
    pub stream: u8,
}

impl Schedule {
    /// The messages of a scenario with `seed` (which may be another than the file's). Times count from when the first may be sent.
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let streams = scenario.streams.iter();
        let sources: Vec<_> = streams.map(|stream| Source::new(&stream.traffic)).collect();
        let mut schedule = Self {
            streams: sources.len() as u32,
            duration: scenario.duration,
            generators: Vec::with_capacity(scenario.sessions as usize * sources.len()),
            times: BinaryHeap::new(),
            hungry: Vec::new(),
        };
        for session in 0..scenario.sessions {
            for (stream, source) in (0..).zip(&sources) {
                let generator = source.generator(seed, session, stream);
                schedule.generators.push(generator);
                schedule.add(Turn { session, stream });
            }
        }
        schedule
    }

    /// When the next message with a time is to be sent; None when there are no more.
    pub fn next_at(&self) -> Option<Duration> {
        self.times.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the message that is to be sent at [`Schedule::next_at`].
    pub fn take(&mut self) -> Option<(Turn, Due)> {
        let Reverse((_, place)) = self.times.pop()?;
        let turn = Turn {
            session: place / self.streams,
            stream: (place % self.streams) as u8,
        };
        let due = self.generators[place as usize].take();
        self.add(turn);
        Some((turn, due))
    }

    /// The streams that send whenever there is room, at `now`, if there are any.
    pub fn hungry(&self, now: Duration) -> impl Iterator<Item = Turn> {
        let turns = self.hungry.iter().copied();
        turns.filter(move |turn| self.is_on(*turn, now))
    }

    /// Those of one session.
    pub fn hungry_of(&self, session: u32, now: Duration) -> Vec<Turn> {
        let from = self.hungry.partition_point(|turn| turn.session < session);
        let mine = self.hungry[from..].iter();
        let mine = mine.take_while(|turn| turn.session == session);
        mine.copied()
            .filter(|turn| self.is_on(*turn, now))
            .collect()
    }

    /// When after `now` a stream next becomes hungry.
    pub fn hungry_at(&self, now: Duration) -> Option<Duration> {
        let next = |turn: &Turn| match self.generators[self.place(*turn)].next() {
            Next::WhenRoom { start, pause, .. } => [Some(start), pause.map(|(_, until)| until)],
            Next::At(_) | Next::Never => [None; 2],
        };
        let times = self.hungry.iter().flat_map(next).flatten();
        times.filter(|at| *at > now && *at < self.duration).min()
    }

    /// The next message of a stream that is hungry.
    pub fn peek_hungry(&self, turn: Turn) -> Due {
        self.generators[self.place(turn)].peek()
    }

    /// Takes the next message of a stream that has room.
    pub fn take_hungry(&mut self, turn: Turn) -> Due {
        let place = self.place(turn);
        self.generators[place].take()
    }

    fn is_on(&self, turn: Turn, now: Duration) -> bool {
        match self.generators[self.place(turn)].next() {
            Next::WhenRoom { start, stop, pause } => {
                let is_paused = pause.is_some_and(|(from, until)| now >= from && now < until);
                now >= start && now < stop.unwrap_or(self.duration) && !is_paused
            }
            Next::At(_) | Next::Never => false,
        }
    }

    const fn place(&self, turn: Turn) -> usize {
        turn.session as usize * self.streams as usize + turn.stream as usize
    }

    fn add(&mut self, turn: Turn) {
        let place = self.place(turn);
        match self.generators[place].next() {
            Next::At(at) if at < self.duration => self.times.push(Reverse((at, place as u32))),
            Next::WhenRoom { .. } => self.hungry.push(turn),
            Next::At(_) | Next::Never => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "sessions = 3\nseconds = 10\n[network]\nrtt_ms = 100\n\
        [[stream]]\nname = 'a'\ndelivery = 'latest'\ntraffic = { every_ms = 50, bytes = 100, together = true }\n\
        [[stream]]\nname = 'b'\ndelivery = 'reliable'\ntraffic = { shape = 'bzflag' }\n\
        [[stream]]\nname = 'c'\ndelivery = 'reliable'\ntraffic = { bulk_bytes = 9999, start_s = 5 }\n\
        [[stream]]\nname = 'd'\ndelivery = 'reliable'\ntraffic = { saturate = true, bytes = 1000, start_s = 2, stop_s = 4 }\n";

    #[test]
    fn messages_come_in_order() {
        let scenario = Scenario::parse("a.toml", TEXT).unwrap();
        let mut schedule = Schedule::new(&scenario, 1);
        let mut counts = [[0; 4]; 3];
        let mut last = Duration::ZERO;
        while let Some(at) = schedule.next_at() {
            assert!(at >= last && at < Duration::from_secs(10));
            last = at;
            let (turn, due) = schedule.take().unwrap();
            let count = &mut counts[turn.session as usize][usize::from(turn.stream)];
            assert_eq!(due.number, *count);
            *count += 1;
            if turn.stream == 2 {
                assert_eq!((at, due.bytes), (Duration::from_secs(5), 9999));
            }
        }
        assert!(schedule.take().is_none());
        for [periodic, shape, bulk, hungry] in counts {
            assert_eq!((periodic, bulk, hungry), (200, 1, 0));
            // 10 s at 24 ms: 417; gaps vary, standard deviation about 40.
            assert!((200..700).contains(&shape), "{shape}");
        }
    }

    #[test]
    fn the_hungry_are_hungry_in_their_time() {
        let scenario = Scenario::parse("a.toml", TEXT).unwrap();
        let mut schedule = Schedule::new(&scenario, 1);
        let at = |seconds| Duration::from_secs(seconds);
        for (second, count) in [(1, 0), (2, 3), (3, 3), (4, 0)] {
            assert_eq!(schedule.hungry(at(second)).count(), count);
        }
        let turn = schedule.hungry(at(2)).nth(1).unwrap();
        let expected = Turn {
            session: 1,
            stream: 3,
        };
        assert_eq!(turn, expected);
        for number in 0..5 {
            let due = schedule.take_hungry(turn);
            assert_eq!((due.number, due.bytes), (number, 1000));
        }
    }

    #[test]
    fn many_sessions_are_ready_soon() {
        let text = TEXT.replace("sessions = 3", "sessions = 100000");
        let scenario = Scenario::parse("a.toml", &text).unwrap();
        let mut schedule = Schedule::new(&scenario, 2);
        assert_eq!(schedule.generators.len(), 400_000);
        assert!((0..1000).all(|_| schedule.take().is_some()));
    }
}
