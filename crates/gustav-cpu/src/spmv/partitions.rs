//! Rows cut between workers: partial sums are stored and added afterwards.
//!
//! Partitions depend on the pattern alone, never on the number of threads, and carry-outs are added
//! in their order: results are the same to the bit for any number of threads.

use std::ops::Range;

use gustav_core::{Arith, Index, Result, buffer::try_vec};

use super::epilogue::Output;
use crate::Threads;
use crate::schedule::Partition;
use crate::static_partition::StaticPartition;

// Nonzeros plus rows of one partition, and the most partitions of a matrix.
const WORK: usize = 8192;
const MOST: usize = 1024;
// The number of partitions is a multiple of this, so that this many threads get the same number
// each.
const MULTIPLE: usize = 16;

/// The partitions of a plan and storage for their sums.
pub(crate) struct Partitions<A> {
    cuts: Vec<Cut>,
    /// For each partition two partial sums: of its first row, if an earlier partition began it, and
    /// its carry-out.
    ends: Vec<(A, A)>,
    assignment: StaticPartition,
}

/// A partition, with all row bounds that its worker needs.
struct Cut {
    /// The end of a row that an earlier partition began.
    head: Option<(usize, Range<usize>)>,
    whole: Range<usize>,
    /// Whether a row ends here.
    closes: bool,
    carry_out: Range<usize>,
}

/// The operations of a product in partitions: sums over entries, and finished rows.
pub(crate) trait Parts<A>: Sync {
    /// The sum over the entries of one row (or a part of it).
    fn dot(&self, entries: Range<usize>) -> A;
    /// Finishes the rows that lie in a partition as a whole; no other thread accesses them.
    fn whole(&self, partition: usize, rows: Range<usize>);
    /// Adds two partial sums of the same row.
    fn add(&self, a: A, b: A) -> A;
    /// Finishes a row that was cut; no other thread accesses it.
    fn finish(&self, row: usize, sum: A);
    /// The value of an empty sum.
    fn empty(&self) -> A;
}

/// The number of partitions for `work` nonzeros and rows.
fn count(work: usize) -> usize {
    match work / WORK {
        0 => 1,
        n if n < MULTIPLE => MULTIPLE / 2,
        n => n.next_multiple_of(MULTIPLE).min(MOST),
    }
}

impl<A: Arith> Partitions<A> {
    /// Partitions for `threads` threads; neither their number nor their bounds depend on `threads`.
    pub(crate) fn new<O: Index>(
        offsets: &[O],
        schedule: fn(&[O], usize) -> Vec<Partition>,
        threads: usize,
    ) -> Result<Self> {
        let work = offsets.len() - 1 + offsets[offsets.len() - 1].to_usize();
        let partitions = schedule(offsets, count(work));
        let mut ends = try_vec(partitions.len(), "carry-outs")?;
        ends.resize(partitions.len(), (A::zero(), A::zero()));
        let cut = |partition: &Partition| {
            let (first, whole) = (partition.rows.start, partition.whole_rows(offsets));
            Cut {
                head: (whole.start > first).then(|| (first, partition.of_row(offsets, first))),
                whole,
                closes: !partition.rows.is_empty(),
                carry_out: partition.carry_out(offsets),
            }
        };
        let assignment = StaticPartition::new(partitions.len(), threads);
        Ok(Partitions { cuts: partitions.iter().map(cut).collect(), ends, assignment })
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.cuts) + size_of_val(&*self.ends) + self.assignment.bytes()
    }

    /// The rows that lie in each partition as a whole.
    pub(crate) fn whole_rows(&self) -> impl ExactSizeIterator<Item = Range<usize>> {
        self.cuts.iter().map(|cut| cut.whole.clone())
    }

    /// Finishes all rows.
    pub(crate) fn execute(&mut self, threads: &Threads, parts: &dyn Parts<A>) {
        let cuts = &self.cuts;
        let ends = Output::new(&mut self.ends);
        self.assignment.run(threads, |_, s| {
            let cut = &cuts[s];
            let head = match &cut.head {
                Some((_, entries)) => parts.dot(entries.clone()),
                None => parts.empty(),
            };
            parts.whole(s, cut.whole.clone());
            let carry = parts.dot(cut.carry_out.clone());
            // SAFETY: one element per partition.
            unsafe { ends.put(s, (head, carry)) };
        });
        let mut sum = parts.empty();
        for (cut, (head, carry)) in self.cuts.iter().zip(&self.ends) {
            if let Some((row, _)) = cut.head {
                parts.finish(row, parts.add(sum, *head));
            }
            if cut.closes {
                sum = parts.empty();
            }
            sum = parts.add(sum, *carry);
        }
    }
}
