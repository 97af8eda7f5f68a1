//! Pieces dealt to multiprocessors: each takes shares of neighbouring tiles, of about as much work.

use gustav_core::Result;
use gustav_core::buffer::try_vec;

use crate::schedule::CLASSES;

/// A share of the pieces of one tile, see `kernels/spmm/b_stationary.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// Place of the tile's first piece.
    first: u64,
    tile: u32,
    /// Pieces of this share.
    count: u32,
    /// Of every `of` pieces, those from `from` on...
    from: u32,
    /// ...as many as this.
    width: u32,
    of: u32,
}

// What beginning and storing a piece costs, in nonzeros.
const BEGIN: f64 = 8.0;
// A smaller part of a multiprocessor's work is left with its neighbour.
const LEAST: f64 = 0.03;

/// For pieces of at most `longest` nonzeros, so many of every class of every tile: the shares, and the
/// first one of each of `ctas` CTAs, behind them their number.
pub(super) fn deal(counts: &[u64], longest: u32, ctas: usize) -> Result<(Vec<Item>, Vec<u32>)> {
    let length = |class: usize| f64::from(longest) * (1.0 - (class as f64 + 0.5) / CLASSES as f64);
    let work = |tile: &[u64]| -> f64 {
        tile.iter().enumerate().map(|(c, count)| *count as f64 * (length(c) + BEGIN)).sum()
    };
    let ctas = ctas.max(1);
    let each = counts.chunks_exact(CLASSES).map(work).sum::<f64>() / ctas as f64;
    let mut items = try_vec(counts.len() / CLASSES + ctas, "shares of tiles")?;
    let mut begins = vec![0u32];
    let (mut place, mut done) = (0, 0.0);
    for (tile, counts) in counts.chunks_exact(CLASSES).enumerate() {
        let (pieces, work) = (counts.iter().sum::<u64>(), work(counts));
        let first = place;
        place += pieces;
        if pieces == 0 {
            continue;
        }
        // Where the work of one multiprocessor ends in the tile, as parts of it.
        let mut ends = Vec::new();
        let (mut at, end) = (done, done + work);
        while at < end {
            let cta = ((at / each + 1e-6) as usize).min(ctas - 1);
            let next = if cta == ctas - 1 { end } else { end.min((cta + 1) as f64 * each) };
            let little = next - at < LEAST * each;
            match ends.last_mut() {
                Some((_, last)) if little => *last = (next - done) / work,
                _ => ends.push((cta, (next - done) / work)),
            }
            at = next.max(at + 1e-9 * work);
        }
        done = end;
        let of = parts(pieces, ends.len());
        let mut from = 0;
        let last = ends.len() - 1;
        for (k, (cta, end)) in ends.into_iter().enumerate() {
            let to = if k == last { of } else { (end * f64::from(of)).round() as u32 };
            let width = to.min(of).saturating_sub(from);
            let share = Item { first, tile: tile as u32, from, width, of, count: 0 };
            let count = share.pieces(pieces);
            from += width;
            if count == 0 {
                continue;
            }
            while begins.len() <= cta {
                begins.push(items.len() as u32);
            }
            items.push(Item { count, ..share });
        }
    }
    begins.resize(ctas + 1, items.len() as u32);
    Ok((items, begins))
}

impl Item {
    /// As the kernel reads it.
    pub(super) fn words(&self) -> [u64; 4] {
        let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        [self.first, pair(self.tile, self.count), pair(self.from, self.width), self.of.into()]
    }

    /// How many of a tile's pieces are its own.
    fn pieces(&self, all: u64) -> u32 {
        let of = u64::from(self.of);
        let rest = (all % of).saturating_sub(self.from.into()).min(self.width.into());
        (all / of * u64::from(self.width) + rest) as u32
    }
}

/// So many neighbours are told apart when a tile of `pieces` has `shares`: enough for shares to be as large
/// as they should be, few enough for all to have long and short pieces.
fn parts(pieces: u64, shares: usize) -> u32 {
    let enough = (16 * shares).next_power_of_two() as u64;
    let few = (pieces / 8).max(shares as u64).next_power_of_two();
    enough.min(few).clamp(1, 1 << 20) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of what `counts` hold, every piece once, tile after tile; the work of the CTAs.
    fn check(counts: &[u64], ctas: usize) -> Vec<f64> {
        let (items, begins) = deal(counts, 64, ctas).expect("shares");
        assert_eq!((begins.len(), begins[0]), (ctas + 1, 0));
        assert_eq!(*begins.last().expect("an end"), items.len() as u32);
        assert!(begins.is_sorted());
        let mut taken = vec![0; counts.iter().sum::<u64>() as usize];
        for item in &items {
            for number in 0..item.count {
                let place = number / item.width * item.of + item.from + number % item.width;
                taken[item.first as usize + place as usize] += 1;
            }
        }
        assert!(taken.iter().all(|times| *times == 1), "{counts:?} for {ctas}");
        begins
            .windows(2)
            .map(|cta| {
                let mut work = 0.0;
                for item in &items[cta[0] as usize..cta[1] as usize] {
                    for number in 0..item.count {
                        let place = number / item.width * item.of + item.from + number % item.width;
                        let mut left = u64::from(place);
                        let tile = &counts[item.tile as usize * CLASSES..][..CLASSES];
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
    fn every_piece_is_dealt_once_and_work_is_even() {
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
