//! A static partition of parts among threads, with work stealing. A thread gets consecutive parts,
//! the same ones in every execution, so that their data may still be in its own caches; when it has
//! finished them, it steals from the others.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::Threads;
use crate::arch::stream;

pub(crate) struct StaticPartition {
    ranges: Vec<ThreadRange>,
}

/// The parts of one thread; on cache lines of their own, against false sharing of the counters.
#[repr(align(128))]
struct ThreadRange {
    parts: Range<usize>,
    next: AtomicUsize,
}

impl StaticPartition {
    /// Assigns `parts` parts of about the same work to `threads` threads.
    pub(crate) fn new(parts: usize, threads: usize) -> Self {
        let threads = threads.min(parts).max(1);
        let cut = |t| (parts as u128 * t as u128 / threads as u128) as usize;
        let range = |t| ThreadRange { parts: cut(t)..cut(t + 1), next: AtomicUsize::new(0) };
        StaticPartition { ranges: (0..threads).map(range).collect() }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.ranges[..])
    }

    /// Threads that have parts.
    pub(crate) fn threads(&self) -> usize {
        self.ranges.len()
    }

    /// Calls `work(thread, part)` once for every part, `thread` below [`StaticPartition::threads`]
    /// and on one thread at a time; streaming stores are visible to all threads when this returns.
    pub(crate) fn run(&mut self, threads: &Threads, work: impl Fn(usize, usize) + Sync) {
        for range in &mut self.ranges {
            *range.next.get_mut() = range.parts.start;
        }
        let ranges = &self.ranges;
        threads.each(ranges.len(), |thread| {
            for range in ranges[thread..].iter().chain(&ranges[..thread]) {
                // Reading the counter before incrementing it keeps the cache line shared once a
                // range is exhausted.
                while range.next.load(Relaxed) < range.parts.end {
                    let part = range.next.fetch_add(1, Relaxed);
                    if part < range.parts.end {
                        work(thread, part);
                    }
                }
            }
            stream::fence();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_runs_once_in_every_run() {
        for count in [1, 2, 3] {
            let threads = Threads::new(count, false).unwrap();
            for parts in [0, 1, 2, 5, 64] {
                let mut assignment = StaticPartition::new(parts, count);
                for _ in 0..3 {
                    let runs: Vec<_> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
                    assignment.run(&threads, |_, part| {
                        runs[part].fetch_add(1, Relaxed);
                    });
                    assert!(runs.iter().all(|r| r.load(Relaxed) == 1));
                }
            }
        }
    }

    #[test]
    fn a_thread_without_work_steals_from_the_others() {
        let threads = Threads::new(2, false).unwrap();
        let mut assignment = StaticPartition::new(8, 2);
        let done = AtomicUsize::new(0);
        assignment.run(&threads, |_, part| {
            // Part 0 waits for all others, half of which belong to its own thread.
            while part == 0 && done.load(Relaxed) < 7 {
                std::thread::yield_now();
            }
            done.fetch_add(1, Relaxed);
        });
        assert_eq!(done.load(Relaxed), 8);
    }
}
