//! The allocator of the measuring process, set as that of the peers.

// mallopt's names for its parameters (malloc.h).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const PARAMETERS: [(i32, i32); 3] = [
    // M_MMAP_THRESHOLD, M_TRIM_THRESHOLD: keep freed memory instead of giving it back.
    (-3, i32::MAX),
    (-1, i32::MAX),
    // M_ARENA_MAX: one arena, since others cannot hold large blocks.
    (-8, 1),
];

/// Gives freed memory back to the system, which `keep_freed_memory` would not. Nothing where the
/// allocator is another one.
pub(crate) fn give_back_freed_memory() {
    gustav_core::buffer::release_kept();
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: returns free pages of the heap and touches no other.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Makes glibc keep freed blocks, so that a new product does not pay for first touches that
/// the peers, set the same way, do not pay for. Nothing elsewhere.
pub(crate) fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (parameter, value) in PARAMETERS {
        // SAFETY: mallopt takes two integers and changes tuning only.
        unsafe { libc::mallopt(parameter, value) };
    }
}
