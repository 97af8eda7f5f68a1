//! Bounds of SpMM on a CPU, from statistics of the rows.

use gustav_core::Problem;

use super::parameters::CpuRates;
use super::{Bound, Bounds, Class};
use crate::{Algorithm, DeviceProfile, RowStats};

/// Most rows of a group of `row-block`.
const GROUP: f64 = 4.0;

/// A product, and the statistics of the rows of op(A).
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The product.
    pub problem: &'a Problem,
    /// Statistics of the rows.
    pub stats: &'a RowStats,
    /// The device.
    pub profile: &'a DeviceProfile,
    /// Threads that compute.
    pub threads: usize,
    /// Nominal rates.
    pub rates: CpuRates,
    /// Rows of B in a tile of `column-panel`.
    pub tile: usize,
}

impl Work<'_> {
    /// The bounds of an algorithm; `None` for those that the model does not know.
    pub fn bounds(&self, algorithm: Algorithm) -> Option<Bounds> {
        let mut terms = vec![(Bound::Execution, 1.0), (Bound::Class, 1.0)];
        let class = match algorithm {
            Algorithm::RowSplit => {
                self.rows(1.0, &mut terms);
                terms.push((Bound::Chain, self.longest_row()));
                Class::CpuRowSplit
            }
            Algorithm::NonzeroSplit => {
                self.rows(1.0, &mut terms);
                let carried = self.threads as f64 * self.row_bytes();
                terms.push((Bound::Parts, carried / self.rates.cache));
                Class::CpuNonzeroSplit
            }
            Algorithm::RowBlock => {
                // A group of rows with the same columns loads each row of B once.
                let loads = 1.0 - (1.0 - 1.0 / GROUP) * self.stats.same_as_next;
                self.rows(loads, &mut terms);
                terms.push((Bound::Chain, self.longest_row()));
                Class::CpuRowBlock
            }
            Algorithm::ColumnPanel => {
                self.tiles(&mut terms);
                Class::CpuColumnPanel
            }
            _ => return None,
        };
        terms.retain(|term| term.1 > 0.0);
        Some(Bounds { class, terms })
    }

    fn nnz(&self) -> f64 {
        self.stats.nnz as f64
    }

    fn row_bytes(&self) -> f64 {
        (self.problem.columns * self.problem.dtype.bytes()) as f64
    }

    /// Bytes that all threads move through their caches, in microseconds.
    fn moved(&self, bytes: f64) -> f64 {
        bytes / (self.threads as f64 * self.rates.cache)
    }

    /// Loop iterations of all threads, in microseconds.
    fn steps(&self, steps: f64) -> f64 {
        steps / (self.threads as f64 * self.rates.steps)
    }

    /// The row with most nonzeros, which one of several threads computes.
    fn longest_row(&self) -> f64 {
        if self.threads < 2 {
            return 0.0;
        }
        self.stats.max_row_length as f64 * self.row_bytes() / self.rates.cache
    }

    /// Bytes of A, B and C, each once.
    fn memory(&self) -> f64 {
        let stats = self.stats;
        let read = (stats.cols as f64).min(self.nnz());
        let of_a = self.nnz() * (4 + self.problem.dtype.bytes()) as f64 + stats.rows as f64 * 4.0;
        (of_a + (stats.rows as f64 + read) * self.row_bytes()) / self.rates.memory
    }

    /// Rows one after another, which load `loads` rows of B for each nonzero.
    fn rows(&self, loads: f64, terms: &mut Vec<(Bound, f64)>) {
        let stats = self.stats;
        let gathered = self.nnz() * loads * self.row_bytes();
        // What must stay in a cache for the next rows to find it there: the rows of B that a row spans.
        let window = stats.mean_row_span.min(stats.cols as f64) * self.row_bytes();
        let missing = |cache: usize| (1.0 - cache as f64 / window.max(1.0)).max(0.0);
        terms.extend([
            (Bound::Memory, self.memory()),
            (Bound::Gather, self.moved(gathered)),
            (Bound::Arithmetic, self.moved(self.nnz() * self.row_bytes())),
            (Bound::Copies, self.moved(gathered * missing(self.profile.l2_bytes))),
            (Bound::Misses, gathered * missing(self.profile.llc_bytes) / self.rates.memory),
            (Bound::Indices, self.steps(self.nnz())),
            (Bound::Segments, self.steps(stats.rows as f64)),
            (Bound::Stores, self.moved(stats.rows as f64 * self.row_bytes())),
        ]);
    }

    /// Tiles of B, one after another, each with the segments of all rows in it.
    fn tiles(&self, terms: &mut Vec<(Bound, f64)>) {
        let stats = self.stats;
        let filled = (stats.rows - stats.empty_rows) as f64;
        let of_row = stats.mean_row_span / self.tile.max(1) as f64 + 1.0;
        let segments = (filled * of_row).min(self.nnz());
        // Every row is visited in every tile, whether it has nonzeros there or not.
        let visits = stats.rows as f64 * stats.cols.div_ceil(self.tile.max(1)) as f64;
        terms.extend([
            (Bound::Memory, self.memory()),
            (Bound::Gather, self.moved(self.nnz() * self.row_bytes())),
            (Bound::Indices, self.steps(self.nnz())),
            (Bound::Segments, self.steps(visits)),
            (Bound::Reductions, self.moved(segments * self.row_bytes())),
        ]);
    }
}
