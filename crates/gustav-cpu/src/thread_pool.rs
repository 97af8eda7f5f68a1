//! A pool of threads that spin for a moment before they sleep: while calls follow each other
//! closely, a fork and join costs about a microsecond; waking sleeping threads costs tens.

use std::any::Any;
use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, available_parallelism};

// Pauses before a thread sleeps, some 100 µs; none where threads outnumber the cores.
const SPINS: usize = 4000;

/// The caller and `count - 1` threads of its own.
pub(crate) struct ThreadPool {
    shared: Arc<Shared>,
    // The process that started the threads: a forked child has the pool, but none of its threads.
    process: u32,
    // Held while a job runs.
    busy: Mutex<()>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    /// Number of jobs so far; its change is the signal to start.
    epoch: AtomicUsize,
    job: UnsafeCell<Job>,
    /// Members that have not finished the job.
    pending: AtomicUsize,
    stop: AtomicBool,
    asleep: AtomicUsize,
    caller_asleep: AtomicBool,
    lock: Mutex<()>,
    start: Condvar,
    done: Condvar,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    spins: usize,
}

#[derive(Clone, Copy)]
struct Job {
    work: *const (),
    /// Calls `work` for one part.
    call: unsafe fn(*const (), usize),
    parts: usize,
    stride: usize,
}

// SAFETY: `job` is written only while every worker waits for the next epoch; what it points to
// is `Sync` and outlives the job.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl ThreadPool {
    /// `count` threads with the caller's; `begin(k)` runs on worker `k` (from 1) first.
    pub(crate) fn new(
        count: usize,
        begin: impl Fn(usize) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let cores = available_parallelism().map_or(1, usize::from);
        let shared = Arc::new(Shared {
            epoch: AtomicUsize::new(0),
            job: UnsafeCell::new(Job {
                work: std::ptr::null(),
                call: |_, _| {},
                parts: 0,
                stride: 1,
            }),
            pending: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            asleep: AtomicUsize::new(0),
            caller_asleep: AtomicBool::new(false),
            lock: Mutex::new(()),
            start: Condvar::new(),
            done: Condvar::new(),
            panic: Mutex::new(None),
            spins: if count <= cores { SPINS } else { 0 },
        });
        let process = std::process::id();
        let mut pool = ThreadPool { shared, process, busy: Mutex::new(()), workers: Vec::new() };
        for k in 1..count {
            let (shared, begin) = (pool.shared.clone(), begin.clone());
            let worker = Builder::new().name(format!("gustav-{k}")).spawn(move || {
                begin(k);
                shared.serve(k);
            })?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// Threads, the caller's included.
    pub(crate) fn count(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `work(k)` for every `k` below `parts`, part `k` on thread `k` modulo the pool's size,
    /// part 0 on the caller. The caller runs all parts when the pool is busy with another job (of
    /// another thread, or the one that makes this call), and in a forked child.
    pub(crate) fn each<F: Fn(usize) + Sync>(&self, parts: usize, work: F) {
        if self.workers.is_empty() || parts <= 1 || self.is_foreign() {
            return (0..parts).for_each(work);
        }
        let Ok(_busy) = self.busy.try_lock() else {
            return (0..parts).for_each(work);
        };
        unsafe fn call<F: Fn(usize)>(work: *const (), part: usize) {
            // SAFETY: `work` is the F below, which outlives the job.
            unsafe { (*work.cast::<F>())(part) }
        }
        let shared = &*self.shared;
        let stride = self.workers.len() + 1;
        let job = Job { work: (&raw const work).cast(), call: call::<F>, parts, stride };
        // SAFETY: no worker reads the job before the epoch changes.
        unsafe { *shared.job.get() = job };
        shared.pending.store(self.workers.len(), SeqCst);
        shared.begin();
        let mine = catch_unwind(AssertUnwindSafe(|| {
            (0..parts).step_by(stride).for_each(&work);
        }));
        // `work` is borrowed by the workers until they are all done, panic or not.
        shared.wait_for_workers();
        let theirs = guard(&shared.panic).take();
        if let Some(panic) = mine.err().or(theirs) {
            resume_unwind(panic);
        }
    }
}

impl ThreadPool {
    /// Whether the threads belong to another process.
    fn is_foreign(&self) -> bool {
        self.process != std::process::id()
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        if self.is_foreign() {
            // In a forked child there are no threads to join: the handles are of the parent's.
            std::mem::forget(std::mem::take(&mut self.workers));
            return;
        }
        self.shared.stop.store(true, SeqCst);
        self.shared.begin();
        for worker in self.workers.drain(..) {
            // A worker catches its panics, so there is nothing to pass on.
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// Starts the workers on the next job.
    fn begin(&self) {
        self.epoch.fetch_add(1, SeqCst);
        if self.asleep.load(SeqCst) > 0 {
            let _lock = guard(&self.lock);
            self.start.notify_all();
        }
    }

    fn serve(&self, worker: usize) {
        let mut seen = 0;
        loop {
            self.wait_for_job(seen);
            seen += 1;
            if self.stop.load(SeqCst) {
                return;
            }
            // SAFETY: the caller wrote the job before the epoch, and waits for us.
            let job = unsafe { *self.job.get() };
            let mine = catch_unwind(AssertUnwindSafe(|| {
                for part in (worker..job.parts).step_by(job.stride) {
                    // SAFETY: the caller keeps `work` until every worker is done.
                    unsafe { (job.call)(job.work, part) };
                }
            }));
            if let Err(panic) = mine {
                *guard(&self.panic) = Some(panic);
            }
            if self.pending.fetch_sub(1, SeqCst) == 1 && self.caller_asleep.load(SeqCst) {
                let _lock = guard(&self.lock);
                self.done.notify_all();
            }
        }
    }

    fn wait_for_job(&self, seen: usize) {
        for _ in 0..self.spins {
            if self.epoch.load(SeqCst) != seen {
                return;
            }
            spin_loop();
        }
        let mut lock = guard(&self.lock);
        self.asleep.fetch_add(1, SeqCst);
        while self.epoch.load(SeqCst) == seen {
            lock = self.start.wait(lock).unwrap_or_else(PoisonError::into_inner);
        }
        self.asleep.fetch_sub(1, SeqCst);
    }

    fn wait_for_workers(&self) {
        for _ in 0..self.spins {
            if self.pending.load(SeqCst) == 0 {
                return;
            }
            spin_loop();
        }
        let mut lock = guard(&self.lock);
        self.caller_asleep.store(true, SeqCst);
        while self.pending.load(SeqCst) > 0 {
            lock = self.done.wait(lock).unwrap_or_else(PoisonError::into_inner);
        }
        self.caller_asleep.store(false, SeqCst);
    }
}

// Panics leave no inconsistent state under these locks, so poisoning is ignored.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_runs_once_awake_or_asleep() {
        for count in [1, 2, 5] {
            let pool = ThreadPool::new(count, |_| {}).unwrap();
            for round in 0..50 {
                let runs: Vec<AtomicUsize> = (0..round).map(|_| AtomicUsize::new(0)).collect();
                pool.each(round, |k| {
                    runs[k].fetch_add(1, SeqCst);
                });
                assert!(runs.iter().all(|r| r.load(SeqCst) == 1));
                if round % 10 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
        }
    }

    #[test]
    fn jobs_within_jobs_and_from_two_threads_finish() {
        let pool = ThreadPool::new(3, |_| {}).unwrap();
        let runs = AtomicUsize::new(0);
        let nested = || {
            pool.each(4, |_| {
                pool.each(5, |_| {
                    runs.fetch_add(1, SeqCst);
                });
            });
        };
        std::thread::scope(|s| {
            s.spawn(nested);
            s.spawn(nested);
        });
        assert_eq!(runs.load(SeqCst), 40);
    }

    #[test]
    fn a_panic_is_passed_on_and_the_pool_lives() {
        let pool = ThreadPool::new(2, |_| {}).unwrap();
        for part in 0..2 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                pool.each(2, |k| assert!(k != part, "part {k}"));
            }));
            assert!(caught.is_err());
        }
        let runs = AtomicUsize::new(0);
        pool.each(2, |_| {
            runs.fetch_add(1, SeqCst);
        });
        assert_eq!(runs.load(SeqCst), 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_forked_child_runs_every_part_itself() {
        let pool = ThreadPool::new(3, |_| {}).unwrap();
        let runs = AtomicUsize::new(0);
        let work = |_| {
            runs.fetch_add(1, SeqCst);
        };
        // SAFETY: the child runs the pool and drops it, which takes no lock that the parent holds,
        // and leaves without unwinding into the parent's frames.
        let child = unsafe { libc::fork() };
        if child == 0 {
            pool.each(7, work);
            drop(pool);
            // SAFETY: ends the child alone.
            unsafe { libc::_exit(runs.load(SeqCst) as i32) };
        }
        assert!(child > 0, "fork failed");
        let mut status = 0;
        // SAFETY: `status` is where the child's status is written.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert!(libc::WIFEXITED(status), "{status}");
        assert_eq!(libc::WEXITSTATUS(status), 7);
        pool.each(2, work);
        assert_eq!(runs.load(SeqCst), 2);
    }
}
