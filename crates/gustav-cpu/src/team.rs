//! A team of threads that wait for work by spinning for a moment before they sleep: a fork and
//! join costs about a microsecond while calls follow each other closely, where waking sleeping
//! threads costs tens.

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
pub(crate) struct Team {
    shared: Arc<Shared>,
    // Held while a job runs.
    busy: Mutex<()>,
    members: Vec<JoinHandle<()>>,
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

// SAFETY: `job` is written only while every member waits for the next epoch; what it points to
// is `Sync` and outlives the job.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Team {
    /// `count` threads with the caller's; `begin(k)` runs on member `k` (from 1) first.
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
        let mut team = Team { shared, busy: Mutex::new(()), members: Vec::new() };
        for k in 1..count {
            let (shared, begin) = (team.shared.clone(), begin.clone());
            let member = Builder::new().name(format!("gustav-{k}")).spawn(move || {
                begin(k);
                shared.serve(k);
            })?;
            team.members.push(member);
        }
        Ok(team)
    }

    /// Threads, the caller's included.
    pub(crate) fn count(&self) -> usize {
        self.members.len() + 1
    }

    /// Runs `work(k)` for every `k` below `parts`, part `k` on thread `k` modulo the team's
    /// size, part 0 on the caller. Alone on the caller when the team is busy with another job
    /// (of another thread, or the one that this call comes from).
    pub(crate) fn each<F: Fn(usize) + Sync>(&self, parts: usize, work: F) {
        let Ok(_busy) = self.busy.try_lock() else {
            return (0..parts).for_each(work);
        };
        if self.members.is_empty() || parts <= 1 {
            return (0..parts).for_each(work);
        }
        unsafe fn call<F: Fn(usize)>(work: *const (), part: usize) {
            // SAFETY: `work` is the F below, which outlives the job.
            unsafe { (*work.cast::<F>())(part) }
        }
        let shared = &*self.shared;
        let stride = self.members.len() + 1;
        let job = Job { work: (&raw const work).cast(), call: call::<F>, parts, stride };
        // SAFETY: no member reads the job before the epoch changes.
        unsafe { *shared.job.get() = job };
        shared.pending.store(self.members.len(), SeqCst);
        shared.begin();
        let mine = catch_unwind(AssertUnwindSafe(|| {
            (0..parts).step_by(stride).for_each(&work);
        }));
        // `work` is borrowed by the members until they are all done, panic or not.
        shared.wait_for_members();
        let theirs = guard(&shared.panic).take();
        if let Some(panic) = mine.err().or(theirs) {
            resume_unwind(panic);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.stop.store(true, SeqCst);
        self.shared.begin();
        for member in self.members.drain(..) {
            // A member catches its panics, so there is nothing to hand on.
            let _ = member.join();
        }
    }
}

impl Shared {
    /// Starts the members on the next job.
    fn begin(&self) {
        self.epoch.fetch_add(1, SeqCst);
        if self.asleep.load(SeqCst) > 0 {
            let _lock = guard(&self.lock);
            self.start.notify_all();
        }
    }

    fn serve(&self, member: usize) {
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
                for part in (member..job.parts).step_by(job.stride) {
                    // SAFETY: the caller keeps `work` until every member is done.
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

    fn wait_for_members(&self) {
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

// Nothing is left half done under these locks.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_runs_once_awake_or_asleep() {
        for count in [1, 2, 5] {
            let team = Team::new(count, |_| {}).unwrap();
            for round in 0..50 {
                let runs: Vec<AtomicUsize> = (0..round).map(|_| AtomicUsize::new(0)).collect();
                team.each(round, |k| {
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
        let team = Team::new(3, |_| {}).unwrap();
        let runs = AtomicUsize::new(0);
        let nested = || {
            team.each(4, |_| {
                team.each(5, |_| {
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
    fn a_panic_comes_back_and_the_team_lives() {
        let team = Team::new(2, |_| {}).unwrap();
        for part in 0..2 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                team.each(2, |k| assert!(k != part, "part {k}"));
            }));
            assert!(caught.is_err());
        }
        let runs = AtomicUsize::new(0);
        team.each(2, |_| {
            runs.fetch_add(1, SeqCst);
        });
        assert_eq!(runs.load(SeqCst), 2);
    }
}
