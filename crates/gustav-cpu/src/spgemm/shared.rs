//! Arrays that several threads write at once, each at places of its own.

use std::marker::PhantomData;

/// A mutable slice shared by threads that never touch the same element.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a, T> {
    ptr: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: users of `slice` promise disjoint ranges.
unsafe impl<T: Send> Send for Shared<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    pub fn new(slice: &'a mut [T]) -> Self {
        Shared { ptr: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// # Safety
    /// `ptr` is valid for writes of `len` elements throughout `'a`, and nobody else uses them.
    pub unsafe fn from_raw(ptr: *mut T, len: usize) -> Self {
        Shared { ptr, len, slice: PhantomData }
    }

    /// # Safety
    /// The range is in bounds, and no other thread uses it meanwhile.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "the ranges of two threads never overlap")]
    pub unsafe fn slice(&self, range: std::ops::Range<usize>) -> &mut [T] {
        debug_assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: promised by the caller.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(range.start), range.len()) }
    }
}
