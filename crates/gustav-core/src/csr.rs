//! CSR: a pattern and values.

use std::ops::Range;

use crate::convert::convert;
use crate::{Buffer, Index, Pattern, PatternRef, PatternView, Result, Scalar, Values, validate};

/// A sparse matrix in compressed sparse row form, owned: a [`Pattern`] and as many values as it
/// has nonzeros.
///
/// `T` is the stored value, `I` the column-index type, `O` the row-offset type. Columns of a row
/// may be unsorted and may repeat (repeated entries add up); [`Csr::canonicalize`] sorts and sums
/// them.
#[derive(Clone, Debug, PartialEq)]
pub struct Csr<T, I = u32, O = u32>
where
    T: Scalar,
    I: Index,
    O: Index,
{
    pattern: Pattern<I, O>,
    values: Buffer<T>,
}

/// A sparse matrix in CSR form over borrowed arrays.
#[derive(Clone, Copy, Debug)]
pub struct CsrView<'a, T, I = u32, O = u32>
where
    T: Scalar,
    I: Index,
    O: Index,
{
    pattern: PatternView<'a, I, O>,
    values: &'a [T],
}

impl<T: Scalar, I: Index, O: Index> Csr<T, I, O> {
    /// A matrix from its three arrays (`Vec` or [`Buffer`]), checked.
    ///
    /// # Errors
    /// As [`Pattern::new`], and [`Error::Length`](crate::Error::Length) for the values.
    pub fn new(
        nrows: usize,
        ncols: usize,
        offsets: impl Into<Buffer<O>>,
        indices: impl Into<Buffer<I>>,
        values: impl Into<Buffer<T>>,
    ) -> Result<Self> {
        Self::from_pattern(&Pattern::new(nrows, ncols, offsets, indices)?, values)
    }

    /// A matrix of `pattern` with `values` in the order of its nonzeros; shares the pattern.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length) when there are not `nnz` values.
    pub fn from_pattern(pattern: &Pattern<I, O>, values: impl Into<Buffer<T>>) -> Result<Self> {
        let values = values.into();
        validate::length("values", pattern.nnz(), values.len())?;
        Ok(Csr { pattern: pattern.clone(), values })
    }

    /// A matrix from its three arrays, not checked in release builds.
    ///
    /// # Safety
    /// The invariants listed at [`Pattern`] hold and there are as many values as indices; kernels
    /// read through the indices unchecked.
    pub unsafe fn new_unchecked(
        nrows: usize,
        ncols: usize,
        offsets: impl Into<Buffer<O>>,
        indices: impl Into<Buffer<I>>,
        values: impl Into<Buffer<T>>,
    ) -> Self {
        // SAFETY: promised by the caller.
        let pattern = unsafe { Pattern::new_unchecked(nrows, ncols, offsets, indices) };
        let values = values.into();
        debug_assert_eq!(pattern.nnz(), values.len());
        Csr { pattern, values }
    }

    /// The `nrows` × `ncols` matrix with no entries.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) for the offsets.
    pub fn empty(nrows: usize, ncols: usize) -> Result<Self> {
        let offsets = Buffer::zeroed(nrows.saturating_add(1), "row offsets")?;
        Self::new(nrows, ncols, offsets, Vec::new(), Vec::new())
    }

    /// The matrix as a view.
    pub fn view(&self) -> CsrView<'_, T, I, O> {
        CsrView { pattern: self.pattern.view(), values: &self.values }
    }

    /// The pattern.
    pub fn pattern(&self) -> &Pattern<I, O> {
        &self.pattern
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.pattern.nrows()
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.pattern.ncols()
    }

    /// Number of stored entries, explicit zeros included.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Row offsets, `nrows + 1` of them.
    pub fn offsets(&self) -> &[O] {
        self.pattern.offsets()
    }

    /// Column indices.
    pub fn indices(&self) -> &[I] {
        self.pattern.indices()
    }

    /// Values, with the identity of the pattern.
    pub fn values(&self) -> Values<'_, T> {
        Values::of(self.pattern.id(), &self.values)
    }

    /// Values, mutable; the pattern is unchanged.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// The values, owned.
    pub fn into_values(self) -> Buffer<T> {
        self.values
    }

    /// Row offsets, column indices and values, owned. Offsets and indices are copied when the
    /// pattern has other owners.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) for the copy.
    pub fn into_parts(self) -> Result<(Buffer<O>, Buffer<I>, Buffer<T>)> {
        let (offsets, indices) = self.pattern.into_parts()?;
        Ok((offsets, indices, self.values))
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
        PatternView::new(nrows, ncols, offsets, indices)?.with_values(values)
    }

    /// A matrix over borrowed arrays, not checked in release builds.
    ///
    /// # Safety
    /// The invariants listed at [`Pattern`] hold and there are as many values as indices.
    pub unsafe fn new_unchecked(
        nrows: usize,
        ncols: usize,
        offsets: &'a [O],
        indices: &'a [I],
        values: &'a [T],
    ) -> Self {
        debug_assert_eq!(indices.len(), values.len());
        // SAFETY: promised by the caller.
        let pattern = unsafe { PatternView::new_unchecked(nrows, ncols, offsets, indices) };
        CsrView { pattern, values }
    }

    /// The pattern.
    #[inline(always)]
    pub fn pattern(&self) -> PatternView<'a, I, O> {
        self.pattern
    }

    /// Number of rows.
    #[inline(always)]
    pub fn nrows(&self) -> usize {
        self.pattern.nrows()
    }

    /// Number of columns.
    #[inline(always)]
    pub fn ncols(&self) -> usize {
        self.pattern.ncols()
    }

    /// Number of stored entries, explicit zeros included.
    #[inline(always)]
    pub fn nnz(&self) -> usize {
        self.pattern.nnz()
    }

    /// Row offsets, `nrows + 1` of them.
    #[inline(always)]
    pub fn offsets(&self) -> &'a [O] {
        self.pattern.offsets()
    }

    /// Column indices.
    #[inline(always)]
    pub fn indices(&self) -> &'a [I] {
        self.pattern.indices()
    }

    /// Values, with the identity of the pattern.
    #[inline(always)]
    pub fn values(&self) -> Values<'a, T> {
        Values::of(self.pattern.id(), self.values)
    }

    /// Positions of row `row` in the index and value arrays.
    #[inline(always)]
    pub fn row_range(&self, row: usize) -> Range<usize> {
        self.pattern.row_range(row)
    }

    /// Number of entries of row `row`.
    #[inline(always)]
    pub fn row_len(&self, row: usize) -> usize {
        self.pattern.row_len(row)
    }

    /// Column indices and values of row `row`.
    #[inline(always)]
    pub fn row(&self, row: usize) -> (&'a [I], &'a [T]) {
        let range = self.row_range(row);
        (&self.indices()[range.clone()], &self.values[range])
    }

    /// Whether the columns of every row strictly increase (sorted, no duplicates).
    pub fn is_canonical(&self) -> bool {
        self.pattern.is_canonical()
    }

    /// An owned copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn to_owned(&self) -> Result<Csr<T, I, O>> {
        Ok(Csr { pattern: self.pattern.to_owned()?, values: copy(self.values, "values")? })
    }

    /// The same matrix with 64-bit or 32-bit offsets and indices.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) when a size does not fit.
    pub fn to_indices<I2: Index, O2: Index>(&self) -> Result<Csr<T, I2, O2>> {
        I2::try_from_usize(self.ncols().saturating_sub(1), "column index")?;
        O2::try_from_usize(self.nnz(), "row offset")?;
        let offsets = convert::<_, O2>(self.offsets(), "row offsets")?;
        let indices = convert::<_, I2>(self.indices(), "column indices")?;
        let values = copy(self.values, "values")?;
        // SAFETY: the same numbers, which fit the types.
        Ok(unsafe { Csr::new_unchecked(self.nrows(), self.ncols(), offsets, indices, values) })
    }
}

impl<'a, I: Index, O: Index> PatternView<'a, I, O> {
    /// The matrix of this pattern with `values` in the order of its nonzeros.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length) when there are not `nnz` values.
    pub fn with_values<T: Scalar>(self, values: &'a [T]) -> Result<CsrView<'a, T, I, O>> {
        validate::length("values", self.nnz(), values.len())?;
        Ok(CsrView { pattern: self, values })
    }
}

impl<'a, T: Scalar, I: Index, O: Index> From<CsrView<'a, T, I, O>> for PatternView<'a, I, O> {
    fn from(a: CsrView<'a, T, I, O>) -> Self {
        a.pattern
    }
}

impl<'a, T: Scalar, I: Index, O: Index> From<&CsrView<'a, T, I, O>> for PatternView<'a, I, O> {
    fn from(a: &CsrView<'a, T, I, O>) -> Self {
        a.pattern
    }
}

impl<'a, T: Scalar, I: Index, O: Index> From<&'a Csr<T, I, O>> for PatternView<'a, I, O> {
    fn from(a: &'a Csr<T, I, O>) -> Self {
        a.pattern.view()
    }
}

impl<'a, T: Scalar, I: Index, O: Index> From<CsrView<'a, T, I, O>> for PatternRef<'a, I, O> {
    fn from(a: CsrView<'a, T, I, O>) -> Self {
        a.pattern.into()
    }
}

impl<T: Scalar, I: Index, O: Index> From<&Csr<T, I, O>> for PatternRef<'_, I, O> {
    fn from(a: &Csr<T, I, O>) -> Self {
        a.pattern().into()
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
