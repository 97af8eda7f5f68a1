//! C from blocks of rows that were computed separately.

use gustav_core::buffer::try_vec;
use gustav_core::{AnyPattern, Buffer, Error, IndexType, Result, Scalar};

use super::operands::{Product, UninitIndices, most};

/// Consecutive rows: their lengths, and their entries one after another.
pub(super) struct RowBlock<U> {
    pub lengths: Vec<usize>,
    pub columns: Vec<u64>,
    pub values: Vec<U>,
}

impl<U> RowBlock<U> {
    /// With capacity for `rows` rows of `entries` entries together.
    pub fn new(rows: usize, entries: usize) -> Result<Self> {
        Ok(RowBlock {
            lengths: try_vec(rows, "rows of C")?,
            columns: try_vec(entries, "rows of C")?,
            values: try_vec(entries, "rows of C")?,
        })
    }
}

/// The values of blocks that follow one another.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(super) fn joined_values<U: Scalar>(blocks: &[RowBlock<U>]) -> Result<Buffer<U>> {
    let nnz = blocks.iter().map(|block| block.values.len()).sum();
    let mut values = try_vec(nnz, "values of C")?;
    blocks.iter().for_each(|block| values.extend_from_slice(&block.values));
    Ok(values.into())
}

/// C from blocks that follow one another.
///
/// # Safety
/// The blocks have `nrows` rows together, of columns below `ncols`, which fit the index type.
///
/// # Errors
/// [`Error::Overflow`] when the entries outnumber the offset type, [`Error::OutOfMemory`].
pub(super) unsafe fn joined<U: Scalar>(
    blocks: &[RowBlock<U>],
    (nrows, ncols): (usize, usize),
    types: (IndexType, IndexType),
) -> Result<Product<U>> {
    let parts: Vec<_> = blocks.iter().map(|b| (&b.lengths[..], &b.columns[..])).collect();
    // SAFETY: promised by the caller.
    let pattern = unsafe { joined_pattern(&parts, (nrows, ncols), types)? };
    Ok(Product { pattern, values: joined_values(blocks)? })
}

/// # Safety
/// As [`joined`].
unsafe fn joined_pattern(
    parts: &[(&[usize], &[u64])],
    (nrows, ncols): (usize, usize),
    (column, offset): (IndexType, IndexType),
) -> Result<AnyPattern<'static>> {
    let nnz = parts.iter().map(|(_, columns)| columns.len()).sum();
    if nnz as u64 > most(offset) {
        let what = "row offset of C";
        return Err(Error::Overflow { what, need: nnz as u128, index_type: offset });
    }
    let mut offsets = UninitIndices::new(offset, nrows + 1, "row offsets of C")?;
    let mut indices = UninitIndices::new(column, nnz, "column indices of C")?;
    // SAFETY: both are written here and returned afterwards; lengths of rows add up to offsets,
    // and the rest is promised by the caller.
    unsafe {
        let (to_offsets, to_columns) = (offsets.shared(), indices.shared());
        to_offsets.put(0, 0);
        let lengths = parts.iter().flat_map(|(lengths, _)| *lengths);
        let ends = lengths.scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        ends.enumerate().for_each(|(row, end)| to_offsets.put(row + 1, end));
        let columns = parts.iter().flat_map(|(_, columns)| *columns);
        columns.enumerate().for_each(|(at, column)| to_columns.put(at, *column as usize));
        Ok(offsets.into_pattern(indices, nrows, ncols, nnz))
    }
}
