//! CSR: row offsets, column indices, values.

use std::ops::Range;

use crate::convert::convert;
use crate::{Buffer, Index, Result, Scalar, validate};

/// A sparse matrix in compressed sparse row form, owned.
///
/// `T` is the stored value, `I` the column-index type, `O` the row-offset type. Row `i` is
/// `indices[offsets[i]..offsets[i + 1]]` with the values at the same positions. Columns of a
/// row may be unsorted and may repeat (repeated entries add up); nothing is sorted or summed
/// unless asked for, see [`Csr::canonicalize`].
///
/// Every `Csr` satisfies: `offsets[0] == 0`, offsets never decrease,
/// `offsets[nrows] == indices.len() == values.len()`, every index is below `ncols`.
#[derive(Clone, Debug, PartialEq)]
pub struct Csr<T, I = u32, O = u32>
where
    T: Scalar,
    I: Index,
    O: Index,
{
    nrows: usize,
    ncols: usize,
    offsets: Buffer<O>,
    indices: Buffer<I>,
    values: Buffer<T>,
}

/// A sparse matrix in CSR form over arrays that somebody else holds.
#[derive(Clone, Copy, Debug)]
pub struct CsrView<'a, T, I = u32, O = u32>
where
    T: Scalar,
    I: Index,
    O: Index,
{
    nrows: usize,
    ncols: usize,
    offsets: &'a [O],
    indices: &'a [I],
    values: &'a [T],
}

impl<T: Scalar, I: Index, O: Index> Csr<T, I, O> {
    /// A matrix from its three arrays (`Vec` or [`Buffer`]), checked.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length), [`Error::Offsets`](crate::Error::Offsets) or
    /// [`Error::Index`](crate::Error::Index) with the first place where an invariant fails.
    pub fn new(
        nrows: usize,
        ncols: usize,
        offsets: impl Into<Buffer<O>>,
        indices: impl Into<Buffer<I>>,
        values: impl Into<Buffer<T>>,
    ) -> Result<Self> {
        let (offsets, indices, values) = (offsets.into(), indices.into(), values.into());
        validate::compressed(nrows, ncols, &offsets, &indices, values.len())?;
        Ok(Csr { nrows, ncols, offsets, indices, values })
    }

    /// A matrix from its three arrays, not checked in release builds.
    ///
    /// # Safety
    /// The invariants listed at [`Csr`] hold; kernels read through the indices unchecked.
    pub unsafe fn new_unchecked(
        nrows: usize,
        ncols: usize,
        offsets: impl Into<Buffer<O>>,
        indices: impl Into<Buffer<I>>,
        values: impl Into<Buffer<T>>,
    ) -> Self {
        let (offsets, indices, values) = (offsets.into(), indices.into(), values.into());
        debug_assert!(validate::compressed(nrows, ncols, &offsets, &indices, values.len()).is_ok());
        Csr { nrows, ncols, offsets, indices, values }
    }

    /// The `nrows` × `ncols` matrix with no entries.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) for the offsets.
    pub fn empty(nrows: usize, ncols: usize) -> Result<Self> {
        let offsets = Buffer::zeroed(nrows.saturating_add(1), "row offsets")?;
        Ok(Csr { nrows, ncols, offsets, indices: Vec::new().into(), values: Vec::new().into() })
    }

    /// The matrix as a view; what kernels take.
    pub fn view(&self) -> CsrView<'_, T, I, O> {
        CsrView {
            nrows: self.nrows,
            ncols: self.ncols,
            offsets: &self.offsets,
            indices: &self.indices,
            values: &self.values,
        }
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.nrows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.ncols
    }

    /// Number of stored entries, explicit zeros included.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// Row offsets, `nrows + 1` of them.
    pub fn offsets(&self) -> &[O] {
        &self.offsets
    }

    /// Column indices.
    pub fn indices(&self) -> &[I] {
        &self.indices
    }

    /// Values.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Values, to change them under an unchanged pattern.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// Row offsets and column indices to read, values to change under them.
    pub fn arrays_mut(&mut self) -> (&[O], &[I], &mut [T]) {
        (&self.offsets, &self.indices, &mut self.values)
    }

    /// Row offsets, column indices and values, for their next owner.
    pub fn into_parts(self) -> (Buffer<O>, Buffer<I>, Buffer<T>) {
        (self.offsets, self.indices, self.values)
    }
}

impl<'a, T: Scalar, I: Index, O: Index> CsrView<'a, T, I, O> {
    /// A matrix over borrowed arrays, checked; see [`Csr::new`]. For `i32` or `i64` arrays
    /// see [`crate::index::unsigned`].
    ///
    /// # Errors
    /// As [`Csr::new`].
    pub fn new(
        nrows: usize,
        ncols: usize,
        offsets: &'a [O],
        indices: &'a [I],
        values: &'a [T],
    ) -> Result<Self> {
        validate::compressed(nrows, ncols, offsets, indices, values.len())?;
        Ok(CsrView { nrows, ncols, offsets, indices, values })
    }

    /// A matrix over borrowed arrays, not checked in release builds.
    ///
    /// # Safety
    /// The invariants listed at [`Csr`] hold.
    pub unsafe fn new_unchecked(
        nrows: usize,
        ncols: usize,
        offsets: &'a [O],
        indices: &'a [I],
        values: &'a [T],
    ) -> Self {
        debug_assert!(validate::compressed(nrows, ncols, offsets, indices, values.len()).is_ok());
        CsrView { nrows, ncols, offsets, indices, values }
    }

    /// Number of rows.
    #[inline(always)]
    pub fn nrows(&self) -> usize {
        self.nrows
    }

    /// Number of columns.
    #[inline(always)]
    pub fn ncols(&self) -> usize {
        self.ncols
    }

    /// Number of stored entries, explicit zeros included.
    #[inline(always)]
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// Row offsets, `nrows + 1` of them.
    #[inline(always)]
    pub fn offsets(&self) -> &'a [O] {
        self.offsets
    }

    /// Column indices.
    #[inline(always)]
    pub fn indices(&self) -> &'a [I] {
        self.indices
    }

    /// Values.
    #[inline(always)]
    pub fn values(&self) -> &'a [T] {
        self.values
    }

    /// Positions of row `row` in the index and value arrays.
    #[inline(always)]
    pub fn row_range(&self, row: usize) -> Range<usize> {
        self.offsets[row].to_usize()..self.offsets[row + 1].to_usize()
    }

    /// Number of entries of row `row`.
    #[inline(always)]
    pub fn row_len(&self, row: usize) -> usize {
        self.row_range(row).len()
    }

    /// Column indices and values of row `row`.
    #[inline(always)]
    pub fn row(&self, row: usize) -> (&'a [I], &'a [T]) {
        let range = self.row_range(row);
        (&self.indices[range.clone()], &self.values[range])
    }

    /// The same matrix with other values (same number of them, possibly of another type).
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length).
    pub fn with_values<'b, U: Scalar>(&self, values: &'b [U]) -> Result<CsrView<'b, U, I, O>>
    where
        'a: 'b,
    {
        validate::length("values", self.nnz(), values.len())?;
        Ok(CsrView {
            nrows: self.nrows,
            ncols: self.ncols,
            offsets: self.offsets,
            indices: self.indices,
            values,
        })
    }

    /// Whether the columns of every row strictly increase (sorted, no duplicates).
    pub fn is_canonical(&self) -> bool {
        (0..self.nrows).all(|r| self.row(r).0.is_sorted_by(|a, b| a < b))
    }

    /// An owned copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn to_owned(&self) -> Result<Csr<T, I, O>> {
        Ok(Csr {
            nrows: self.nrows,
            ncols: self.ncols,
            offsets: copy(self.offsets, "row offsets")?,
            indices: copy(self.indices, "column indices")?,
            values: copy(self.values, "values")?,
        })
    }

    /// The same matrix with 64-bit or 32-bit offsets and indices.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) when a size does not fit.
    pub fn to_indices<I2: Index, O2: Index>(&self) -> Result<Csr<T, I2, O2>> {
        I2::try_from_usize(self.ncols.saturating_sub(1), "column index")?;
        O2::try_from_usize(self.nnz(), "row offset")?;
        Ok(Csr {
            nrows: self.nrows,
            ncols: self.ncols,
            offsets: convert(self.offsets, "row offsets")?.into(),
            indices: convert(self.indices, "column indices")?.into(),
            values: copy(self.values, "values")?,
        })
    }
}

impl<'a, T: Scalar, I: Index, O: Index> From<&'a Csr<T, I, O>> for CsrView<'a, T, I, O> {
    fn from(a: &'a Csr<T, I, O>) -> Self {
        a.view()
    }
}

pub(crate) fn copy<T: bytemuck::Pod>(from: &[T], what: &'static str) -> Result<Buffer<T>> {
    let mut to = Buffer::uninit(from.len(), what)?;
    // SAFETY: both blocks hold `from.len()` values and cannot overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), from.len());
        Ok(to.assume_init(from.len()))
    }
}
