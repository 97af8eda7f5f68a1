//! Affinity of the measuring thread.

/// Pins the calling thread to the first core that it may use, until dropped: the library's pinned
/// threads leave that core to the caller.
pub(crate) struct Pinned {
    #[cfg(target_os = "linux")]
    before: Option<libc::cpu_set_t>,
}

#[cfg(target_os = "linux")]
impl Pinned {
    /// Pins the calling thread; does nothing if the system refuses.
    pub fn to_first_core() -> Self {
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: all-zero sets are valid empty sets, and the calls stay within their size.
        unsafe {
            let mut before: libc::cpu_set_t = std::mem::zeroed();
            if libc::sched_getaffinity(0, size, &mut before) != 0 {
                return Pinned { before: None };
            }
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            let cores = 0..libc::CPU_SETSIZE as usize;
            let Some(first) = cores.into_iter().find(|&k| libc::CPU_ISSET(k, &before)) else {
                return Pinned { before: None };
            };
            libc::CPU_SET(first, &mut one);
            let pinned = libc::sched_setaffinity(0, size, &one) == 0;
            Pinned { before: pinned.then_some(before) }
        }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: the set is the one that the system returned.
            unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), before) };
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Pinned {
    /// Does nothing: the system has no such call.
    pub fn to_first_core() -> Self {
        Pinned {}
    }
}
