//! A buffer that several threads fill at positions of their own.

use gustav_core::buffer::UninitBuffer;

/// Writes through a shared pointer at positions that no two threads share.
pub(crate) struct Shared<T> {
    base: *mut T,
    len: usize,
}

// SAFETY: users of `put` promise disjoint positions.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Room of a buffer; valid as long as the buffer is.
    pub(crate) fn new(buffer: &mut UninitBuffer<T>) -> Self {
        Shared { base: buffer.as_mut_ptr(), len: buffer.capacity() }
    }

    /// Writes `value` at `at`.
    ///
    /// # Safety
    /// `at` is within the buffer, the buffer is alive, and no other thread uses the position.
    #[inline(always)]
    pub(crate) unsafe fn put(&self, at: usize, value: T) {
        debug_assert!(at < self.len);
        // SAFETY: promised by the caller.
        unsafe { self.base.add(at).write(value) }
    }
}
