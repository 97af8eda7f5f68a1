//! Memory for large arrays: 64-byte aligned, on huge pages where the system offers them,
//! and refused with an error when there is not enough.

use std::alloc::{Layout as AllocLayout, alloc, alloc_zeroed, dealloc};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::parallel::{self, Shared};
use crate::{Error, Result, recycle};

/// Alignment of every buffer that gustav allocates: one cache line, one AVX-512 vector.
pub const ALIGN: usize = 64;

// From this size on, huge pages are requested.
const HUGE: usize = 4 << 20;
pub(crate) const HUGE_PAGE: usize = 2 << 20;
// From this size on, freed blocks can be reused.
const RECYCLED: usize = 64 << 10;
// From this size on, an allocation is checked against the available memory.
const CHECKED: usize = 1 << 30;

/// A fixed-length array of plain values. Made from a `Vec` without a copy, or allocated
/// aligned to [`ALIGN`] bytes.
pub struct Buffer<T> {
    ptr: NonNull<T>,
    len: usize,
    layout: AllocLayout,
}

// SAFETY: a Buffer owns its memory as a Vec does.
unsafe impl<T: Send> Send for Buffer<T> {}
// SAFETY: shared access only gives `&[T]`.
unsafe impl<T: Sync> Sync for Buffer<T> {}

impl<T: bytemuck::Pod> Buffer<T> {
    /// `len` zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] naming `what`.
    pub fn zeroed(len: usize, what: &'static str) -> Result<Self> {
        Self::allocate(len, what, true)
    }

    /// Uninitialised memory for `len` values, which the caller will write.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] naming `what`.
    pub fn uninit(len: usize, what: &'static str) -> Result<UninitBuffer<T>> {
        Ok(UninitBuffer { buffer: ManuallyDrop::new(Self::allocate(len, what, false)?) })
    }

    fn allocate(len: usize, what: &'static str, zero: bool) -> Result<Self> {
        let needed = len as u128 * size_of::<T>() as u128;
        let out_of_memory = |available| Error::OutOfMemory { what, needed, available };
        if needed > isize::MAX as u128 - HUGE_PAGE as u128 {
            return Err(out_of_memory(available_memory()));
        }
        let bytes = needed as usize;
        let align = if bytes >= HUGE { HUGE_PAGE } else { ALIGN };
        let layout = AllocLayout::from_size_align(bytes, align).map_err(|_| out_of_memory(None))?;
        if bytes == 0 {
            let ptr = NonNull::<[T; 0]>::dangling().cast();
            return Ok(Buffer { ptr, len, layout });
        }
        if bytes >= RECYCLED
            && let Some((raw, layout)) = recycle::take(bytes)
            && let Some(ptr) = NonNull::new(raw.cast::<T>())
        {
            if zero {
                clear(raw, bytes);
            }
            return Ok(Buffer { ptr, len, layout });
        }
        if bytes >= CHECKED && available_memory().is_some_and(|a| bytes as u64 > a) {
            recycle::clear();
            let available = available_memory();
            if available.is_some_and(|a| bytes as u64 > a) {
                return Err(out_of_memory(available));
            }
        }
        // Large blocks: huge pages are requested before the first touch, then cleared in parallel.
        let fresh = || match zero && bytes < HUGE {
            // SAFETY: the layout has a size above zero.
            true => unsafe { alloc_zeroed(layout) },
            // SAFETY: the layout has a size above zero.
            false => unsafe { alloc(layout) },
        };
        let mut raw = fresh();
        if raw.is_null() {
            recycle::clear();
            raw = fresh();
        }
        let ptr = NonNull::new(raw.cast::<T>()).ok_or_else(|| out_of_memory(available_memory()))?;
        if bytes >= HUGE {
            advise_huge(raw, bytes);
            if zero {
                clear(raw, bytes);
            }
        }
        Ok(Buffer { ptr, len, layout })
    }
}

/// Clears a large block on all threads of the current pool, so that its pages are first
/// touched there.
fn clear(raw: *mut u8, bytes: usize) {
    // SAFETY: the block was just allocated with this size, and nothing else refers to it;
    // `MaybeUninit` bytes need no initialisation.
    let block =
        unsafe { std::slice::from_raw_parts_mut(raw.cast::<std::mem::MaybeUninit<u8>>(), bytes) };
    parallel::chunks_mut(block, HUGE_PAGE, |_, chunk| {
        // SAFETY: writes zero bytes within the chunk.
        unsafe { std::ptr::write_bytes(chunk.as_mut_ptr(), 0, chunk.len()) }
    });
}

#[cfg(target_os = "linux")]
fn advise_huge(raw: *mut u8, bytes: usize) {
    // SAFETY: the range was just allocated, and is aligned to huge pages; advice changes no data.
    unsafe { libc::madvise(raw.cast(), bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise_huge(_raw: *mut u8, _bytes: usize) {}

/// Retains freed blocks of [`Buffer`]s for later ones, up to `limit` bytes. 0 turns this off and
/// frees them; it is off unless a program turns it on.
///
/// The system zeroes memory page by page at its first touch, which takes longer than writing a
/// result to it. A program that allocates large results repeatedly, such as products of sparse
/// matrices in a loop or many plans, saves that: a freed block of 64 KiB or more is given to the
/// next buffer of about its size, with its pages. In return the process holds up to `limit` bytes
/// that it does not use.
///
/// On Linux, the system may reclaim the pages of all but a quarter of `limit` when memory runs
/// short (`MADV_FREE`); until then they count as the process's. If an allocation does not fit in
/// the available memory, all blocks are freed and it is tried again.
///
/// The setting applies to the whole process, so programs should choose it, not libraries.
///
/// ```
/// use gustav_core::buffer::{reuse_blocks, total_memory};
///
/// // At the start of `main`: an eighth of the machine's memory.
/// reuse_blocks(total_memory().map_or(0, |bytes| bytes / 8));
/// ```
pub fn reuse_blocks(limit: u64) {
    recycle::set_limit(usize::try_from(limit).unwrap_or(usize::MAX));
}

/// Bytes of freed blocks that the process holds for reuse, see [`reuse_blocks`].
pub fn retained_bytes() -> u64 {
    recycle::retained() as u64
}

/// Frees the blocks that are held for reuse; the limit of [`reuse_blocks`] is unchanged.
///
/// Allocations do this themselves when memory is short; a program that shares the machine with
/// others can call it at the end of a phase.
pub fn release_blocks() {
    recycle::clear();
}

/// Bytes of the machine's memory; `None` if the system does not tell.
pub fn total_memory() -> Option<u64> {
    meminfo("MemTotal:")
}

/// Bytes of memory that can be allocated without swapping; `None` if the system does not tell.
pub fn available_memory() -> Option<u64> {
    meminfo("MemAvailable:")
}

/// The number of a line of /proc/meminfo, in bytes.
fn meminfo(key: &str) -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find(|l| l.starts_with(key))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// The items of `from` as a `Vec`.
///
/// # Errors
/// [`Error::OutOfMemory`] naming `what`.
pub fn try_collect<T>(
    from: impl ExactSizeIterator<Item = T>,
    what: &'static str,
) -> Result<Vec<T>> {
    let mut v = try_vec(from.len(), what)?;
    v.extend(from);
    Ok(v)
}

/// An empty `Vec` with capacity for `capacity` values.
///
/// # Errors
/// [`Error::OutOfMemory`] naming `what`.
pub fn try_vec<T>(capacity: usize, what: &'static str) -> Result<Vec<T>> {
    let needed = capacity as u128 * size_of::<T>() as u128;
    if needed >= CHECKED as u128
        && let Some(available) = available_memory()
        && needed > u128::from(available)
    {
        return Err(Error::OutOfMemory { what, needed, available: Some(available) });
    }
    let mut v = Vec::new();
    v.try_reserve_exact(capacity).map_err(|_| Error::OutOfMemory {
        what,
        needed,
        available: available_memory(),
    })?;
    Ok(v)
}

/// Memory for values that are not written yet; see [`Buffer::uninit`].
pub struct UninitBuffer<T> {
    // Never read through before `assume_init`; dropping frees the memory only.
    buffer: ManuallyDrop<Buffer<T>>,
}

impl<T> UninitBuffer<T> {
    /// Start of the block.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.buffer.ptr.as_ptr()
    }

    /// Number of values that fit.
    pub fn capacity(&self) -> usize {
        self.buffer.len
    }

    /// All of it, for threads that write disjoint elements.
    pub fn shared(&mut self) -> Shared<'_, T> {
        // SAFETY: the memory belongs to `self`, which is borrowed as long as the result lives.
        unsafe { Shared::from_raw(self.as_mut_ptr(), self.capacity()) }
    }

    /// The first `len` values as a buffer; the memory after them stays allocated.
    ///
    /// # Safety
    /// The first `len` values have been written, and `len` is at most the capacity.
    pub unsafe fn assume_init(mut self, len: usize) -> Buffer<T> {
        debug_assert!(len <= self.buffer.len);
        self.buffer.len = len;
        // SAFETY: `self` is forgotten right after, so the buffer is taken once.
        let buffer = unsafe { ManuallyDrop::take(&mut self.buffer) };
        std::mem::forget(self);
        buffer
    }
}

impl<T> Drop for UninitBuffer<T> {
    fn drop(&mut self) {
        // SAFETY: dropped once; a Buffer's drop frees memory and reads no value.
        unsafe { ManuallyDrop::drop(&mut self.buffer) }
    }
}

impl<T: bytemuck::Pod> From<Vec<T>> for Buffer<T> {
    fn from(v: Vec<T>) -> Self {
        let mut v = ManuallyDrop::new(v);
        // The layout is valid: the Vec was allocated with it.
        let layout = AllocLayout::array::<T>(v.capacity()).unwrap_or(AllocLayout::new::<()>());
        // SAFETY: a Vec's pointer is never null.
        let ptr = unsafe { NonNull::new_unchecked(v.as_mut_ptr()) };
        Buffer { ptr, len: v.len(), layout }
    }
}

impl<T: Copy> Buffer<T> {
    /// The values as a `Vec`, copied only when the buffer was allocated aligned.
    pub fn into_vec(self) -> Vec<T> {
        if self.layout.align() == align_of::<T>() && size_of::<T>() > 0 {
            let this = ManuallyDrop::new(self);
            let capacity = this.layout.size() / size_of::<T>();
            // SAFETY: pointer and layout come from a Vec of this type.
            return unsafe { Vec::from_raw_parts(this.ptr.as_ptr(), this.len, capacity) };
        }
        self.to_vec()
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `len` values were initialised when the buffer was made.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            let raw = self.ptr.as_ptr().cast();
            // SAFETY: allocated with this layout, by us or by the Vec we took over; plain values
            // need no drop.
            unsafe {
                if self.layout.size() >= RECYCLED && self.layout.align() >= ALIGN {
                    recycle::free(raw, self.layout, self.len * size_of::<T>());
                } else {
                    dealloc(raw, self.layout);
                }
            }
        }
    }
}

impl<T: bytemuck::Pod> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        self.to_vec().into()
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.deref().fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        self.deref() == other.deref()
    }
}
