//! Freed blocks that later buffers reuse, see [`reuse_blocks`](crate::buffer::reuse_blocks).

use std::alloc::{Layout, dealloc};
use std::sync::{Mutex, PoisonError};

#[cfg(target_os = "linux")]
use crate::buffer::HUGE_PAGE;

struct Block {
    ptr: *mut u8,
    layout: Layout,
    /// Bytes at the start that may have physical pages.
    used: usize,
    /// Whether the system may reclaim the pages.
    reclaimable: bool,
}

// SAFETY: a block owns its memory and nothing else refers to it.
unsafe impl Send for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: promised by the caller of `free`.
        unsafe { dealloc(self.ptr, self.layout) };
    }
}

// Most blocks: enough for the arrays of two matrices and the workspaces of a few threads.
const MOST_BLOCKS: usize = 32;
// Limit ÷ bytes whose pages the system may not reclaim.
const HELD_PART: usize = 4;

struct Blocks {
    /// Most bytes of all blocks together; 0 for no reuse.
    limit: usize,
    /// In the order in which they were freed.
    blocks: Vec<Block>,
}

static BLOCKS: Mutex<Blocks> = Mutex::new(Blocks { limit: 0, blocks: Vec::new() });

fn lock() -> std::sync::MutexGuard<'static, Blocks> {
    // No code that may panic runs during a change, so poisoning is ignored.
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the limit, and frees the blocks beyond it.
pub(crate) fn set_limit(limit: usize) {
    let mut all = lock();
    all.limit = limit;
    let freed = all.enforce_limit();
    drop(all);
    drop(freed);
}

/// Bytes of all blocks that may have physical pages.
pub(crate) fn retained() -> usize {
    lock().blocks.iter().map(|b| b.used).sum()
}

/// A block of at least `bytes` bytes, and at most twice that, with its layout.
pub(crate) fn take(bytes: usize) -> Option<(*mut u8, Layout)> {
    let blocks = &mut lock().blocks;
    let fitting = (0..blocks.len())
        .filter(|&k| (bytes..=bytes.saturating_mul(2)).contains(&blocks[k].layout.size()));
    let best = fitting.min_by_key(|&k| blocks[k].layout.size())?;
    let block = std::mem::ManuallyDrop::new(blocks.remove(best));
    Some((block.ptr, block.layout))
}

/// Frees a block, or retains it for a later owner if the limit allows. Pages after the first `used`
/// bytes are returned to the system, so that a block allocated for an upper bound counts with its
/// actual use.
///
/// # Safety
/// `ptr` was allocated with `layout` by the global allocator, and nothing refers to it any more.
pub(crate) unsafe fn free(ptr: *mut u8, layout: Layout, used: usize) {
    let mut block = Block { ptr, layout, used: layout.size(), reclaimable: false };
    let limit = lock().limit;
    if limit == 0 || used > limit {
        return;
    }
    // SAFETY: promised by the caller.
    block.used -= unsafe { return_pages(ptr, layout, used) };
    let mut all = lock();
    all.blocks.push(block);
    let freed = all.enforce_limit();
    drop(all);
    drop(freed);
}

impl Blocks {
    /// Enforces the limit; returns the blocks to be freed.
    fn enforce_limit(&mut self) -> Vec<Block> {
        match self.limit {
            0 => std::mem::take(&mut self.blocks),
            limit => enforce_limit(&mut self.blocks, limit / HELD_PART, limit),
        }
    }
}

/// Lets the system reclaim the pages of the oldest blocks until at most `held_limit` bytes are
/// not reclaimable, and removes blocks until at most `limit` bytes remain; returns the removed ones.
fn enforce_limit(blocks: &mut Vec<Block>, held_limit: usize, limit: usize) -> Vec<Block> {
    let mut retained: usize = blocks.iter().map(|b| b.used).sum();
    let excess = blocks.len().saturating_sub(MOST_BLOCKS);
    let mut freed: Vec<Block> = blocks.drain(..excess).collect();
    retained -= freed.iter().map(|b| b.used).sum::<usize>();
    let mut held: usize = blocks.iter().filter(|b| !b.reclaimable).map(|b| b.used).sum();
    let mut at = 0;
    while at < blocks.len() && (held > held_limit || retained > limit) {
        let block = &mut blocks[at];
        if !block.reclaimable {
            held -= block.used;
            // SAFETY: nothing refers to a block that is not in use.
            block.reclaimable = unsafe { make_reclaimable(block.ptr, block.layout) };
        }
        if block.reclaimable && retained <= limit {
            at += 1;
        } else {
            retained -= block.used;
            freed.push(blocks.remove(at));
        }
    }
    freed
}

/// Returns the whole huge pages after the first `used` bytes of a block to the system; returns
/// their size in bytes.
///
/// # Safety
/// As [`free`].
#[cfg(target_os = "linux")]
unsafe fn return_pages(ptr: *mut u8, layout: Layout, used: usize) -> usize {
    let (start, end) = (used.next_multiple_of(HUGE_PAGE), layout.size() / HUGE_PAGE * HUGE_PAGE);
    if layout.align() < HUGE_PAGE || start >= end {
        return 0;
    }
    // SAFETY: the range lies in an unused block, on page boundaries.
    let done = unsafe { libc::madvise(ptr.add(start).cast(), end - start, libc::MADV_DONTNEED) };
    if done == 0 { end - start } else { 0 }
}

#[cfg(not(target_os = "linux"))]
unsafe fn return_pages(_ptr: *mut u8, _layout: Layout, _used: usize) -> usize {
    0
}

/// Lets the system reclaim the pages of a block when it needs memory; returns whether that worked.
///
/// # Safety
/// Nothing refers to the block, and its contents are no longer needed.
#[cfg(target_os = "linux")]
unsafe fn make_reclaimable(ptr: *mut u8, layout: Layout) -> bool {
    let bytes = layout.size() / HUGE_PAGE * HUGE_PAGE;
    // SAFETY: whole pages of an unused block.
    layout.align() >= HUGE_PAGE && unsafe { libc::madvise(ptr.cast(), bytes, libc::MADV_FREE) } == 0
}

#[cfg(not(target_os = "linux"))]
unsafe fn make_reclaimable(_ptr: *mut u8, _layout: Layout) -> bool {
    false
}

/// Frees every block.
pub(crate) fn clear() {
    let blocks = std::mem::take(&mut lock().blocks);
    drop(blocks);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::alloc::{alloc, dealloc};

    use super::*;

    #[test]
    fn unused_pages_are_not_held() {
        for (pages, align, used, returned_pages) in [
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
                assert_eq!(return_pages(block, layout, used), returned_pages * HUGE_PAGE);
                let retained = layout.size() - returned_pages * HUGE_PAGE;
                assert!((0..retained).step_by(4096).all(|at| *block.add(at) == 7));
                assert!((retained..layout.size()).step_by(4096).all(|at| *block.add(at) == 0));
                dealloc(block, layout);
            }
        }
    }

    fn block(pages: usize, align: usize) -> Block {
        let layout = Layout::from_size_align(pages * HUGE_PAGE, align).unwrap();
        // SAFETY: the layout has a size above zero.
        let ptr = unsafe { alloc(layout) };
        assert!(!ptr.is_null());
        Block { ptr, layout, used: layout.size(), reclaimable: false }
    }

    fn sizes(blocks: &[Block]) -> Vec<(usize, bool)> {
        blocks.iter().map(|b| (b.used / HUGE_PAGE, b.reclaimable)).collect()
    }

    #[test]
    fn the_oldest_blocks_are_reclaimable_and_then_freed() {
        let pages = |n: usize| n * HUGE_PAGE;
        let mut blocks = vec![block(3, HUGE_PAGE), block(2, 64), block(2, HUGE_PAGE)];
        assert!(enforce_limit(&mut blocks, pages(7), pages(7)).is_empty());
        let freed = enforce_limit(&mut blocks, pages(6), pages(7));
        assert_eq!((freed.len(), sizes(&blocks)), (0, vec![(3, true), (2, false), (2, false)]));
        let freed = enforce_limit(&mut blocks, pages(3), pages(7));
        assert_eq!(
            (sizes(&freed), sizes(&blocks)),
            (vec![(2, false)], vec![(3, true), (2, false)])
        );
        // Reclaimable pages can be written again. SAFETY: a block of that size, which nothing else
        // refers to.
        unsafe { blocks[0].ptr.write_bytes(9, pages(3)) };
        let freed = enforce_limit(&mut blocks, pages(9), pages(4));
        assert_eq!((sizes(&freed), sizes(&blocks)), (vec![(3, true)], vec![(2, false)]));
        blocks.extend((0..MOST_BLOCKS).map(|_| block(1, 64)));
        assert_eq!(sizes(&enforce_limit(&mut blocks, usize::MAX, usize::MAX)), [(2, false)]);
    }
}
