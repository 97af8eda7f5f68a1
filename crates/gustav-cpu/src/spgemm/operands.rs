//! A, B and C as kernels see them. Kernels are compiled for patterns of 32-bit indices and once
//! more for all others, with an index width known at run time; the columns of B, which the
//! innermost loops read, are always 32 bits wide.

use std::ops::Range;

use gustav_core::buffer::UninitBuffer;
use gustav_core::parallel::Shared;
use gustav_core::{
    AnyPattern, Buffer, Csr, Index, IndexSlice, IndexType, Pattern, PatternRef, Result, Scalar,
    with_pattern,
};

/// An array of column indices or row offsets.
pub(super) trait Indices: Copy + Send + Sync {
    /// Index `k`.
    fn at(self, k: usize) -> usize;

    /// Index `k`.
    ///
    /// # Safety
    /// There are more than `k` indices.
    unsafe fn at_unchecked(self, k: usize) -> usize;

    /// Positions of row `row`, for row offsets.
    fn row(self, row: usize) -> Range<usize>;

    /// Positions of row `row`, for row offsets.
    ///
    /// # Safety
    /// There is such a row.
    unsafe fn row_unchecked(self, row: usize) -> Range<usize>;
}

impl<I: Index> Indices for &[I] {
    #[inline(always)]
    fn at(self, k: usize) -> usize {
        self[k].to_usize()
    }
    #[inline(always)]
    unsafe fn at_unchecked(self, k: usize) -> usize {
        // SAFETY: promised by the caller.
        unsafe { self.get_unchecked(k).to_usize() }
    }
    #[inline(always)]
    fn row(self, row: usize) -> Range<usize> {
        self[row].to_usize()..self[row + 1].to_usize()
    }
    #[inline(always)]
    unsafe fn row_unchecked(self, row: usize) -> Range<usize> {
        // SAFETY: promised by the caller.
        unsafe { self.at_unchecked(row)..self.at_unchecked(row + 1) }
    }
}

/// Runs `$body` with `$indices` as a slice.
macro_rules! with_indices {
    ($any:expr, |$indices:ident| $body:expr) => {
        match $any {
            IndexSlice::U32($indices) => $body,
            IndexSlice::U64($indices) => $body,
        }
    };
}
pub(super) use with_indices;

impl Indices for IndexSlice<'_> {
    #[inline(always)]
    fn at(self, k: usize) -> usize {
        with_indices!(self, |s| s.at(k))
    }
    #[inline(always)]
    unsafe fn at_unchecked(self, k: usize) -> usize {
        // SAFETY: promised by the caller.
        with_indices!(self, |s| unsafe { s.at_unchecked(k) })
    }
    #[inline(always)]
    fn row(self, row: usize) -> Range<usize> {
        with_indices!(self, |s| s.row(row))
    }
    #[inline(always)]
    unsafe fn row_unchecked(self, row: usize) -> Range<usize> {
        // SAFETY: promised by the caller.
        with_indices!(self, |s| unsafe { s.row_unchecked(row) })
    }
}

/// The pattern of a sparse matrix.
#[derive(Clone, Copy)]
pub struct Rows<X> {
    pub(super) nrows: usize,
    pub(super) ncols: usize,
    pub(super) offsets: X,
    pub(super) columns: X,
}

impl<'a> Rows<IndexSlice<'a>> {
    pub fn new(pattern: &'a AnyPattern<'_>) -> Self {
        with_pattern!(pattern, |p| {
            let p = p.view();
            let (offsets, columns) = (IndexSlice::new(p.offsets()), IndexSlice::new(p.indices()));
            Rows { nrows: p.nrows(), ncols: p.ncols(), offsets, columns }
        })
    }

    /// The same, if its indices are 32 bits wide.
    pub fn narrow(self) -> Option<Rows<&'a [u32]>> {
        let Rows { nrows, ncols, offsets, columns } = self;
        match (offsets, columns) {
            (IndexSlice::U32(offsets), IndexSlice::U32(columns)) => {
                Some(Rows { nrows, ncols, offsets, columns })
            }
            _ => None,
        }
    }
}

impl<X: Indices> Rows<X> {
    /// Positions of row `row`.
    #[inline(always)]
    pub fn range(&self, row: usize) -> Range<usize> {
        self.offsets.row(row)
    }

    /// Column of the nonzero at `position`.
    #[inline(always)]
    pub fn column(&self, position: usize) -> usize {
        self.columns.at(position)
    }
}

/// The pattern of B. Its columns are those of the matrix, or labels for them (`columns.rs`).
#[derive(Clone, Copy)]
pub(super) struct Right<'a, X> {
    pub nrows: usize,
    /// All columns are below this.
    pub ncols: usize,
    pub offsets: X,
    pub columns: &'a [u32],
}

impl<'a> Right<'a, IndexSlice<'a>> {
    /// The same, if its row offsets are 32 bits wide.
    pub fn narrow(self) -> Option<Right<'a, &'a [u32]>> {
        let Right { nrows, ncols, offsets, columns } = self;
        match offsets {
            IndexSlice::U32(offsets) => Some(Right { nrows, ncols, offsets, columns }),
            IndexSlice::U64(_) => None,
        }
    }
}

impl<'a, X: Indices> Right<'a, X> {
    /// Columns of row `row`.
    #[inline(always)]
    pub fn row(&self, row: usize) -> &'a [u32] {
        &self.columns[self.offsets.row(row)]
    }
}

/// A matrix of values of type `U`.
#[derive(Clone, Copy)]
pub struct Matrix<'a, U> {
    pub(super) rows: Rows<IndexSlice<'a>>,
    pub(super) values: &'a [U],
}

/// A finished product.
pub struct Product<U> {
    pub(super) pattern: AnyPattern<'static>,
    pub(super) values: Buffer<U>,
}

impl<U: Scalar> Product<U> {
    /// The arrays of `c`; its pattern is copied only if it has other owners.
    pub fn from_csr(c: Csr<U>) -> Result<Self> {
        let (nrows, ncols) = (c.nrows(), c.ncols());
        let (offsets, columns, values) = c.into_parts()?;
        // SAFETY: the arrays of a matrix.
        let pattern = unsafe { Pattern::new_unchecked(nrows, ncols, offsets, columns) };
        Ok(Product { pattern: PatternRef::Shared(pattern).into(), values })
    }
}

/// Indices that are being written.
pub(super) enum UninitIndices {
    U32(UninitBuffer<u32>),
    U64(UninitBuffer<u64>),
}

/// [`UninitIndices`] for threads that write disjoint elements.
#[derive(Clone, Copy)]
pub(super) enum SharedIndices<'a> {
    U32(Shared<'a, u32>),
    U64(Shared<'a, u64>),
}

impl UninitIndices {
    pub fn new(of: IndexType, len: usize, what: &'static str) -> Result<Self> {
        Ok(match of {
            IndexType::U32 => UninitIndices::U32(Buffer::uninit(len, what)?),
            IndexType::U64 => UninitIndices::U64(Buffer::uninit(len, what)?),
        })
    }

    /// # Safety
    /// The buffer outlives `'a` and nothing else uses it meanwhile.
    pub unsafe fn shared<'a>(&mut self) -> SharedIndices<'a> {
        // SAFETY: promised by the caller.
        unsafe {
            match self {
                UninitIndices::U32(b) => {
                    SharedIndices::U32(Shared::from_raw(b.as_mut_ptr(), b.capacity()))
                }
                UninitIndices::U64(b) => {
                    SharedIndices::U64(Shared::from_raw(b.as_mut_ptr(), b.capacity()))
                }
            }
        }
    }

    /// The pattern of these offsets and of the first `nnz` of `columns`.
    ///
    /// # Safety
    /// Offsets and columns are written and satisfy the invariants of [`Pattern`].
    pub unsafe fn into_pattern(
        self,
        columns: UninitIndices,
        nrows: usize,
        ncols: usize,
        nnz: usize,
    ) -> AnyPattern<'static> {
        use UninitIndices::{U32, U64};
        // SAFETY: promised by the caller.
        unsafe {
            match (columns, self) {
                (U32(columns), U32(offsets)) => whole(nrows, ncols, nnz, offsets, columns),
                (U32(columns), U64(offsets)) => whole(nrows, ncols, nnz, offsets, columns),
                (U64(columns), U32(offsets)) => whole(nrows, ncols, nnz, offsets, columns),
                (U64(columns), U64(offsets)) => whole(nrows, ncols, nnz, offsets, columns),
            }
        }
    }
}

/// # Safety
/// As [`UninitIndices::into_pattern`].
unsafe fn whole<I: Index, O: Index>(
    nrows: usize,
    ncols: usize,
    nnz: usize,
    offsets: UninitBuffer<O>,
    columns: UninitBuffer<I>,
) -> AnyPattern<'static> {
    // SAFETY: promised by the caller.
    let pattern = unsafe {
        let (offsets, columns) = (offsets.assume_init(nrows + 1), columns.assume_init(nnz));
        Pattern::new_unchecked(nrows, ncols, offsets, columns)
    };
    PatternRef::Shared(pattern).into()
}

impl SharedIndices<'_> {
    /// # Safety
    /// As [`Shared::put`]; the value fits the type.
    #[inline(always)]
    pub unsafe fn put(self, at: usize, value: usize) {
        // SAFETY: promised by the caller.
        unsafe {
            match self {
                SharedIndices::U32(s) => s.put(at, value as u32),
                SharedIndices::U64(s) => s.put(at, value as u64),
            }
        }
    }

    /// Writes row ends as row offsets. The closure is made here, so that it has one type for all
    /// callers.
    ///
    /// # Safety
    /// Callers of the returned closure may write element `row + 1`, and the end fits the type.
    #[inline(always)]
    pub unsafe fn ends(self) -> impl Fn(usize, usize) + Copy {
        // SAFETY: promised by the caller.
        move |row, end| unsafe { self.put(row + 1, end) }
    }

    /// Adds `start` to the elements of `range`.
    ///
    /// # Safety
    /// As [`Shared::slice`]; the sums fit the type.
    pub unsafe fn shift(self, range: Range<usize>, start: usize) {
        // SAFETY: promised by the caller.
        unsafe {
            match self {
                SharedIndices::U32(s) => s.slice(range).iter_mut().for_each(|o| *o += start as u32),
                SharedIndices::U64(s) => s.slice(range).iter_mut().for_each(|o| *o += start as u64),
            }
        }
    }
}

/// The largest value of an index type.
pub(super) fn most(of: IndexType) -> u64 {
    match of {
        IndexType::U32 => u64::from(u32::MAX),
        IndexType::U64 => u64::MAX,
    }
}
