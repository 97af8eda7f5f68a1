//! Converts blocks of rows of a dense matrix to CSR in memory of the caller, in the three steps of
//! Chen et al. (2025, §3.3): count, prefix sum, fill; parallel over rows.

use std::ops::Range;

use gustav_core::parallel::{self, Shared};
use gustav_core::{DenseView, Error, IndexType, Layout, Result, Scalar};

use crate::Threads;

// Rows of one parallel task.
const ROWS: usize = 4;

/// Memory for rows in CSR form: one offset more than rows, and capacity for all their nonzeros.
#[derive(Debug)]
pub struct CsrRowsMut<'a, T> {
    /// Row offsets.
    pub offsets: &'a mut [u32],
    /// Column indices.
    pub indices: &'a mut [u32],
    /// Values.
    pub values: &'a mut [T],
}

/// Writes the nonzeros of rows `rows` of `dense` to `to`, with offsets from `first` on, and returns
/// how many there are. Allocates nothing.
///
/// # Errors
/// [`Error::Unsupported`] for a column-major matrix, [`Error::Length`] when `to` has another number
/// of offsets or too little capacity, [`Error::Overflow`] when offsets or columns pass u32.
pub fn compress<T: Scalar>(
    threads: &Threads,
    dense: DenseView<'_, T>,
    rows: Range<usize>,
    first: u32,
    to: CsrRowsMut<'_, T>,
) -> Result<usize> {
    check(&dense, &rows, to.offsets.len())?;
    let row = |i: usize| dense.line(rows.start + i);
    let CsrRowsMut { offsets, indices, values } = to;
    threads.run(|| {
        parallel::each_mut(&mut offsets[1..], ROWS, |i, count| {
            // At most `columns`, which fit.
            *count = row(i).iter().filter(|v| !v.is_zero()).count() as u32;
        });
        let nnz: u64 = offsets[1..].iter().map(|&c| u64::from(c)).sum();
        let capacity = indices.len().min(values.len());
        if nnz > capacity as u64 {
            let found = usize::try_from(nnz).unwrap_or(usize::MAX);
            return Err(Error::Length {
                what: "capacity for nonzeros",
                expected: found,
                found: capacity,
            });
        }
        if u64::from(first) + nnz > u64::from(u32::MAX) {
            let need = u128::from(first) + u128::from(nnz);
            let index_type = IndexType::U32;
            return Err(Error::Overflow { what: "row offset", need, index_type });
        }
        offsets[0] = first;
        for i in 1..offsets.len() {
            offsets[i] += offsets[i - 1];
        }
        let (to_i, to_v, offsets) = (Shared::new(indices), Shared::new(values), &*offsets);
        parallel::ranges(rows.len(), ROWS, |part| {
            for i in part {
                let own = (offsets[i] - first) as usize..(offsets[i + 1] - first) as usize;
                // SAFETY: the rows' ranges are disjoint, and the capacity was checked.
                unsafe { fill(row(i), to_i.slice(own.clone()), to_v.slice(own)) };
            }
        });
        Ok(nnz as usize)
    })
}

/// The nonzeros of a row. Every element is written to the position of the next nonzero, which
/// advances if the element is nonzero: no branch can be mispredicted.
fn fill<T: Scalar>(row: &[T], indices: &mut [u32], values: &mut [T]) {
    let mut at = 0;
    for (j, value) in row.iter().enumerate() {
        // Past the last nonzero.
        if at == indices.len() {
            break;
        }
        indices[at] = j as u32;
        values[at] = *value;
        at += usize::from(!value.is_zero());
    }
}

fn check<T: Scalar>(dense: &DenseView<'_, T>, rows: &Range<usize>, offsets: usize) -> Result<()> {
    if dense.layout() != Layout::RowMajor {
        return Err(Error::Unsupported {
            problem: format!("a {} matrix to CSR by blocks of rows", dense.layout()),
            backend: "cpu".into(),
            reason: "its rows are not contiguous".into(),
            nearest: "Csr::from_dense, or Dense::to_layout first".into(),
        });
    }
    let length = |expected, found| Err(Error::Length { what: "rows to convert", expected, found });
    if rows.start > rows.end || rows.end > dense.nrows() {
        return length(dense.nrows(), rows.end);
    }
    if offsets != rows.len() + 1 {
        return length(rows.len() + 1, offsets);
    }
    match u32::try_from(dense.ncols()) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::Overflow {
            what: "column index",
            need: dense.ncols() as u128,
            index_type: IndexType::U32,
        }),
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::{Csr, Dense};

    use super::*;

    #[test]
    fn blocks_equal_the_conversion_of_the_whole_matrix() {
        let of = |i: usize, j: usize| {
            if (i * 7 + j * 3).is_multiple_of(5) { (i + j) as f64 } else { 0.0 }
        };
        let dense = Dense::from_fn(13, 9, Layout::RowMajor, of).unwrap();
        let whole = Csr::<f64>::from_dense(dense.view()).unwrap();
        let threads = Threads::new(2, false).unwrap();
        for rows in [0..13, 0..4, 4..13, 5..5] {
            let (mut offsets, mut indices, mut values) =
                (vec![9; rows.len() + 1], vec![9; 117], vec![9.0; 117]);
            let to =
                CsrRowsMut { offsets: &mut offsets, indices: &mut indices, values: &mut values };
            let first = whole.offsets()[rows.start];
            let nnz = compress(&threads, dense.view(), rows.clone(), first, to).unwrap();
            let own = whole.offsets()[rows.start] as usize..whole.offsets()[rows.end] as usize;
            assert_eq!(nnz, own.len());
            assert_eq!(offsets, whole.offsets()[rows.start..=rows.end]);
            assert_eq!(indices[..nnz], whole.indices()[own.clone()]);
            assert_eq!(values[..nnz], whole.values()[own]);
        }
    }

    #[test]
    fn too_little_capacity_is_an_error() {
        let dense = Dense::from_fn(3, 3, Layout::RowMajor, |_, _| 1.0f32).unwrap();
        let (mut offsets, mut indices, mut values) = ([0; 4], [0; 8], [0.0; 8]);
        let to = CsrRowsMut { offsets: &mut offsets, indices: &mut indices, values: &mut values };
        let error = compress(&Threads::global(), dense.view(), 0..3, 0, to).unwrap_err();
        assert!(matches!(error, Error::Length { expected: 9, found: 8, .. }), "{error}");
    }
}
