//! Patterns over borrowed arrays, and references to patterns in plans.

use std::ops::Range;

use super::{Pattern, PatternId, TransposedPattern};
use crate::convert::transpose_arrays;
use crate::csr::copy;
use crate::{Index, IndexType, Result, validate};

/// A pattern over borrowed arrays; see [`Pattern`] for the invariants.
///
/// A view made from arrays has an identity of its own, which its copies share; a view of a
/// [`Pattern`] has that pattern's.
#[derive(Clone, Copy, Debug)]
pub struct PatternView<'a, I: Index = u32, O: Index = u32> {
    pub(super) id: PatternId,
    pub(super) nrows: usize,
    pub(super) ncols: usize,
    pub(super) offsets: &'a [O],
    pub(super) indices: &'a [I],
}

impl<'a, I: Index, O: Index> PatternView<'a, I, O> {
    /// A pattern over borrowed arrays, checked. For `i32` or `i64` arrays see
    /// [`crate::index::unsigned`].
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub fn new(nrows: usize, ncols: usize, offsets: &'a [O], indices: &'a [I]) -> Result<Self> {
        validate::pattern(nrows, ncols, offsets, indices)?;
        Ok(PatternView { id: PatternId::fresh(), nrows, ncols, offsets, indices })
    }

    /// A pattern over borrowed arrays, not checked in release builds.
    ///
    /// # Safety
    /// The invariants listed at [`Pattern`] hold.
    pub unsafe fn new_unchecked(
        nrows: usize,
        ncols: usize,
        offsets: &'a [O],
        indices: &'a [I],
    ) -> Self {
        debug_assert!(validate::pattern(nrows, ncols, offsets, indices).is_ok());
        PatternView { id: PatternId::fresh(), nrows, ncols, offsets, indices }
    }

    /// The identity.
    #[inline(always)]
    pub fn id(&self) -> PatternId {
        self.id
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

    /// Number of nonzeros: stored entries, explicit zeros included.
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

    /// Positions of row `row` in the index and value arrays.
    #[inline(always)]
    pub fn row_range(&self, row: usize) -> Range<usize> {
        self.offsets[row].to_usize()..self.offsets[row + 1].to_usize()
    }

    /// Number of nonzeros of row `row`.
    #[inline(always)]
    pub fn row_len(&self, row: usize) -> usize {
        self.row_range(row).len()
    }

    /// Column indices of row `row`.
    #[inline(always)]
    pub fn row(&self, row: usize) -> &'a [I] {
        &self.indices[self.row_range(row)]
    }

    /// Whether the columns of every row strictly increase (sorted, no duplicates).
    pub fn is_canonical(&self) -> bool {
        (0..self.nrows).all(|r| self.row(r).is_sorted_by(|a, b| a < b))
    }

    /// Whether `other` has the same shape, offsets and indices.
    pub fn same_arrays(&self, other: &PatternView<'_, I, O>) -> bool {
        (self.nrows, self.ncols) == (other.nrows, other.ncols)
            && self.offsets == other.offsets
            && self.indices == other.indices
    }

    /// An owned copy, with an identity of its own.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn to_owned(&self) -> Result<Pattern<I, O>> {
        let (offsets, indices) =
            (copy(self.offsets, "row offsets")?, copy(self.indices, "column indices")?);
        // SAFETY: copies of checked arrays.
        Ok(unsafe { Pattern::new_unchecked(self.nrows, self.ncols, offsets, indices) })
    }

    /// The pattern of Aᵀ with the permutation of values.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) when the row count of A does not fit the index
    /// type, [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn transpose(&self) -> Result<TransposedPattern<I, O>> {
        let (offsets, indices, permutation) = transpose_arrays(self)?;
        // SAFETY: a counting sort of a valid pattern by column.
        let pattern = unsafe { Pattern::new_unchecked(self.ncols, self.nrows, offsets, indices) };
        Ok(TransposedPattern::new(pattern, permutation))
    }
}

impl<'a, I: Index, O: Index> From<&'a Pattern<I, O>> for PatternView<'a, I, O> {
    fn from(pattern: &'a Pattern<I, O>) -> Self {
        pattern.view()
    }
}

/// The reference of a plan to its pattern: a clone of a [`Pattern`], or a borrowed view.
#[derive(Clone, Debug)]
pub enum PatternRef<'a, I: Index = u32, O: Index = u32> {
    /// A clone, which counts references.
    Shared(Pattern<I, O>),
    /// Borrowed arrays.
    Borrowed(PatternView<'a, I, O>),
}

impl<I: Index, O: Index> PatternRef<'_, I, O> {
    /// The arrays.
    #[inline(always)]
    pub fn view(&self) -> PatternView<'_, I, O> {
        match self {
            PatternRef::Shared(pattern) => pattern.view(),
            PatternRef::Borrowed(view) => *view,
        }
    }

    /// The transposed pattern: cached in a [`Pattern`] and shared, computed again for a view.
    ///
    /// # Errors
    /// As [`PatternView::transpose`].
    pub fn transposed(&self) -> Result<std::sync::Arc<TransposedPattern<I, O>>> {
        match self {
            PatternRef::Shared(pattern) => pattern.transposed(),
            PatternRef::Borrowed(view) => view.transpose().map(Into::into),
        }
    }
}

impl<I: Index, O: Index> From<Pattern<I, O>> for PatternRef<'_, I, O> {
    fn from(pattern: Pattern<I, O>) -> Self {
        PatternRef::Shared(pattern)
    }
}

impl<I: Index, O: Index> From<&Pattern<I, O>> for PatternRef<'_, I, O> {
    fn from(pattern: &Pattern<I, O>) -> Self {
        PatternRef::Shared(pattern.clone())
    }
}

impl<'a, I: Index, O: Index> From<PatternView<'a, I, O>> for PatternRef<'a, I, O> {
    fn from(view: PatternView<'a, I, O>) -> Self {
        PatternRef::Borrowed(view)
    }
}

/// A [`PatternRef`] of any index types: backends take it, so that their kernels are compiled in
/// their own crates and not in every program that plans a product.
#[derive(Clone, Debug)]
pub enum AnyPattern<'a> {
    /// 32-bit column indices and row offsets.
    U32U32(PatternRef<'a, u32, u32>),
    /// 32-bit column indices, 64-bit row offsets.
    U32U64(PatternRef<'a, u32, u64>),
    /// 64-bit column indices, 32-bit row offsets.
    U64U32(PatternRef<'a, u64, u32>),
    /// 64-bit column indices and row offsets.
    U64U64(PatternRef<'a, u64, u64>),
}

/// Runs `$body` with `$p` as the pattern behind an [`AnyPattern`](crate::AnyPattern).
#[macro_export]
macro_rules! with_pattern {
    ($any:expr, |$p:ident| $body:expr) => {
        match $any {
            $crate::AnyPattern::U32U32($p) => $body,
            $crate::AnyPattern::U32U64($p) => $body,
            $crate::AnyPattern::U64U32($p) => $body,
            $crate::AnyPattern::U64U64($p) => $body,
        }
    };
}

impl<'a, I: Index, O: Index> From<PatternRef<'a, I, O>> for AnyPattern<'a> {
    fn from(pattern: PatternRef<'a, I, O>) -> Self {
        /// Changes the name of the type of `from`.
        ///
        /// # Safety
        /// `A` and `B` are the same type.
        unsafe fn same<A, B>(from: A) -> B {
            let from = std::mem::ManuallyDrop::new(from);
            // SAFETY: promised by the caller; `from` is not dropped.
            unsafe { std::mem::transmute_copy(&*from) }
        }
        // SAFETY: `Index` is implemented for u32 and u64 alone, and `TYPE` identifies them.
        unsafe {
            match (I::TYPE, O::TYPE) {
                (IndexType::U32, IndexType::U32) => AnyPattern::U32U32(same(pattern)),
                (IndexType::U32, IndexType::U64) => AnyPattern::U32U64(same(pattern)),
                (IndexType::U64, IndexType::U32) => AnyPattern::U64U32(same(pattern)),
                (IndexType::U64, IndexType::U64) => AnyPattern::U64U64(same(pattern)),
            }
        }
    }
}

impl AnyPattern<'_> {
    /// The identity.
    pub fn id(&self) -> PatternId {
        with_pattern!(self, |p| p.view().id())
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        with_pattern!(self, |p| p.view().nrows())
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        with_pattern!(self, |p| p.view().ncols())
    }

    /// Number of nonzeros.
    pub fn nnz(&self) -> usize {
        with_pattern!(self, |p| p.view().nnz())
    }

    /// Types of the column indices and the row offsets.
    pub fn index_types(&self) -> (IndexType, IndexType) {
        match self {
            AnyPattern::U32U32(_) => (IndexType::U32, IndexType::U32),
            AnyPattern::U32U64(_) => (IndexType::U32, IndexType::U64),
            AnyPattern::U64U32(_) => (IndexType::U64, IndexType::U32),
            AnyPattern::U64U64(_) => (IndexType::U64, IndexType::U64),
        }
    }
}
