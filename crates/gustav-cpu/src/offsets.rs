//! Row offsets of either width behind one type.

use std::ops::Range;

use gustav_core::{Index, IndexSlice};

/// Row offsets of either width. Read once or twice a row, so a branch here costs less than
/// kernels compiled twice.
#[derive(Clone, Copy)]
pub(crate) enum Offsets<'a> {
    U32(&'a [u32]),
    U64(&'a [u64]),
}

impl<'a> Offsets<'a> {
    pub(crate) fn new<O: Index>(offsets: &'a [O]) -> Self {
        match IndexSlice::new(offsets) {
            IndexSlice::U32(offsets) => Offsets::U32(offsets),
            IndexSlice::U64(offsets) => Offsets::U64(offsets),
        }
    }

    /// Offset `k`.
    #[inline(always)]
    pub(crate) fn at(&self, k: usize) -> usize {
        match self {
            Offsets::U32(o) => o[k] as usize,
            Offsets::U64(o) => o[k] as usize,
        }
    }

    /// Offset `k`.
    ///
    /// # Safety
    /// There are more than `k` offsets.
    #[inline(always)]
    pub(crate) unsafe fn get(&self, k: usize) -> usize {
        // SAFETY: promised by the caller.
        unsafe {
            match self {
                Offsets::U32(o) => *o.get_unchecked(k) as usize,
                Offsets::U64(o) => *o.get_unchecked(k) as usize,
            }
        }
    }

    /// All offsets.
    #[inline(always)]
    pub(crate) fn all(&self) -> IndexSlice<'a> {
        match self {
            Offsets::U32(o) => IndexSlice::U32(o),
            Offsets::U64(o) => IndexSlice::U64(o),
        }
    }

    /// Positions of row `row`.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> Range<usize> {
        match self {
            Offsets::U32(o) => o[row] as usize..o[row + 1] as usize,
            Offsets::U64(o) => o[row] as usize..o[row + 1] as usize,
        }
    }
}
