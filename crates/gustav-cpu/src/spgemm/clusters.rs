//! How the columns of B lie, judged by a few rows: the same for any number of threads, as the order
//! of columns in unsorted rows of C depends on it.

use gustav_core::{CsrView, Index, Scalar};

// Rows of A, the row of B behind the middle of each, and neighbours in it that speak for all.
const ROWS: usize = 128;
const PAIRS: usize = 24;
const CLOSE: usize = 4;

/// Whether most columns of rows of B that the product meets have a close neighbour.
pub(super) fn clustered<T: Scalar, I: Index, J: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
    b: &CsrView<'_, T, J, O>,
) -> bool {
    let step = a.nrows().div_ceil(ROWS).max(1);
    let (mut pairs, mut close) = (0, 0);
    for row in (0..a.nrows()).step_by(step) {
        let inner = a.row(row).0;
        let Some(k) = inner.get(inner.len() / 2) else { continue };
        for pair in b.row(k.to_usize()).0.windows(2).take(PAIRS) {
            pairs += 1;
            close += usize::from(pair[0].to_usize().abs_diff(pair[1].to_usize()) < CLOSE);
        }
    }
    2 * close > pairs
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;

    #[test]
    fn runs_are_clusters_and_scattered_columns_are_not() {
        for (step, expected) in [(1, true), (3, true), (4, false), (100, false)] {
            let (mut offsets, mut indices) = (vec![0u32], Vec::new());
            for row in 0..600u32 {
                indices.extend((0..row % 6).map(|k| k * step));
                offsets.push(indices.len() as u32);
            }
            let values = vec![1f32; indices.len()];
            let a: Csr<f32> = Csr::new(600, 600, offsets, indices, values).unwrap();
            assert_eq!(clustered(&a.view(), &a.view()), expected, "{step}");
        }
        let empty: Csr<f32> = Csr::new(0, 0, vec![0], vec![], vec![]).unwrap();
        assert!(!clustered(&empty.view(), &empty.view()));
    }
}
