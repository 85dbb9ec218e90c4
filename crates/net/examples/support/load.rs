//! What is sent, to whom, in what portions.

use std::time::Duration;

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Datagrams that the server sends; each is answered by one ack.
    pub(crate) datagrams: usize,
    /// Bytes of application data in a datagram; one run for each.
    pub(crate) payloads: Vec<usize>,
    /// Bytes that a protocol adds: header and tag.
    pub(crate) overhead_bytes: usize,
    /// Bytes of an ack.
    pub(crate) ack_bytes: usize,
    /// Datagrams of one send call; one run for each.
    pub(crate) batches: Vec<usize>,
    /// Addresses to send to, in turn.
    pub(crate) peers: usize,
    /// Sockets that serve those addresses.
    pub(crate) peer_sockets: usize,
    /// Each tick the server sends one datagram to every peer. Zero: it sends while fewer than that are unanswered, and
    /// waits for the socket.
    pub(crate) tick: Duration,
    /// How often to repeat; the best and the median are told.
    pub(crate) repeats: usize,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            datagrams: 200_000,
            payloads: vec![100, 1_000],
            // A header of 12 bytes and a tag of 16.
            overhead_bytes: 28,
            ack_bytes: 45,
            batches: vec![1, 16, 64],
            peers: 1_000,
            peer_sockets: 8,
            tick: Duration::from_millis(5),
            repeats: 5,
        }
    }
}

const USAGE: &str = "options: --datagrams N  --payload BYTES[,..]  --overhead BYTES  --ack BYTES  --batch N[,..]
         --peers N (1..=10000)  --peer-sockets N (1..=256)  --tick-us MICROSECONDS (0: wait for the socket)  --repeats N";

impl Load {
    /// From the command line; says what is wrong with it.
    pub(crate) fn from_args(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut load = Self::default();
        let mut args = args;
        while let Some(name) = args.next() {
            let text = args.next().ok_or(USAGE)?;
            let numbers: Result<Vec<usize>, _> = text.split(',').map(str::parse).collect();
            let numbers = numbers.map_err(|_| format!("{name} {text}: not a number\n{USAGE}"))?;
            let number = numbers[0];
            match name.as_str() {
                "--datagrams" => load.datagrams = number.clamp(1, 50_000_000),
                "--payload" => load.payloads = numbers,
                "--overhead" => load.overhead_bytes = number,
                "--ack" => load.ack_bytes = number.clamp(1, 1_400),
                "--batch" => load.batches = numbers,
                "--peers" => load.peers = number.clamp(1, 10_000),
                "--peer-sockets" => load.peer_sockets = number.clamp(1, 256),
                "--tick-us" => load.tick = Duration::from_micros(number as u64),
                "--repeats" => load.repeats = number.clamp(1, 1_000),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(load)
    }
}
