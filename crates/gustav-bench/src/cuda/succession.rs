//! Operands of two products, of which the second reads what the first writes, to see whether it waits for it.

use gustav_core::{CsrView, Result, Scalar};
use gustav_cuda::{DeviceBuffer, DeviceDense};

use super::Started;
use super::resident::{Output, packed};
use crate::engine::Task;

/// Reads of memory that run while both products are queued.
pub(super) const READINGS: usize = 16;
// Most nonzeros whose columns are counted.
const COUNTED: usize = 1 << 20;
// Operands begin at multiples of so many rows, so that they are aligned for wide loads.
const ALIGNED: usize = 16;
// The part of C that the first rows of B overlap is one of so many.
const PARTS: usize = 16;
// Groups of values of a large C that are compared, and values in each.
const GROUPS: usize = 64;
const GROUP: usize = 1 << 16;

/// Where C of a product and B of the next begin in memory that holds both, in rows as long as theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overlap {
    c: usize,
    b: usize,
}

/// The overlaps to try: one in which A refers to as many rows of C as possible, and one in which the first rows of B
/// are the last ones of C. With nonzeros near the diagonal and only the first, a product that begins too early may
/// read rows that were written long before.
pub(super) fn overlaps<T: Scalar>(a: &CsrView<'_, T>) -> [Overlap; 2] {
    let m = a.nrows();
    let last = (m - m.div_ceil(PARTS)) / ALIGNED * ALIGNED;
    [Overlap { c: most_read(a), b: 0 }, Overlap { c: 0, b: last }]
}

/// The first of as many rows of B as C has to which most nonzeros refer; 0 where B has no more rows.
fn most_read<T: Scalar>(a: &CsrView<'_, T>) -> usize {
    let (m, k) = (a.nrows(), a.ncols());
    if k <= m {
        return 0;
    }
    // At every column, the nonzeros in those before it.
    let mut before = vec![0u32; k + 1];
    for column in a.indices().iter().step_by(a.nnz() / COUNTED + 1) {
        before[*column as usize + 1] += 1;
    }
    for column in 0..k {
        before[column + 1] += before[column];
    }
    let firsts = (0..=k - m).step_by(ALIGNED);
    firsts.max_by_key(|first| before[first + m] - before[*first]).unwrap_or(0)
}

/// C of a product and B of the next, in the same memory; both packed. Of column-major matrices the values overlap that
/// the rows of an [`Overlap`] would have in row-major ones.
pub(super) struct Chained<T> {
    pub c: Output<T>,
    pub b: DeviceDense<T>,
}

impl<T: Scalar> Chained<T> {
    /// Zeros.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`], [`gustav_core::Error::Device`].
    pub fn new(gpu: &Started, task: &Task<'_, T>, overlap: Overlap) -> Result<Self> {
        let (m, k, n) = (task.a.nrows(), task.a.ncols(), task.columns);
        let rows = (overlap.c + m).max(overlap.b + k);
        let all = DeviceBuffer::zeros(&gpu.device, rows * n, "products in succession")?;
        // SAFETY: nobody else has the memory. Its users expect a write of C to change B and one of B to change C, and
        // no pattern lies in it. A product reads the one and writes an output of its own, or writes the other.
        let (c, b) = unsafe { (all.part(overlap.c * n, m * n), all.part(overlap.b * n, k * n)) };
        Ok(Chained { c: Output::over(task, c)?, b: packed(k, n, task.layouts.b(), b)? })
    }
}

/// The values of `c`; of a large one evenly spaced groups, the first and the last among them.
///
/// # Errors
/// [`gustav_core::Error::OutOfMemory`] on the host, [`gustav_core::Error::Device`].
pub(super) fn some_of<T: Scalar>(c: &DeviceBuffer<T>) -> Result<Vec<T>> {
    if c.len() <= GROUPS * GROUP {
        return Ok(c.to_host()?.to_vec());
    }
    let mut values = vec![T::zero(); GROUPS * GROUP];
    for (k, group) in values.chunks_exact_mut(GROUP).enumerate() {
        c.read_at(k * (c.len() - GROUP) / (GROUPS - 1), group)?;
    }
    Ok(values)
}

/// Whether a product that found NaN where the one before was to write has read it: whether `found` is NaN where
/// the `right` result is not.
pub(super) fn reads_old_values<T: Scalar>(found: &[T], right: &[T]) -> bool {
    let is_nan = |value: &T| value.to_f64().is_nan();
    found.iter().zip(right).any(|(found, right)| is_nan(found) && !is_nan(right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustav_core::Csr;

    /// A matrix of `m` rows, each with one nonzero, in `column`.
    fn one_column(m: usize, k: usize, column: u32) -> Csr<f32> {
        let offsets: Vec<u32> = (0..=m as u32).collect();
        Csr::new(m, k, offsets, vec![column; m], vec![1.0; m]).expect("a matrix")
    }

    #[test]
    fn c_lies_where_a_reads_most() {
        for (m, k, column, c, b) in [
            // B begins with C, or with the end of C.
            (64, 64, 5, 0, 48),
            (64, 8, 5, 0, 48),
            (8, 8, 5, 0, 0),
            (0, 4, 0, 0, 0),
        ] {
            let found = overlaps(&one_column(m, k, column).view());
            assert_eq!(found, [Overlap { c, b: 0 }, Overlap { c: 0, b }], "{m} x {k}");
        }
        for column in [0, 17, 50, 95] {
            let first = most_read(&one_column(32, 96, column).view());
            let read = column as usize;
            assert!(
                first.is_multiple_of(ALIGNED) && (first..first + 32).contains(&read),
                "{first}"
            );
        }
    }

    #[test]
    fn nan_counts_where_the_right_result_has_none() {
        let nan = f32::NAN;
        assert!(reads_old_values(&[1.0, nan], &[1.0, 2.0]));
        assert!(!reads_old_values(&[1.0, nan], &[1.0, nan]));
        assert!(!reads_old_values(&[1.0, 2.0], &[nan, 2.0]));
    }
}
