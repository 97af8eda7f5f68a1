//! The threads that kernels run on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use gustav_core::parallel::{self, Executor};
use gustav_core::{Error, Result};

use crate::thread_pool::ThreadPool;

/// A set of worker threads, shared by the plans that were made with it.
#[derive(Clone)]
pub struct Threads {
    // None: the global pool, one thread per core.
    own: Option<Arc<ThreadPool>>,
}

impl Threads {
    /// The process-wide pool: one thread per core, or what `RAYON_NUM_THREADS` says.
    pub fn global() -> Self {
        Threads { own: None }
    }

    /// `count` threads of their own; with `pin`, each is bound to one of the cores that the process
    /// may use, for measurements (ignored where the system has no affinity). The first core is left
    /// to the calling thread, which computes part 0 of [`Threads::each`].
    ///
    /// # Errors
    /// [`Error::Argument`] for 0 threads or more than the system can start.
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
        let pin = move |k: usize| {
            if let Some(core) = cores.get(k % cores.len().max(1)) {
                pin_to(*core);
            }
        };
        let pool = ThreadPool::new(count, pin)
            .map_err(|e| refuse(format!("a number of threads that the system can start ({e})")))?;
        Ok(Threads { own: Some(Arc::new(pool)) })
    }

    /// Number of threads.
    pub fn count(&self) -> usize {
        self.own.as_ref().map_or_else(rayon::current_num_threads, |pool| pool.count())
    }

    /// Runs `work` on the calling thread, and the loops of [`gustav_core::parallel`] in it on
    /// these threads.
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> R {
        parallel::on(self, work)
    }

    /// Runs `work(k)` for every `k` below `parts`, part `k` on thread `k` where there are as many
    /// threads as parts, so that a thread reads the same memory again in the next call. The calling
    /// thread is thread 0; it runs every part if `each` is called within `each`, or while another
    /// thread's call is running.
    pub fn each(&self, parts: usize, work: impl Fn(usize) + Sync) {
        let pool = match &self.own {
            Some(pool) => Some(&**pool),
            None => global_pool(),
        };
        // One type for all work, so that the pool is compiled once.
        let work: &(dyn Fn(usize) + Sync) = &work;
        match pool {
            Some(pool) => pool.each(parts, work),
            None => (0..parts).for_each(work),
        }
    }
}

impl Executor for Threads {
    fn threads(&self) -> usize {
        self.count()
    }

    fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        Threads::each(self, self.count().min(count), |_| {
            loop {
                let k = next.fetch_add(1, Ordering::Relaxed);
                if k >= count {
                    break;
                }
                work(k);
            }
        });
    }
}

/// The threads of the process-wide pool; none where the system can start no threads.
fn global_pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    POOL.get_or_init(|| ThreadPool::new(rayon::current_num_threads(), |_| {}).ok()).as_ref()
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
    // SAFETY: the set is built by libc's own macros; if the call fails, the thread is not bound.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

#[cfg(not(target_os = "linux"))]
fn pin_to(_core: usize) {}
