//! Random streams that do not depend on the machine, the number of threads, or the release of a
//! library: PCG (O'Neill 2014) seeded by SplitMix64, with conversions of its bits that are defined
//! here.

use rand::Rng;
use rand_pcg::Pcg64Mcg;

/// The purpose of a stream; streams of different purposes are independent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Columns,
    Values,
    Edges,
}

/// One stream of random numbers.
pub(crate) struct Stream(Pcg64Mcg);

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// 64 random bits for a seed, a purpose and a number.
pub(crate) fn hash(seed: u64, purpose: Purpose, number: u64) -> u64 {
    let seed = mix(seed.wrapping_add(GOLDEN)) ^ mix((purpose as u64 + 1).wrapping_mul(GOLDEN));
    mix(seed.wrapping_add(number.wrapping_mul(GOLDEN)))
}

impl Stream {
    /// The stream of a seed, a purpose and a number.
    pub fn new(seed: u64, purpose: Purpose, number: u64) -> Self {
        let low = hash(seed, purpose, number);
        Stream(Pcg64Mcg::new(u128::from(mix(low.wrapping_add(GOLDEN))) << 64 | u128::from(low)))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound` (0 for a bound of 0), uniform up to 2⁻⁶⁴·bound.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// A number in [0, 1), a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Appends `wanted` distinct numbers below `bound`, increasing; all sets are equally likely.
    pub fn distinct(&mut self, wanted: usize, bound: usize, out: &mut Vec<usize>) {
        let start = out.len();
        let wanted = wanted.min(bound);
        if wanted > bound / 8 {
            // Selection sampling: Knuth, TAOCP 3.4.2, algorithm S.
            let mut left = wanted;
            for k in 0..bound {
                if self.below(bound - k) < left {
                    out.push(k);
                    left -= 1;
                }
            }
            return;
        }
        let mut fresh = Vec::new();
        loop {
            let missing = wanted - (out.len() - start);
            if missing == 0 {
                return;
            }
            fresh.clear();
            fresh.extend((0..missing).map(|_| self.below(bound)));
            out.append(&mut fresh);
            out[start..].sort_unstable();
            dedup_from(out, start);
        }
    }
}

/// Removes repeated neighbours from `start` on.
fn dedup_from(list: &mut Vec<usize>, start: usize) {
    let mut end = start;
    for k in start..list.len() {
        if end == start || list[k] != list[end - 1] {
            list[end] = list[k];
            end += 1;
        }
    }
    list.truncate(end);
}

/// xʸ for x ≥ 0 and y ≥ 0 by multiplications and square roots alone, which all machines round
/// alike; y is truncated to a multiple of 2⁻³².
pub(crate) fn power(x: f64, y: f64) -> f64 {
    let whole = y.floor();
    let mut result = 1.0;
    let mut square = x;
    let mut bits = whole as u64;
    while bits > 0 {
        if bits & 1 == 1 {
            result *= square;
        }
        square *= square;
        bits >>= 1;
    }
    let mut fraction = ((y - whole) * 2f64.powi(32)) as u32;
    let mut root = x;
    while fraction > 0 {
        root = root.sqrt();
        if fraction & (1 << 31) != 0 {
            result *= root;
        }
        fraction <<= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_agree_with_the_library() {
        for (x, y) in [(2.0, 0.5), (3.7, 2.25), (0.01, 1.9), (1e-9, 0.8), (5.0, 0.0), (0.3, 7.0)] {
            let (ours, theirs) = (power(x, y), f64::powf(x, y));
            assert!((ours - theirs).abs() <= 1e-7 * theirs, "{x}^{y}: {ours} {theirs}");
        }
    }

    #[test]
    fn distinct_numbers_are_distinct_sorted_and_spread() {
        let mut stream = Stream::new(1, Purpose::Columns, 0);
        for (wanted, bound) in [(0, 0), (5, 3), (10, 1000), (124, 1000), (900, 1000)] {
            let mut out = vec![7];
            stream.distinct(wanted, bound, &mut out);
            assert_eq!((out[0], out.len()), (7, 1 + wanted.min(bound)));
            assert!(out[1..].is_sorted_by(|a, b| a < b) && out[1..].iter().all(|k| *k < bound));
        }
        let mut hits = [0; 40];
        for _ in 0..2000 {
            let mut out = Vec::new();
            stream.distinct(4, 40, &mut out);
            out.iter().for_each(|&k| hits[k] += 1);
        }
        assert!(hits.iter().all(|h| (120..280).contains(h)), "{hits:?}");
    }
}
