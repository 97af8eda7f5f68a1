//! Seeded mutations of valid inputs: what a fuzzer does to a parser, within an ordinary test.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Tokens that parsers stumble over.
const TOKENS: [&[u8]; 28] = [
    b"0",
    b"-1",
    b"1",
    b"4294967295",
    b"4294967296",
    b"9007199254740993",
    b"18446744073709551615",
    b"18446744073709551616",
    b"nan",
    b"-inf",
    b"1e400",
    b"1e-400",
    b"1e",
    b".",
    b"+",
    b"\n",
    b"\r\n",
    b"%",
    b"\0",
    b"\xff",
    b" ",
    b",",
    b"(",
    b"'",
    b"\"",
    b"[",
    b"{",
    b"null",
];

/// Gives `parse(seed, mutated)` a mutation of every one of `seeds` in turn, the same ones in every
/// run, for `GUSTAV_FUZZ_SECONDS` seconds (2 where that is not set). How many there were.
///
/// # Panics
/// With the input, when `parse` panics on it.
pub fn run(seeds: &[Vec<u8>], mut parse: impl FnMut(&[u8], &[u8])) -> u64 {
    let seconds = std::env::var("GUSTAV_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok());
    let limit = Duration::from_secs(seconds.unwrap_or(2));
    let start = Instant::now();
    let mut random = Pcg64Mcg::seed_from_u64(20);
    let mut inputs = 0;
    while start.elapsed() < limit {
        for seed in seeds {
            let mut file = seed.clone();
            mutate(&mut file, &mut random);
            let parsed = catch_unwind(AssertUnwindSafe(|| parse(seed, &file)));
            assert!(parsed.is_ok(), "the input was b\"{}\"", file.escape_ascii());
            inputs += 1;
        }
    }
    inputs
}

fn mutate(file: &mut Vec<u8>, random: &mut Pcg64Mcg) {
    for _ in 0..random.random_range(1..5) {
        let at = random.random_range(0..=file.len());
        let end = (at + random.random_range(0..12)).min(file.len());
        match random.random_range(0..6) {
            0 => file.truncate(at),
            1 if at < file.len() => file[at] ^= 1 << random.random_range(0..8),
            2 => {
                file.drain(at..end);
            }
            3 => {
                let copy = file[at..end].to_vec();
                let to = random.random_range(0..=file.len());
                file.splice(to..to, copy);
            }
            4 => {
                let token = TOKENS[random.random_range(0..TOKENS.len())];
                file.splice(at..end, token.iter().copied());
            }
            _ => {
                let byte = random.next_u64() as u8;
                file.insert(at, byte);
            }
        }
    }
}
