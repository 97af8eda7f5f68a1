//! The 24 features of sparsity (the study of row permutations for SpMM on GPUs, table II), from
//! one pass over the matrix or from a sample of it.

mod count;
mod marks;
mod sample;
mod tally;

pub use sample::SampledFeatures;

use gustav_core::{Index, PatternView, Result};

use crate::orders::WarpShape;
use count::Counts;

/// Minimum, mean and maximum of some numbers; zeros when there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Summary {
    /// The smallest.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
}

/// Table II of the source for one matrix and one shape of CTA: row i goes to warp i mod Nw.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Features {
    /// Number of rows.
    pub nrow: f64,
    /// Number of columns.
    pub ncol: f64,
    /// Nonzeros ÷ (rows × columns); 0 for a matrix without positions.
    pub density: f64,
    /// Nonzeros of a row, across rows.
    pub nnz_per_row: Summary,
    /// Blocks of Nw consecutive columns with at least one nonzero of a row, across rows.
    pub nnz_blocks_per_row: Summary,
    /// Warp load ⌈nonzeros ÷ Nt⌉ accumulated over the rows of a warp, across warps.
    pub warp_load: Summary,
    /// Requests for the same cache line of a column of B, across all its lines; one request is
    /// one row that reads the line.
    pub same_cache_lines: Summary,
    /// Distinct cache lines that a warp requests, across warps.
    pub distinct_cache_lines_per_warp: Summary,
    /// Cache lines, distinct or not, that a warp requests, across warps.
    pub total_cache_lines_per_warp: Summary,
    /// Hamming distance of the masks of adjacent rows, across adjacent rows.
    pub adjacent_vector_distance: Summary,
}

impl Features {
    /// Number of features.
    pub const COUNT: usize = 24;

    /// The first so many features do not depend on the GPU: "matrix only" in the study.
    pub const MATRIX_ONLY: usize = 9;

    /// Names of the values, in the order of [`Features::values`].
    pub const NAMES: [&str; Self::COUNT] = [
        "nrow",
        "ncol",
        "density",
        "nnz-per-row-min",
        "nnz-per-row-mean",
        "nnz-per-row-max",
        "nnz-blocks-per-row-min",
        "nnz-blocks-per-row-mean",
        "nnz-blocks-per-row-max",
        "warp-load-min",
        "warp-load-mean",
        "warp-load-max",
        "same-cache-lines-min",
        "same-cache-lines-mean",
        "same-cache-lines-max",
        "distinct-cache-lines-per-warp-min",
        "distinct-cache-lines-per-warp-mean",
        "distinct-cache-lines-per-warp-max",
        "total-cache-lines-per-warp-min",
        "total-cache-lines-per-warp-mean",
        "total-cache-lines-per-warp-max",
        "adjacent-vector-distance-min",
        "adjacent-vector-distance-mean",
        "adjacent-vector-distance-max",
    ];

    /// The features of `a`: one pass over its column indices on all threads. The counts are the
    /// same for any number of threads.
    ///
    /// # Errors
    /// [`gustav_core::Error::Argument`] for a shape with a 0, [`gustav_core::Error::Overflow`] for
    /// 2³¹ rows or cache lines, [`gustav_core::Error::OutOfMemory`].
    pub fn new<I: Index, O: Index>(a: &PatternView<'_, I, O>, shape: WarpShape) -> Result<Self> {
        let counts = Counts::new(a, shape.check()?)?;
        Ok(counts.features(a, 1.0, &counts.lengths))
    }

    /// The numbers in the order of [`Features::NAMES`].
    pub fn values(&self) -> [f64; Self::COUNT] {
        let of = |s: Summary| [s.min, s.mean, s.max];
        let mut values = [0.0; Self::COUNT];
        values[..3].copy_from_slice(&[self.nrow, self.ncol, self.density]);
        let summaries = [
            self.nnz_per_row,
            self.nnz_blocks_per_row,
            self.warp_load,
            self.same_cache_lines,
            self.distinct_cache_lines_per_warp,
            self.total_cache_lines_per_warp,
            self.adjacent_vector_distance,
        ];
        for (k, summary) in summaries.into_iter().enumerate() {
            values[3 + 3 * k..6 + 3 * k].copy_from_slice(&of(summary));
        }
        values
    }
}
