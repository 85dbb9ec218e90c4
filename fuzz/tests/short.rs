//! The fuzz targets for some seconds, without a fuzzer: seeds are the test vectors, mutations come from a fixed generator,
//! so that every run is the same one. A case that fails is printed as hexadecimal.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// splitmix64.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Every byte string of every vector.
fn seeds() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors");
    let mut files: Vec<_> = std::fs::read_dir(&directory)
        .expect("vectors/ is written by `cargo xtask vectors`")
        .map(|entry| entry.expect("the directory can be read").path())
        .collect();
    files.sort();
    let mut seeds = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a file of vectors can be read");
        collect(
            &serde_json::from_str(&text).expect("vectors are JSON"),
            &mut seeds,
        );
    }
    seeds.sort();
    seeds.dedup();
    assert!(seeds.len() > 300, "only {} seeds", seeds.len());
    seeds
}

fn collect(value: &serde_json::Value, seeds: &mut Vec<Vec<u8>>) {
    match value {
        serde_json::Value::String(text) => seeds.extend(unhex(text)),
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect(value, seeds)),
        serde_json::Value::Object(fields) => {
            fields.values().for_each(|value| collect(value, seeds))
        }
        _ => {}
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| digit.to_digit(16).map(|digit| digit as u8))
        .collect();
    Some(
        digits?
            .chunks_exact(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect(),
    )
}

/// Bytes at which decoders branch.
const TELLING: [u8; 14] = [
    0, 1, 2, 3, 7, 0x3f, 0x40, 0x7f, 0x80, 0x83, 0xa0, 0xbf, 0xc0, 0xff,
];

fn mutate(chance: &mut Chance, seeds: &[Vec<u8>], case: &mut Vec<u8>) {
    case.clear();
    case.extend_from_slice(&seeds[chance.below(seeds.len())]);
    for _ in 0..=chance.below(4) {
        let at = chance.below(case.len() + 1);
        match chance.below(7) {
            0 if at < case.len() => case[at] ^= 1 << chance.below(8),
            1 if at < case.len() => case[at] = TELLING[chance.below(TELLING.len())],
            2 => case.truncate(at),
            3 => case.insert(at, TELLING[chance.below(TELLING.len())]),
            4 if at < case.len() => {
                case.remove(at);
            }
            5 => {
                // The end of one behind the beginning of another.
                let other = &seeds[chance.below(seeds.len())];
                case.truncate(at);
                case.extend_from_slice(&other[chance.below(other.len() + 1)..]);
            }
            _ => (0..chance.below(8)).for_each(|_| case.push(chance.next() as u8)),
        }
    }
    case.truncate(1500);
}

/// Runs `target` over the seeds and `cases` mutations of them.
fn run(target: fn(&[u8]), seeds: &[Vec<u8>], cases: usize, seed: u64) {
    let check = |case: &[u8]| {
        if catch_unwind(AssertUnwindSafe(|| target(case))).is_err() {
            let hex: String = case.iter().map(|byte| format!("{byte:02x}")).collect();
            panic!("failing case: {hex}");
        }
    };
    seeds.iter().for_each(|case| check(case));
    let mut chance = Chance(seed);
    let mut case = Vec::new();
    for _ in 0..cases {
        mutate(&mut chance, seeds, &mut case);
        check(&case);
    }
}

#[test]
fn decoders_take_anything() {
    run(punctual_fuzz::decode, &seeds(), 200_000, 1);
}

#[test]
fn servers_take_any_hello() {
    // Whole datagrams, and both ciphers, 1,400 bytes, 20 s, with tokens and without.
    let datagrams = seeds().into_iter();
    let datagrams = datagrams.filter(|seed| seed.len() >= 1200 && seed[0] == 0x80);
    let said = [
        &[3, 5, 0x78, 0x80, 0, 0x4e, 0x20, 0, 0][..],
        b"\x03\x05\x78\x80\0\x4e\x20anna",
    ];
    let hellos: Vec<Vec<u8>> = datagrams
        .map(|datagram| [&[1], &datagram[..]].concat())
        .chain(
            (0..64)
                .step_by(2)
                .flat_map(|ways| said.map(|said| [&[ways], said].concat())),
        )
        .collect();
    run(punctual_fuzz::hello, &hellos, 2_000, 2);
}

#[test]
fn messages_arrive_once_whatever_the_network_does() {
    run(punctual_fuzz::reassemble, &seeds(), 5_000, 3);
    // Operations have no structure that a vector could be a seed of.
    let mut chance = Chance(4);
    let random: Vec<Vec<u8>> = (0..300)
        .map(|_| {
            (0..100 + chance.below(900))
                .map(|_| chance.next() as u8)
                .collect()
        })
        .collect();
    run(punctual_fuzz::reassemble, &random, 5_000, 5);
}

#[test]
fn promises_hold_whatever_is_chosen() {
    let mut chance = Chance(7);
    let random: Vec<Vec<u8>> = (0..100)
        .map(|_| {
            (0..50 + chance.below(1400))
                .map(|_| chance.next() as u8)
                .collect()
        })
        .collect();
    run(punctual_fuzz::session, &random, 300, 8);
}

#[test]
fn traces_of_any_content_are_read_or_refused() {
    let lines = [
        "[1723489200.167948] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=63 time=144 ms\n",
        "1694477135.68 1 44.5\n1694477135.70 3 -1\n",
        "0.015 4.99 5.5ms 0.00\n0.030 4.99 7.5ms 0.25\n",
        "17\n17\n19\n",
        "time_s,rtt_ms\n0.015,43.1\n0.030,\n",
        "time_s,owd_up_ms,owd_down_ms\n0.015,43.1,20\n0.030,,12\n",
        "{\"round_trips\": [{\"seqnum\": 0, \"timestamps\": {}, \"delay\": {\"rtt\": 1000}}]}",
    ];
    let seeds: Vec<Vec<u8>> = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
    run(punctual_fuzz::trace, &seeds, 20_000, 6);
}
