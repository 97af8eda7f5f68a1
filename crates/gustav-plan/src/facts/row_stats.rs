//! Row statistics: one parallel pass over the row offsets, a sample of the column indices.

use gustav_core::{Index, PatternView, parallel};

/// Statistics of the row lengths of a matrix and of the distribution of its columns.
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
    /// Fraction of sampled neighbouring entries whose columns are consecutive.
    pub consecutive: f64,
    /// Fraction of sampled row pairs (r, r + 1), both nonempty, with the same columns.
    pub same_as_next: f64,
    /// Fraction of sampled entries, the first eight of a row, that are within four columns of one of the first eight
    /// of the next row: high in grids and bands, where a row reads on where the row before has read.
    pub near_next: f64,
}

/// Statistics of the lengths of some rows.
#[derive(Clone, Copy)]
struct Lengths {
    min: usize,
    max: usize,
    squares: f64,
    empty: usize,
}

impl Lengths {
    fn new<O: Index>(offsets: &[O]) -> Self {
        let rows = offsets.len() - 1;
        let parts = parallel::map(rows.div_ceil(ROWS), |part| {
            let offsets = &offsets[part * ROWS..=rows.min((part + 1) * ROWS)];
            let lengths = offsets.windows(2).map(|w| w[1].to_usize() - w[0].to_usize());
            lengths.fold(Lengths::of_none(), |all, l| Lengths {
                min: all.min.min(l),
                max: all.max.max(l),
                squares: all.squares + (l as f64).powi(2),
                empty: all.empty + usize::from(l == 0),
            })
        });
        parts.into_iter().fold(Lengths::of_none(), |all, part| Lengths {
            min: all.min.min(part.min),
            max: all.max.max(part.max),
            squares: all.squares + part.squares,
            empty: all.empty + part.empty,
        })
    }

    fn of_none() -> Self {
        Lengths { min: usize::MAX, max: 0, squares: 0.0, empty: 0 }
    }
}

// Rows of one parallel task.
const ROWS: usize = 1 << 14;
// Columns that are near each other, and entries of a row that are compared with those of the next.
const NEAR: usize = 4;
const COMPARED: usize = 8;
// Rows in the sample of column indices.
const SAMPLE: usize = 2048;

impl RowStats {
    /// The statistics of `a`: O(rows), plus the entries of at most 2048 rows.
    pub fn new<I: Index, O: Index>(a: &PatternView<'_, I, O>) -> Self {
        let (rows, nnz) = (a.nrows(), a.nnz());
        let Lengths { min, max, squares, empty } = Lengths::new(a.offsets());
        let mean = if rows == 0 { 0.0 } else { nnz as f64 / rows as f64 };
        let variance = if rows == 0 { 0.0 } else { (squares / rows as f64 - mean * mean).max(0.0) };

        let step = rows.div_ceil(SAMPLE).max(1);
        let (mut span, mut filled) = (0.0, 0usize);
        let (mut consecutive, mut neighbours) = (0usize, 0usize);
        let (mut same, mut pairs) = (0usize, 0usize);
        let (mut near, mut compared) = (0usize, 0usize);
        for r in (0..rows).step_by(step) {
            let cols = a.row(r);
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
                let next = a.row(r + 1);
                same += usize::from(next == cols);
                let of_next = &next[..next.len().min(COMPARED)];
                let is_near = |c: &&I| {
                    of_next.iter().any(|other| other.to_usize().abs_diff(c.to_usize()) <= NEAR)
                };
                let first = &cols[..cols.len().min(COMPARED)];
                compared += first.len();
                near += first.iter().filter(is_near).count();
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
            near_next: share(near, compared),
        }
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::Pattern;

    use super::*;

    fn of(rows: usize, cols: usize, row: impl Fn(usize) -> Vec<u32>) -> RowStats {
        let (mut offsets, mut indices) = (vec![0u32], Vec::new());
        for i in 0..rows {
            indices.extend(row(i));
            offsets.push(indices.len() as u32);
        }
        RowStats::new(&Pattern::new(rows, cols, offsets, indices).unwrap().view())
    }

    #[test]
    fn rows_that_read_on_are_near_the_next() {
        let band = of(1000, 1100, |i| vec![i as u32, i as u32 + 50]);
        assert_eq!((band.near_next, band.mean_row_span), (1.0, 51.0));
        // Narrow rows, each elsewhere than the one before.
        let apart = of(1000, 100_000, |i| {
            let first = (i * 77_777 % 99_000) as u32;
            vec![first, first + 3]
        });
        assert_eq!((apart.near_next, apart.mean_row_span), (0.0, 4.0));
        let half = of(1000, 100_000, |i| vec![i as u32, (50_000 + i * 7919 % 49_000) as u32]);
        assert!((half.near_next - 0.5).abs() < 0.01, "{half:?}");
        // Of long rows the beginning alone.
        let long = of(1000, 2000, |i| (i as u32..i as u32 + 8).chain([1900, 1950]).collect());
        assert_eq!(long.near_next, 1.0);
        // Without entries, or without any in the next row, nothing is near.
        assert_eq!(of(10, 10, |_| vec![]).near_next, 0.0);
        assert_eq!(of(10, 10, |i| if i % 2 == 0 { vec![3] } else { vec![] }).near_next, 0.0);
    }
}
