//! Large blocks of memory on their way from one owner to the next.
//!
//! The first touch of fresh memory costs more than writing a result into it. A few freed blocks
//! are therefore kept, up to an eighth of the machine's memory, and the next
//! allocation of about the same size finds its pages in place.

use std::alloc::{Layout, dealloc};
use std::sync::{Mutex, OnceLock};

use crate::buffer::{HUGE_PAGE, meminfo};

struct Block {
    ptr: *mut u8,
    layout: Layout,
    /// Bytes that may have pages.
    held: usize,
}

// SAFETY: a block owns its memory and nothing else refers to it.
unsafe impl Send for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: promised by the giver of the block.
        unsafe { dealloc(self.ptr, self.layout) };
    }
}

// Enough for the arrays of two matrices and the workspaces of a few threads.
const KEPT: usize = 32;
const SHARE: u64 = 8;

// Longest kept first.
static BLOCKS: Mutex<Vec<Block>> = Mutex::new(Vec::new());

/// Bytes kept at most; nothing where the system does not say how much memory there is.
fn limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| meminfo("MemTotal:").map_or(0, |bytes| (bytes / SHARE) as usize))
}

/// A kept block of at least `bytes` bytes, and at most twice that, with its layout.
pub(crate) fn take(bytes: usize) -> Option<(*mut u8, Layout)> {
    let mut blocks = BLOCKS.lock().ok()?;
    let fitting = (0..blocks.len())
        .filter(|&k| (bytes..=bytes.saturating_mul(2)).contains(&blocks[k].layout.size()));
    let best = fitting.min_by_key(|&k| blocks[k].layout.size())?;
    let block = std::mem::ManuallyDrop::new(blocks.remove(best));
    Some((block.ptr, block.layout))
}

/// Keeps a block, and frees those kept for longest when there are too many. Room behind the
/// `used` bytes at its start goes back to the system, so that a matrix in a block for an upper
/// bound counts as what it is.
///
/// # Safety
/// `ptr` was allocated with `layout` by the global allocator, and nothing refers to it any more.
pub(crate) unsafe fn give(ptr: *mut u8, layout: Layout, used: usize) {
    // SAFETY: promised by the caller.
    let held = layout.size() - unsafe { shed(ptr, layout, used) };
    let block = Block { ptr, layout, held };
    let Ok(mut blocks) = BLOCKS.lock() else { return };
    blocks.push(block);
    let mut kept: usize = blocks.iter().map(|b| b.held).sum();
    let mut excess = 0;
    while kept > limit() || blocks.len() - excess > KEPT {
        kept -= blocks[excess].held;
        excess += 1;
    }
    let freed: Vec<Block> = blocks.drain(..excess).collect();
    drop(blocks);
    drop(freed);
}

/// Gives the whole huge pages behind the `used` bytes of a block back to the system; how many
/// bytes they have.
///
/// # Safety
/// As [`give`].
#[cfg(target_os = "linux")]
unsafe fn shed(ptr: *mut u8, layout: Layout, used: usize) -> usize {
    let (start, end) = (used.next_multiple_of(HUGE_PAGE), layout.size() / HUGE_PAGE * HUGE_PAGE);
    if layout.align() < HUGE_PAGE || start >= end {
        return 0;
    }
    // SAFETY: the range lies in a block that nobody reads any more, on page boundaries.
    let done = unsafe { libc::madvise(ptr.add(start).cast(), end - start, libc::MADV_DONTNEED) };
    if done == 0 { end - start } else { 0 }
}

#[cfg(not(target_os = "linux"))]
unsafe fn shed(_ptr: *mut u8, _layout: Layout, _used: usize) -> usize {
    0
}

/// Frees every kept block.
pub(crate) fn clear() {
    let blocks = BLOCKS.lock().map(|mut b| std::mem::take(&mut *b));
    drop(blocks);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::alloc::{alloc, dealloc};

    use super::*;

    #[test]
    fn room_that_was_not_used_is_not_held() {
        for (pages, align, used, shed_pages) in [
            (4, HUGE_PAGE, HUGE_PAGE + 1, 2),
            (4, HUGE_PAGE, 4 * HUGE_PAGE, 0),
            (4, HUGE_PAGE, 0, 4),
            (4, 64, 0, 0),
        ] {
            let layout = Layout::from_size_align(pages * HUGE_PAGE, align).unwrap();
            // SAFETY: the block is written within its size, and freed once.
            unsafe {
                let block = alloc(layout);
                assert!(!block.is_null());
                block.write_bytes(7, layout.size());
                assert_eq!(shed(block, layout, used), shed_pages * HUGE_PAGE);
                let kept = layout.size() - shed_pages * HUGE_PAGE;
                assert!((0..kept).step_by(4096).all(|at| *block.add(at) == 7));
                assert!((kept..layout.size()).step_by(4096).all(|at| *block.add(at) == 0));
                dealloc(block, layout);
            }
        }
    }
}
