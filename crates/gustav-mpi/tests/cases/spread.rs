//! How cases are spread over ranks.

use gustav_cpu::Threads;
use gustav_mpi::{Communication, Device, Hosts, Options, Partition};

/// Choices that differ from case to case: each number of ranks with each kind of partition and of communication.
pub struct Spreads {
    sizes: Vec<usize>,
    number: usize,
}

/// How a case is spread over ranks.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub ranks: usize,
    pub kind: usize,
    /// Consecutive ranks on each host.
    pub on_host: usize,
    pub communication: Communication,
}

impl Spreads {
    /// On so many ranks.
    pub fn over(sizes: Vec<usize>) -> Self {
        Spreads { sizes, number: 0 }
    }

    pub fn next(&mut self) -> Spread {
        let number = self.number;
        self.number += 1;
        Spread {
            ranks: self.sizes[number % self.sizes.len()],
            kind: number / self.sizes.len() % 4,
            on_host: [1, 2, 3, 8][number / 3 % 4],
            communication: Communication::ALL[number / 2 % 3],
        }
    }
}

impl Spread {
    /// A partition of `rows` rows: even, all on one rank, uneven with empty ranks, or only on the first and last.
    pub fn partition(&self, rows: usize) -> Partition {
        let Spread { ranks, kind, .. } = *self;
        let mut counts = vec![0; ranks];
        match kind {
            0 => return Partition::even(rows, ranks),
            1 => counts[ranks / 2] = rows,
            2 => {
                let mut left = rows;
                for (rank, count) in counts.iter_mut().enumerate() {
                    *count = if rank % 3 == 1 { 0 } else { left.div_ceil(2) };
                    left -= *count;
                }
                counts[0] += left;
            }
            _ => {
                counts[0] = rows / 3;
                counts[ranks - 1] += rows - rows / 3;
            }
        }
        Partition::of_counts(&counts).expect("counts of rows")
    }

    pub fn hosts(&self) -> Hosts {
        Hosts::of_consecutive(self.ranks, self.on_host)
    }

    pub fn device(&self) -> Device {
        let threads = Threads::new(1, false).expect("one thread");
        Device::cpu(Options { threads, ..Options::default() }).communication(self.communication)
    }
}
