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

/// What has glibc ask for huge pages; it is read when a program starts.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const HUGE_PAGES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");

/// Starts this program anew with huge pages under every array, as the peers have them: without
/// them, what cold caches cost is mostly the walks of page tables. Call it first in `main`; returns
/// where it has happened, and where it cannot be done (another allocator or system).
pub fn with_huge_pages() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use std::os::unix::process::CommandExt;
        let (name, value) = HUGE_PAGES;
        // Tunables that somebody else chose stay.
        if std::env::var_os(name).is_none()
            && let Ok(program) = std::env::current_exe()
        {
            let mut again = std::process::Command::new(program);
            let _ = again.args(std::env::args_os().skip(1)).env(name, value).exec();
        }
    }
}

/// Gives freed memory back to the system, which `keep_freed_memory` would not. Nothing where the
/// allocator is another one.
pub(crate) fn give_back_freed_memory() {
    gustav_core::buffer::release_blocks();
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
