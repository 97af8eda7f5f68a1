//! Parts of a product dealt to threads. A thread gets neighbouring parts, the same ones in every
//! execution, so that what it read and wrote last time still lies in its own caches; when it is
//! done with them it helps the others.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::Threads;
use crate::arch::stream;

pub(crate) struct Deal {
    hands: Vec<Hand>,
}

/// What one thread was dealt; on cache lines of its own, for every thread counts up its own.
#[repr(align(128))]
struct Hand {
    parts: Range<usize>,
    next: AtomicUsize,
}

impl Deal {
    /// `parts` parts of about the same work to `threads` threads.
    pub(crate) fn new(parts: usize, threads: usize) -> Self {
        let threads = threads.min(parts).max(1);
        let cut = |t| (parts as u128 * t as u128 / threads as u128) as usize;
        let hand = |t| Hand { parts: cut(t)..cut(t + 1), next: AtomicUsize::new(0) };
        Deal { hands: (0..threads).map(hand).collect() }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.hands[..])
    }

    /// Threads that were dealt anything.
    pub(crate) fn threads(&self) -> usize {
        self.hands.len()
    }

    /// Calls `work(thread, part)` once for every part, `thread` below [`Deal::threads`] and on
    /// one thread at a time; stores past the caches are in order when this returns.
    pub(crate) fn run(&mut self, threads: &Threads, work: impl Fn(usize, usize) + Sync) {
        for hand in &mut self.hands {
            *hand.next.get_mut() = hand.parts.start;
        }
        let hands = &self.hands;
        threads.each(hands.len(), |thread| {
            for hand in hands[thread..].iter().chain(&hands[..thread]) {
                // Looking first keeps the line shared once a hand is empty.
                while hand.next.load(Relaxed) < hand.parts.end {
                    let part = hand.next.fetch_add(1, Relaxed);
                    if part < hand.parts.end {
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
                let mut deal = Deal::new(parts, count);
                for _ in 0..3 {
                    let runs: Vec<_> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
                    deal.run(&threads, |_, part| {
                        runs[part].fetch_add(1, Relaxed);
                    });
                    assert!(runs.iter().all(|r| r.load(Relaxed) == 1));
                }
            }
        }
    }

    #[test]
    fn a_thread_that_is_done_helps_the_others() {
        let threads = Threads::new(2, false).unwrap();
        let mut deal = Deal::new(8, 2);
        let done = AtomicUsize::new(0);
        deal.run(&threads, |_, part| {
            // Part 0 waits for all others, half of which were dealt to its own thread.
            while part == 0 && done.load(Relaxed) < 7 {
                std::thread::yield_now();
            }
            done.fetch_add(1, Relaxed);
        });
        assert_eq!(done.load(Relaxed), 8);
    }
}
