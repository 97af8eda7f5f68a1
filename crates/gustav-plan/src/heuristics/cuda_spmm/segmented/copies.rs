//! How rows of B pass through shared memory, where they do.

use super::super::{SKEWED, Way};
use super::facts::{Cut, Facts, PLENTY};

/// Vectors of a row of B from which rows pass through shared memory; half as many are enough where rows in
/// order are plenty, and shorter than the third on average.
const WIDTH: (f64, f64, f64) = (16.0, 8.0, 4.5);
/// Lanes that share a row of B where each holds several of its vectors, and twice as many for whole rows of
/// so many vectors of 8-byte values; times that they fill a chip at least.
const TALL: (u32, f64, f64) = (8, 64.0, 2.0);
/// Rows in order none of which is longer than this are copied one by one, of 4-byte values.
const SINGLE: usize = 8;

impl Facts<'_> {
    fn plenty(&self) -> bool {
        self.listed * self.lanes >= PLENTY.0 * self.full
    }

    /// Whether rows of B are wide enough for copies, or rows of A short and many enough.
    pub(super) fn may_copy(&self) -> bool {
        let short = self.cut == Cut::InOrder && self.mean < WIDTH.2 && self.plenty();
        let single = !self.wide && !self.slow_sums;
        self.vectors >= WIDTH.0 || single && short && self.vectors == WIDTH.1
    }

    /// Lanes that share a row of B and vectors that each holds, four or three, where they leave none idle and rows
    /// are many: the fewer the lanes, the fewer instructions ask for a row.
    pub(super) fn tall(&self) -> Option<(u32, u32)> {
        let wide = self.wide && self.vectors % TALL.1 == 0.0;
        let lanes = if wide { 2 * TALL.0 } else { TALL.0 };
        let fits = |tiles: &u32| {
            let vectors = f64::from(*tiles);
            let many = self.listed * self.vectors / vectors >= TALL.2 * self.full;
            many && self.vectors % (f64::from(lanes) * vectors) == 0.0
        };
        [4, 3].into_iter().find(fits).map(|tiles| (lanes, tiles))
    }

    /// `way` with copies of rows of B on their way: chunks of them, of as many nonzeros, by as many threads. `far`
    /// says that they come from memory.
    pub(super) fn copied(&self, way: Way, far: bool) -> Way {
        let in_order = self.cut == Cut::InOrder;
        // Hubs among the rows are hubs among the columns as a rule, which L1 has, but not for copies.
        let even = self.rows.mean_of_nonzeros() <= SKEWED * self.mean;
        let apart = in_order || far && even;
        if let Some((lanes, tiles)) = self.tall().filter(|_| apart) {
            let (ahead, chunk, threads) = match (self.slow_sums, self.wide) {
                (true, _) => (1, 2, 1024),
                (_, false) if in_order && self.rows.max() <= SINGLE => (2, 1, 1536),
                _ => (1, 2, 1280),
            };
            return Way { ahead, chunk, threads, lanes, tiles, ..way };
        }
        let (ahead, chunk, threads) = match (self.wide, self.slow_sums, in_order) {
            (true, _, true) if self.plenty() => (4, 1, 1536),
            (true, _, true) => (2, 2, 1024),
            _ if self.vectors > WIDTH.0 || !in_order && !even => (2, 2, 1024),
            (true, _, false) | (_, true, true) | (_, false, false) => (1, 2, 1536),
            (_, true, false) => (2, 2, 1280),
            (_, false, true) => (2, 2, 1536),
        };
        Way { ahead, chunk, threads, ..way }
    }
}
