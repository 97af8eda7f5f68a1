//! A, B and C as kernels see them: index arrays of either width behind one type, so that kernels
//! are compiled once. A branch on the width is paid once for every nonzero of A at most; columns of
//! B, which the innermost loops read, are 32 bits wide always.

use std::ops::Range;

use gustav_core::buffer::UninitBuffer;
use gustav_core::parallel::Shared;
use gustav_core::{
    AnyPattern, Buffer, Csr, Index, IndexSlice, IndexType, Pattern, PatternRef, Result, Scalar,
    with_pattern,
};

/// Index `k`.
#[inline(always)]
pub(super) fn get(indices: IndexSlice<'_>, k: usize) -> usize {
    match indices {
        IndexSlice::U32(s) => s[k] as usize,
        IndexSlice::U64(s) => s[k] as usize,
    }
}

/// Index `k`.
///
/// # Safety
/// There are more than `k` indices.
#[inline(always)]
pub(super) unsafe fn get_unchecked(indices: IndexSlice<'_>, k: usize) -> usize {
    // SAFETY: promised by the caller.
    unsafe {
        match indices {
            IndexSlice::U32(s) => *s.get_unchecked(k) as usize,
            IndexSlice::U64(s) => *s.get_unchecked(k) as usize,
        }
    }
}

/// Positions of row `row`.
#[inline(always)]
pub(super) fn row_range(offsets: IndexSlice<'_>, row: usize) -> Range<usize> {
    match offsets {
        IndexSlice::U32(o) => o[row] as usize..o[row + 1] as usize,
        IndexSlice::U64(o) => o[row] as usize..o[row + 1] as usize,
    }
}

/// Positions of row `row`.
///
/// # Safety
/// There is such a row.
#[inline(always)]
pub(super) unsafe fn row_range_unchecked(offsets: IndexSlice<'_>, row: usize) -> Range<usize> {
    // SAFETY: promised by the caller.
    let [start, end] = unsafe {
        match offsets {
            IndexSlice::U32(o) => u32::pair(o.as_ptr().add(row)),
            IndexSlice::U64(o) => u64::pair(o.as_ptr().add(row)),
        }
    };
    start..end
}

/// The pattern of a sparse matrix.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub nrows: usize,
    pub ncols: usize,
    pub offsets: IndexSlice<'a>,
    pub columns: IndexSlice<'a>,
}

impl<'a> Rows<'a> {
    pub fn new(pattern: &'a AnyPattern<'_>) -> Self {
        with_pattern!(pattern, |p| {
            let p = p.view();
            let (offsets, columns) = (IndexSlice::new(p.offsets()), IndexSlice::new(p.indices()));
            Rows { nrows: p.nrows(), ncols: p.ncols(), offsets, columns }
        })
    }

    /// Positions of row `row`.
    #[inline(always)]
    pub fn range(&self, row: usize) -> Range<usize> {
        row_range(self.offsets, row)
    }

    /// Column of the nonzero at `position`.
    #[inline(always)]
    pub fn column(&self, position: usize) -> usize {
        get(self.columns, position)
    }
}

/// The pattern of B. Its columns are those of the matrix, or labels for them (`columns.rs`).
#[derive(Clone, Copy)]
pub(super) struct Right<'a> {
    pub nrows: usize,
    /// One more than the largest column can be.
    pub ncols: usize,
    pub offsets: IndexSlice<'a>,
    pub columns: &'a [u32],
}

impl<'a> Right<'a> {
    /// Columns of row `row`.
    #[inline(always)]
    pub fn row(&self, row: usize) -> &'a [u32] {
        &self.columns[row_range(self.offsets, row)]
    }
}

/// A matrix of values of type `U`.
#[derive(Clone, Copy)]
pub struct Matrix<'a, U> {
    pub(super) rows: Rows<'a>,
    pub(super) values: &'a [U],
}

/// A finished product.
pub struct Product<U> {
    pub(super) pattern: AnyPattern<'static>,
    pub(super) values: Buffer<U>,
}

impl<U: Scalar> Product<U> {
    /// The parts of `c`, which is copied only where its pattern has other owners.
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
