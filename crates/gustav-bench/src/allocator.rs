//! Settings of the allocator of the measuring process, equal to those of the peers.

// mallopt's names for its parameters (malloc.h).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const PARAMETERS: [(i32, i32); 3] = [
    // M_MMAP_THRESHOLD, M_TRIM_THRESHOLD: keep freed memory instead of returning it to the system.
    (-3, i32::MAX),
    (-1, i32::MAX),
    // M_ARENA_MAX: one arena, since others cannot hold large blocks.
    (-8, 1),
];

/// Makes glibc request huge pages; read when a program starts.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const HUGE_PAGES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");

/// Restarts this program with huge pages for all arrays, as the peers have them: without them,
/// times with cold caches are mostly page-table walks. Call it first in `main`. Returns in the
/// restarted program, and if it cannot be done (another allocator or system).
pub fn with_huge_pages() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use std::os::unix::process::CommandExt;
        let (name, value) = HUGE_PAGES;
        // Tunables that the user has set are kept.
        if std::env::var_os(name).is_none()
            && let Ok(program) = std::env::current_exe()
        {
            let mut again = std::process::Command::new(program);
            let _ = again.args(std::env::args_os().skip(1)).env(name, value).exec();
        }
    }
}

/// Returns freed memory to the system despite `keep_freed_memory`. Does nothing with another
/// allocator.
pub(crate) fn give_back_freed_memory() {
    gustav_core::buffer::release_blocks();
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: returns free pages of the heap only.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Makes glibc keep freed blocks, so that a new product has no page faults that the peers, with the
/// same settings, do not have. Does nothing elsewhere.
pub(crate) fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (parameter, value) in PARAMETERS {
        // SAFETY: mallopt takes two integers and changes tuning only.
        unsafe { libc::mallopt(parameter, value) };
    }
}
