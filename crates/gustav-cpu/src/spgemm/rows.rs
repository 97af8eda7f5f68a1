//! Rows of C made part by part, and C from its parts.

use gustav_core::buffer::try_vec;
use gustav_core::{Csr, Index, Result, Scalar};

/// Neighbouring rows: their lengths, and their entries one after another.
pub(super) struct Rows<T, I> {
    pub lengths: Vec<usize>,
    pub indices: Vec<I>,
    pub values: Vec<T>,
}

impl<T, I> Rows<T, I> {
    /// With room for `rows` rows of `entries` entries together.
    pub fn new(rows: usize, entries: usize) -> Result<Self> {
        Ok(Rows {
            lengths: try_vec(rows, "rows of C")?,
            indices: try_vec(entries, "rows of C")?,
            values: try_vec(entries, "rows of C")?,
        })
    }
}

/// C from parts that follow one another.
///
/// # Safety
/// The parts have `nrows` rows together, of columns below `ncols`.
///
/// # Errors
/// [`gustav_core::Error::Overflow`] when the entries outnumber the offset type,
/// [`gustav_core::Error::OutOfMemory`].
pub(super) unsafe fn joined<T: Scalar, I: Index, O: Index>(
    parts: Vec<Rows<T, I>>,
    nrows: usize,
    ncols: usize,
) -> Result<Csr<T, I, O>> {
    let nnz = parts.iter().map(|r| r.indices.len()).sum();
    O::try_from_usize(nnz, "row offset of C")?;
    let mut offsets = try_vec(nrows + 1, "row offsets of C")?;
    let mut indices = try_vec(nnz, "column indices of C")?;
    let mut values = try_vec(nnz, "values of C")?;
    let mut end = 0;
    offsets.push(O::default());
    for part in parts {
        offsets.extend(part.lengths.iter().map(|length| {
            end += length;
            O::truncate(end)
        }));
        indices.extend_from_slice(&part.indices);
        values.extend_from_slice(&part.values);
    }
    // SAFETY: lengths of rows add up to offsets; the rest is the caller's promise.
    Ok(unsafe { Csr::new_unchecked(nrows, ncols, offsets, indices, values) })
}
