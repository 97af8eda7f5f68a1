//! Large blocks of memory on their way from one owner to the next.
//!
//! The first touch of fresh memory costs more than writing a result into it. Freed blocks on huge
//! pages are therefore kept, a few of them, and marked as free for the system to take back when it
//! needs memory; until then the next allocation of about that size finds its pages in place.

use std::alloc::{Layout, dealloc};
use std::sync::Mutex;

struct Block {
    ptr: *mut u8,
    layout: Layout,
}

// SAFETY: a block owns its memory and nothing else refers to it.
unsafe impl Send for Block {}

// Enough for the arrays of two matrices and a workspace.
const KEPT: usize = 8;

static BLOCKS: Mutex<Vec<Block>> = Mutex::new(Vec::new());

/// A kept block of at least `bytes` bytes, and at most twice that, with its layout.
pub(crate) fn take(bytes: usize) -> Option<(*mut u8, Layout)> {
    let mut blocks = BLOCKS.lock().ok()?;
    let fitting = (0..blocks.len())
        .filter(|&k| (bytes..=bytes.saturating_mul(2)).contains(&blocks[k].layout.size()));
    let best = fitting.min_by_key(|&k| blocks[k].layout.size())?;
    let block = blocks.remove(best);
    Some((block.ptr, block.layout))
}

/// Keeps a block, or frees it (or the block kept for longest) when there are too many.
///
/// # Safety
/// `ptr` was allocated with `layout` by the global allocator, is aligned to pages, and nothing
/// refers to it any more.
pub(crate) unsafe fn give(ptr: *mut u8, layout: Layout) {
    let mut block = Block { ptr, layout };
    if mark_free(&block)
        && let Ok(mut blocks) = BLOCKS.lock()
    {
        blocks.push(block);
        if blocks.len() <= KEPT {
            return;
        }
        block = blocks.remove(0);
    }
    // SAFETY: promised by the giver of the block.
    unsafe { dealloc(block.ptr, block.layout) };
}

/// Frees every kept block.
pub(crate) fn clear() {
    let blocks = BLOCKS.lock().map(|mut b| std::mem::take(&mut *b)).unwrap_or_default();
    for block in blocks {
        // SAFETY: promised by the giver of the block.
        unsafe { dealloc(block.ptr, block.layout) };
    }
}

/// Lets the system take the pages back when it needs them; false where it cannot.
#[cfg(target_os = "linux")]
fn mark_free(block: &Block) -> bool {
    // SAFETY: the block is ours and its contents are no longer needed; its start is aligned, and
    // the length is cut to whole pages.
    unsafe { libc::madvise(block.ptr.cast(), block.layout.size() & !4095, libc::MADV_FREE) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn mark_free(_block: &Block) -> bool {
    false
}
