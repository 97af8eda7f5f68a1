//! Large blocks of memory on their way from one owner to the next.
//!
//! The first touch of fresh memory costs more than writing a result into it. A few freed blocks
//! are therefore kept, up to an eighth of the machine's memory, and the next
//! allocation of about the same size finds its pages in place.

use std::alloc::{Layout, dealloc};
use std::sync::{Mutex, OnceLock};

use crate::buffer::meminfo;

struct Block {
    ptr: *mut u8,
    layout: Layout,
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

/// Keeps a block, and frees those kept for longest when there are too many.
///
/// # Safety
/// `ptr` was allocated with `layout` by the global allocator, and nothing refers to it any more.
pub(crate) unsafe fn give(ptr: *mut u8, layout: Layout) {
    let block = Block { ptr, layout };
    let Ok(mut blocks) = BLOCKS.lock() else { return };
    blocks.push(block);
    let mut kept: usize = blocks.iter().map(|b| b.layout.size()).sum();
    let mut excess = 0;
    while kept > limit() || blocks.len() - excess > KEPT {
        kept -= blocks[excess].layout.size();
        excess += 1;
    }
    let freed: Vec<Block> = blocks.drain(..excess).collect();
    drop(blocks);
    drop(freed);
}

/// Frees every kept block.
pub(crate) fn clear() {
    let blocks = BLOCKS.lock().map(|mut b| std::mem::take(&mut *b));
    drop(blocks);
}
