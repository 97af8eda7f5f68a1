//! Copies of rows of B to shared memory.

use super::super::{SKEWED, Tuning};
use super::facts::{Cut, Facts, PLENTY};

/// Least vectors of a row of B with which rows of B are copied to shared memory; ...
const WIDTH: f64 = 16.0;
/// ... the same if rows of A are in order, fill the device, ...
const WIDTH_SHORT: f64 = 8.0;
/// ... and have fewer nonzeros than this on average.
const WIDTH_SHORT_MEAN: f64 = 4.5;
/// Lanes for a row of B if each holds several of its vectors; ...
const TALL_LANES: u32 = 8;
/// ... twice as many for whole rows of this many vectors of 8-byte values, ...
const TALL_WIDE: f64 = 64.0;
/// ... if they fill the device this many times.
const TALL_FILL: f64 = 2.0;
/// For rows of 4-byte values in order, none longer than this: rows of B are copied one at a time.
const SINGLE: usize = 8;

impl Facts<'_> {
    fn plenty(&self) -> bool {
        self.listed * self.lanes >= PLENTY * self.full
    }

    /// Whether rows of B are wide enough for copies, or rows of A short and numerous enough.
    pub(super) fn may_copy(&self) -> bool {
        let short = self.cut == Cut::InOrder && self.mean < WIDTH_SHORT_MEAN && self.plenty();
        let single = !self.wide && !self.slow_sums;
        self.vectors >= WIDTH || single && short && self.vectors == WIDTH_SHORT
    }

    /// Lanes for a row of B and vectors that each holds, four or three, if no lane is idle and
    /// there are many rows: fewer lanes need fewer load instructions for a row.
    pub(super) fn tall(&self) -> Option<(u32, u32)> {
        let wide = self.wide && self.vectors % TALL_WIDE == 0.0;
        let lanes = if wide { 2 * TALL_LANES } else { TALL_LANES };
        let fits = |tiles: &u32| {
            let vectors = f64::from(*tiles);
            let many = self.listed * self.vectors / vectors >= TALL_FILL * self.full;
            many && self.vectors % (f64::from(lanes) * vectors) == 0.0
        };
        [4, 3].into_iter().find(fits).map(|tiles| (lanes, tiles))
    }

    /// `tuning` with copies of rows of B: pipeline stages, nonzeros of a chunk, and threads. `far` says that rows of B
    /// come from memory.
    pub(super) fn copied(&self, tuning: Tuning, far: bool) -> Tuning {
        let in_order = self.cut == Cut::InOrder;
        // Matrices with hub rows usually have hub columns, whose rows of B stay in L1; copies bypass L1.
        let even = self.rows.mean_of_nonzeros() <= SKEWED * self.mean;
        let apart = in_order || far && even;
        if let Some((lanes, tiles)) = self.tall().filter(|_| apart) {
            let (stages, chunk, threads) = match (self.slow_sums, self.wide) {
                (true, _) => (1, 2, 1024),
                (_, false) if in_order && self.rows.max() <= SINGLE => (2, 1, 1536),
                _ => (1, 2, 1280),
            };
            return Tuning { stages, chunk, threads, lanes, tiles, ..tuning };
        }
        let (stages, chunk, threads) = match (self.wide, self.slow_sums, in_order) {
            (true, _, true) if self.plenty() => (4, 1, 1536),
            (true, _, true) => (2, 2, 1024),
            _ if self.vectors > WIDTH || !in_order && !even => (2, 2, 1024),
            (true, _, false) | (_, true, true) | (_, false, false) => (1, 2, 1536),
            (_, true, false) => (2, 2, 1280),
            (_, false, true) => (2, 2, 1536),
        };
        Tuning { stages, chunk, threads, ..tuning }
    }
}
