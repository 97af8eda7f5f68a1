//! `row-split` (paper A §4.1): whole rows, parts of the same number of rows, taken by whichever
//! thread is free. No row is cut, so every element is summed in one fixed order.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use gustav_core::{Index, Semiring};

use super::kernel::Rows;
use super::operands::Operands;
use crate::arch::Isa;
use crate::arch::vector::{fence_streams, vectorize};
use crate::spmm::CpuScalar;
use crate::{Threads, schedule};

// Parts for each thread: enough to even out skewed rows and a busy core.
const PARTS: usize = 32;

/// Rows in parts of the same number, for any free thread of `threads` to take.
pub(super) fn parts<O: Index>(offsets: &[O], threads: usize) -> Vec<Range<usize>> {
    let rows = offsets.len() - 1;
    let parts = if threads == 1 { 1 } else { (threads * PARTS).min(rows.max(1)) };
    schedule::row_split(offsets, parts).into_iter().map(|s| s.rows).collect()
}

pub(super) struct RowSplit {
    parts: Vec<Range<usize>>,
}

impl RowSplit {
    pub(super) fn new<O: Index>(offsets: &[O], threads: usize) -> Self {
        RowSplit { parts: parts(offsets, threads) }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.parts[..])
    }

    pub(super) fn execute<T: CpuScalar, I: Index, S: Semiring<T::Accum>>(
        &self,
        threads: &Threads,
        isa: Isa,
        op: &Operands<'_, T, I>,
    ) {
        let next = AtomicUsize::new(0);
        threads.each(threads.count().min(self.parts.len()), |_| {
            while let Some(rows) = self.parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                // SAFETY: the plan checked that the instruction set is there; parts are disjoint.
                unsafe { vectorize::<T, S, _>(isa, Rows { op, rows: rows.clone() }) }
            }
            if op.streaming {
                fence_streams();
            }
        });
    }
}
