//! Row statistics: one parallel pass over the row offsets, a sample of the column indices.

use gustav_core::{CsrView, Index, Scalar};
use rayon::prelude::*;

/// How long the rows of a matrix are, and how its columns lie.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct RowStats {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Stored entries.
    pub nnz: usize,
    /// Length of the shortest row.
    pub min_row_length: usize,
    /// Mean length of a row, 0 for a matrix without rows.
    pub mean_row_length: f64,
    /// Length of the longest row.
    pub max_row_length: usize,
    /// Standard deviation of the row lengths.
    pub row_length_deviation: f64,
    /// Rows without entries.
    pub empty_rows: usize,
    /// Mean over sampled non-empty rows of (largest − smallest column + 1).
    pub mean_row_span: f64,
    /// Share of sampled neighbouring entries whose columns are consecutive.
    pub consecutive: f64,
    /// Share of sampled row pairs (r, r + 1), both non-empty, with the same columns.
    pub same_as_next: f64,
}

// Rows looked into for the sampled facts.
const SAMPLE: usize = 2048;

impl RowStats {
    /// The statistics of `a`: O(rows), plus the entries of at most 2048 rows.
    pub fn new<T: Scalar, I: Index, O: Index>(a: &CsrView<'_, T, I, O>) -> Self {
        let (rows, nnz) = (a.nrows(), a.nnz());
        let (min, max, squares, empty) = a.offsets()[..=rows]
            .par_windows(2)
            .with_min_len(1 << 14)
            .map(|w| w[1].to_usize() - w[0].to_usize())
            .fold(
                || (usize::MAX, 0, 0.0, 0),
                |(lo, hi, sq, e), l| {
                    (lo.min(l), hi.max(l), sq + (l as f64).powi(2), e + usize::from(l == 0))
                },
            )
            .reduce(
                || (usize::MAX, 0, 0.0, 0),
                |a, b| (a.0.min(b.0), a.1.max(b.1), a.2 + b.2, a.3 + b.3),
            );
        let mean = if rows == 0 { 0.0 } else { nnz as f64 / rows as f64 };
        let variance = if rows == 0 { 0.0 } else { (squares / rows as f64 - mean * mean).max(0.0) };

        let step = rows.div_ceil(SAMPLE).max(1);
        let (mut span, mut filled) = (0.0, 0usize);
        let (mut consecutive, mut neighbours) = (0usize, 0usize);
        let (mut same, mut pairs) = (0usize, 0usize);
        for r in (0..rows).step_by(step) {
            let cols = a.row(r).0;
            let (Some(lo), Some(hi)) = (cols.iter().min(), cols.iter().max()) else {
                continue;
            };
            filled += 1;
            span += (hi.to_usize() - lo.to_usize() + 1) as f64;
            neighbours += cols.len() - 1;
            consecutive +=
                cols.windows(2).filter(|w| w[1].to_usize() == w[0].to_usize() + 1).count();
            if r + 1 < rows && a.row_len(r + 1) > 0 {
                pairs += 1;
                same += usize::from(a.row(r + 1).0 == cols);
            }
        }
        let share = |part: usize, of: usize| {
            if of == 0 { 0.0 } else { part as f64 / of as f64 }
        };
        RowStats {
            rows,
            cols: a.ncols(),
            nnz,
            min_row_length: if rows == 0 { 0 } else { min },
            mean_row_length: mean,
            max_row_length: max,
            row_length_deviation: variance.sqrt(),
            empty_rows: empty,
            mean_row_span: if filled == 0 { 0.0 } else { span / filled as f64 },
            consecutive: share(consecutive, neighbours),
            same_as_next: share(same, pairs),
        }
    }
}
