//! A static partition of the segments over the multiprocessors: each gets parts of consecutive
//! tiles, with about equal work.

use gustav_core::Result;
use gustav_core::buffer::try_vec;

use crate::schedule::CLASSES;

/// A CTA's part of the segments of one tile, see `kernels/spmm/b_stationary.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TilePartition {
    /// Index of the tile's first segment.
    first: u64,
    tile: u32,
    /// Segments of this partition.
    count: u32,
    /// Of every `of` consecutive segments, the first one of the partition...
    from: u32,
    /// ...and the number of those of the partition.
    width: u32,
    of: u32,
}

// Cost of a segment besides its nonzeros, in nonzeros.
const BEGIN: f64 = 8.0;
// Parts smaller than this fraction of a multiprocessor's work are joined with a neighbour's.
const LEAST: f64 = 0.03;

/// Partitions segments of at most `longest` nonzeros over `ctas` CTAs; `counts` has their number
/// for every class of every tile. Returns the partitions, and the index of the first one of each
/// CTA followed by their number.
pub(super) fn partition(
    counts: &[u64],
    longest: u32,
    ctas: usize,
) -> Result<(Vec<TilePartition>, Vec<u32>)> {
    let length = |class: usize| f64::from(longest) * (1.0 - (class as f64 + 0.5) / CLASSES as f64);
    let work = |tile: &[u64]| -> f64 {
        tile.iter().enumerate().map(|(c, count)| *count as f64 * (length(c) + BEGIN)).sum()
    };
    let ctas = ctas.max(1);
    let each = counts.chunks_exact(CLASSES).map(work).sum::<f64>() / ctas as f64;
    let mut partitions = try_vec(counts.len() / CLASSES + ctas, "partitions of tiles")?;
    let mut first_partitions = vec![0u32];
    let (mut position, mut done) = (0, 0.0);
    for (tile, counts) in counts.chunks_exact(CLASSES).enumerate() {
        let (segments, work) = (counts.iter().sum::<u64>(), work(counts));
        let first = position;
        position += segments;
        if segments == 0 {
            continue;
        }
        // The ends of the work of each multiprocessor in the tile, as fractions of the tile.
        let mut ends = Vec::new();
        let (mut at, end) = (done, done + work);
        while at < end {
            let cta = ((at / each + 1e-6) as usize).min(ctas - 1);
            let next = if cta == ctas - 1 { end } else { end.min((cta + 1) as f64 * each) };
            let too_small = next - at < LEAST * each;
            match ends.last_mut() {
                Some((_, last)) if too_small => *last = (next - done) / work,
                _ => ends.push((cta, (next - done) / work)),
            }
            at = next.max(at + 1e-9 * work);
        }
        done = end;
        let of = parts(segments, ends.len());
        let mut from = 0;
        let last = ends.len() - 1;
        for (k, (cta, end)) in ends.into_iter().enumerate() {
            let to = if k == last { of } else { (end * f64::from(of)).round() as u32 };
            let width = to.min(of).saturating_sub(from);
            let partition = TilePartition { first, tile: tile as u32, from, width, of, count: 0 };
            let count = partition.segments(segments);
            from += width;
            if count == 0 {
                continue;
            }
            while first_partitions.len() <= cta {
                first_partitions.push(partitions.len() as u32);
            }
            partitions.push(TilePartition { count, ..partition });
        }
    }
    first_partitions.resize(ctas + 1, partitions.len() as u32);
    Ok((partitions, first_partitions))
}

impl TilePartition {
    /// The words that the kernel reads.
    pub(super) fn words(&self) -> [u64; 4] {
        let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        [self.first, pair(self.tile, self.count), pair(self.from, self.width), self.of.into()]
    }

    /// How many of the `all` segments of the tile belong to the partition.
    fn segments(&self, all: u64) -> u32 {
        let of = u64::from(self.of);
        let rest = (all % of).saturating_sub(self.from.into()).min(self.width.into());
        (all / of * u64::from(self.width) + rest) as u32
    }
}

/// The period in which the `segments` of a tile alternate between its `partitions`: long enough for
/// partitions of the right size, short enough for all of them to get long and short segments.
fn parts(segments: u64, partitions: usize) -> u32 {
    let enough = (16 * partitions).next_power_of_two() as u64;
    let few = (segments / 8).max(partitions as u64).next_power_of_two();
    enough.min(few).clamp(1, 1 << 20) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every segment of `counts` is in one partition; returns the work of the CTAs.
    fn check(counts: &[u64], ctas: usize) -> Vec<f64> {
        let (partitions, first_partitions) = partition(counts, 64, ctas).expect("partitions");
        assert_eq!((first_partitions.len(), first_partitions[0]), (ctas + 1, 0));
        assert_eq!(*first_partitions.last().expect("an end"), partitions.len() as u32);
        assert!(first_partitions.is_sorted());
        let mut taken = vec![0; counts.iter().sum::<u64>() as usize];
        for partition in &partitions {
            for number in 0..partition.count {
                let position = number / partition.width * partition.of
                    + partition.from
                    + number % partition.width;
                taken[partition.first as usize + position as usize] += 1;
            }
        }
        assert!(taken.iter().all(|times| *times == 1), "{counts:?} for {ctas}");
        first_partitions
            .windows(2)
            .map(|cta| {
                let mut work = 0.0;
                for partition in &partitions[cta[0] as usize..cta[1] as usize] {
                    for number in 0..partition.count {
                        let position = number / partition.width * partition.of
                            + partition.from
                            + number % partition.width;
                        let mut left = u64::from(position);
                        let tile = &counts[partition.tile as usize * CLASSES..][..CLASSES];
                        let class = tile.iter().position(|c| {
                            let here = left < *c;
                            left = left.saturating_sub(*c);
                            here
                        });
                        work += 62.0 - 4.0 * class.expect("a class") as f64 + BEGIN;
                    }
                }
                work
            })
            .collect()
    }

    #[test]
    fn every_segment_is_in_one_partition_and_work_is_even() {
        let mut state = 7u64;
        let mut dice = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        for _ in 0..200 {
            let tiles = 1 + dice(40) as usize;
            let most = 1 + dice(3000);
            let counts: Vec<u64> = (0..tiles * CLASSES).map(|_| dice(most)).collect();
            let ctas = 1 + dice(140) as usize;
            let work = check(&counts, ctas);
            let mean = work.iter().sum::<f64>() / ctas as f64;
            let most = work.iter().copied().fold(0.0, f64::max);
            if mean > 50_000.0 {
                assert!(most < 1.25 * mean, "{most} of {mean}: {counts:?} for {ctas}");
            }
        }
        check(&[0; CLASSES], 5);
        let mut one = [0; CLASSES];
        one[0] = 1;
        check(&one, 132);
    }
}
