//! The threads that kernels run on.

use std::sync::{Arc, OnceLock};

use gustav_core::{Error, Result};

/// A set of worker threads, shared by the plans that were made with it.
#[derive(Clone)]
pub struct Threads {
    // None: the global pool of rayon, one thread per core.
    pool: Option<Arc<rayon::ThreadPool>>,
}

impl Threads {
    /// The process-wide pool: one thread per core, or what `RAYON_NUM_THREADS` says.
    pub fn global() -> Self {
        Threads { pool: None }
    }

    /// `count` threads of their own; with `pin`, each stays on one of the cores that the
    /// process may use, as measurements want (ignored where the system cannot pin).
    ///
    /// # Errors
    /// [`Error::Argument`] for 0 threads or more than the system gives.
    pub fn new(count: usize, pin: bool) -> Result<Self> {
        let refuse = |why: String| Error::Argument {
            name: "threads",
            found: count.to_string(),
            expected: why,
        };
        if count == 0 {
            return Err(refuse("at least 1".into()));
        }
        if count > 4096 {
            return Err(refuse("at most 4096".into()));
        }
        let cores = if pin { allowed_cores() } else { Vec::new() };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(count)
            .start_handler(move |k| {
                if let Some(core) = cores.get(k % cores.len().max(1)) {
                    pin_to(*core);
                }
            })
            .build()
            .map_err(|e| refuse(format!("a number of threads the system gives ({e})")))?;
        Ok(Threads { pool: Some(Arc::new(pool)) })
    }

    /// Number of threads.
    pub fn count(&self) -> usize {
        self.pool.as_ref().map_or_else(rayon::current_num_threads, |p| p.current_num_threads())
    }

    /// Runs `work` inside the pool: rayon's parallel iterators in it use these threads.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Runs `work(k)` for every `k` below `parts`, part `k` on thread `k` where there are as
    /// many threads as parts, so that a thread meets the same memory again in the next call.
    pub fn each(&self, parts: usize, work: impl Fn(usize) + Sync) {
        if parts <= 1 {
            (0..parts).for_each(work);
            return;
        }
        let body = |context: rayon::BroadcastContext<'_>| {
            let mut k = context.index();
            while k < parts {
                work(k);
                k += context.num_threads();
            }
        };
        match &self.pool {
            Some(pool) => pool.broadcast(body),
            None => rayon::broadcast(body),
        };
    }
}

impl Default for Threads {
    fn default() -> Self {
        Self::global()
    }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Threads").field("count", &self.count()).finish()
    }
}

/// Cores this process may run on, read once.
fn allowed_cores() -> Vec<usize> {
    static CORES: OnceLock<Vec<usize>> = OnceLock::new();
    CORES.get_or_init(read_affinity).clone()
}

#[cfg(target_os = "linux")]
fn read_affinity() -> Vec<usize> {
    // SAFETY: an all-zero cpu_set_t is a valid empty set; the call fills it within its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|&k| libc::CPU_ISSET(k, &set)).collect()
    }
}

#[cfg(not(target_os = "linux"))]
fn read_affinity() -> Vec<usize> {
    Vec::new()
}

#[cfg(target_os = "linux")]
fn pin_to(core: usize) {
    // SAFETY: the set is built by the library's own helpers; a refusal leaves the thread free.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

#[cfg(not(target_os = "linux"))]
fn pin_to(_core: usize) {}
