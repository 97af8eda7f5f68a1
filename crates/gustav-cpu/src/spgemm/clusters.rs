//! Whether the columns of B lie in clusters, judged by a sample of rows. The sample does not depend
//! on the number of threads, because the order of columns in unsorted rows of C depends on the
//! result.

use super::operands::{Indices, Right, Rows};

// The sample: rows of A, of each the row of B of its middle nonzero, and pairs of neighbours in
// that.
const ROWS: usize = 128;
const PAIRS: usize = 24;
const CLOSE: u32 = 4;

/// Whether most columns in the rows of B that the product reads have a close neighbour.
pub(super) fn clustered(a: &Rows<impl Indices>, b: &Right<'_, impl Indices>) -> bool {
    let step = a.nrows.div_ceil(ROWS).max(1);
    let (mut pairs, mut close) = (0, 0);
    for row in (0..a.nrows).step_by(step) {
        let range = a.range(row);
        if range.is_empty() {
            continue;
        }
        let middle = a.column(range.start + range.len() / 2);
        for pair in b.row(middle).windows(2).take(PAIRS) {
            pairs += 1;
            close += usize::from(pair[0].abs_diff(pair[1]) < CLOSE);
        }
    }
    2 * close > pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_clusters_and_scattered_columns_are_not() {
        for (step, expected) in [(1, true), (3, true), (4, false), (100, false)] {
            let (mut offsets, mut indices) = (vec![0u32], Vec::new());
            for row in 0..600u32 {
                indices.extend((0..row % 6).map(|k| k * step));
                offsets.push(indices.len() as u32);
            }
            assert_eq!(judged(&offsets, &indices), expected, "{step}");
        }
        assert!(!judged(&[0], &[]));
    }

    fn judged(offsets: &[u32], columns: &[u32]) -> bool {
        let (nrows, ncols) = (offsets.len() - 1, 600);
        let a = Rows { nrows, ncols, offsets, columns };
        clustered(&a, &Right { nrows, ncols, offsets, columns })
    }
}
