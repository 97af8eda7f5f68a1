//! Page-locked host memory, from and to which copies run asynchronously.

use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use cudarc::driver::{CudaContext, result, sys};
use gustav_core::{Error, Result};

use super::Device;
use super::driver::{Checked, describe};
use super::stream::Stream;

/// `len` values in page-locked memory of the host.
#[derive(Debug)]
pub struct PinnedBuffer<T> {
    // The context, not the device: the device may own the buffer.
    context: Arc<CudaContext>,
    ptr: NonNull<T>,
    len: usize,
}

// SAFETY: a PinnedBuffer owns its memory as a Vec does.
unsafe impl<T: Send> Send for PinnedBuffer<T> {}
// SAFETY: shared access only gives `&[T]`.
unsafe impl<T: Sync> Sync for PinnedBuffer<T> {}

impl<T: bytemuck::Pod> PinnedBuffer<T> {
    /// `len` zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] naming `what`, [`Error::Device`].
    pub fn zeroed(device: &Device, len: usize, what: &'static str) -> Result<Self> {
        let needed = len as u128 * size_of::<T>() as u128;
        let bytes = usize::try_from(needed).unwrap_or(usize::MAX);
        let mut ptr = NonNull::dangling();
        if bytes > 0 {
            #[cfg(test)]
            crate::device::ledger::allow_locked(what, needed)?;
            device.bind()?;
            // SAFETY: the context is bound; the block is freed once, by `drop`.
            let block = unsafe { result::malloc_host(bytes, 0) }.map_err(|e| match e.0 {
                sys::cudaError_enum::CUDA_ERROR_OUT_OF_MEMORY
                | sys::cudaError_enum::CUDA_ERROR_INVALID_VALUE => Error::OutOfMemory {
                    what,
                    needed,
                    available: gustav_core::buffer::available_memory(),
                },
                _ => Error::Device { action: "locking host memory", reason: describe(e) },
            })?;
            // SAFETY: the block has `bytes` bytes.
            unsafe { std::ptr::write_bytes(block.cast::<u8>(), 0, bytes) };
            ptr = NonNull::new(block.cast()).unwrap_or(ptr);
        }
        Ok(PinnedBuffer { context: device.context().clone(), ptr, len })
    }

    /// Address for kernels: the host address, because host and device have a unified address space
    /// on 64-bit systems.
    pub(crate) fn address(&self) -> u64 {
        self.ptr.as_ptr() as u64
    }

    /// Queues a copy of the values in `range` to `to` on a device.
    ///
    /// # Safety
    /// `to` is large enough, and neither side is written or freed before the copy is done.
    pub(crate) unsafe fn upload(
        &self,
        range: Range<usize>,
        to: u64,
        stream: &Stream,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        self.bind()?;
        // SAFETY: the caller's promise.
        unsafe { result::memcpy_htod_async(to, &self[range], stream.raw().cu_stream()) }
            .during("copying to the device")
    }

    /// Queues a copy of values at `from` on a device to `range`.
    ///
    /// # Safety
    /// As [`PinnedBuffer::upload`], and the values are not read before.
    pub(crate) unsafe fn download(
        &mut self,
        range: Range<usize>,
        from: u64,
        stream: &Stream,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        self.bind()?;
        // SAFETY: the caller's promise.
        unsafe { result::memcpy_dtoh_async(&mut self[range], from, stream.raw().cu_stream()) }
            .during("copying from the device")
    }
}

impl PinnedBuffer<u64> {
    /// The values as atomics, because a kernel may be writing them.
    pub(crate) fn atomics(&self) -> &[AtomicU64] {
        // SAFETY: as many values, of the same size and alignment, which are only written as whole
        // words and to which there are no other references.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr().cast(), self.len) }
    }
}

impl<T> PinnedBuffer<T> {
    fn bind(&self) -> Result<()> {
        self.context.bind_to_thread().during("using the device from this thread")
    }
}

impl<T> Deref for PinnedBuffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `len` values were written when the buffer was made.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl<T> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        if self.len * size_of::<T>() > 0 && self.bind().is_ok() {
            // SAFETY: allocated here, freed once; the driver waits for copies.
            let _ = unsafe { result::free_host(self.ptr.as_ptr().cast()) };
        }
    }
}
