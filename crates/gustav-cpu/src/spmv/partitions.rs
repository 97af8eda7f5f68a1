//! Rows cut between workers: carry-outs are written aside and added afterwards.
//!
//! Partitions are cut by the pattern alone, never by the number of threads, and carries are added
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
// Partitions come in multiples of this, so that as many threads get the same number of them.
const MULTIPLE: usize = 16;

/// The partitions of a plan and storage for their sums.
pub(crate) struct Partitions<A> {
    pieces: Vec<Piece>,
    /// Of each partition, what it has of its first row (when that began before), and its carry-out.
    ends: Vec<(A, A)>,
    assignment: StaticPartition,
}

/// A partition, with all that its worker asks of the row offsets.
struct Piece {
    /// The end of a row that an earlier partition began.
    head: Option<(usize, Range<usize>)>,
    whole: Range<usize>,
    /// Whether a row ends here.
    closes: bool,
    carry_out: Range<usize>,
}

/// What partitions are made of: sums over entries, and rows to finish.
pub(crate) trait Parts<A>: Sync {
    /// The sum over the entries of one row (or a part of it).
    fn dot(&self, entries: Range<usize>) -> A;
    /// Finishes the rows that lie in a partition as a whole; no other thread is given them.
    fn whole(&self, partition: usize, rows: Range<usize>);
    /// Two sums of the same row in one.
    fn add(&self, a: A, b: A) -> A;
    /// Finishes a row that was cut; no other thread is given it.
    fn finish(&self, row: usize, sum: A);
    /// The value of an empty sum.
    fn empty(&self) -> A;
}

/// How many partitions make `work` nonzeros and rows.
fn count(work: usize) -> usize {
    match work / WORK {
        0 => 1,
        n if n < MULTIPLE => MULTIPLE / 2,
        n => n.next_multiple_of(MULTIPLE).min(MOST),
    }
}

impl<A: Arith> Partitions<A> {
    /// Partitions for `threads` threads to share; neither number nor bounds depend on theirs.
    pub(crate) fn new<O: Index>(
        offsets: &[O],
        schedule: fn(&[O], usize) -> Vec<Partition>,
        threads: usize,
    ) -> Result<Self> {
        let work = offsets.len() - 1 + offsets[offsets.len() - 1].to_usize();
        let partitions = schedule(offsets, count(work));
        let mut ends = try_vec(partitions.len(), "carry-outs")?;
        ends.resize(partitions.len(), (A::zero(), A::zero()));
        let piece = |partition: &Partition| {
            let (first, whole) = (partition.rows.start, partition.whole_rows(offsets));
            Piece {
                head: (whole.start > first).then(|| (first, partition.of_row(offsets, first))),
                whole,
                closes: !partition.rows.is_empty(),
                carry_out: partition.carry_out(offsets),
            }
        };
        let assignment = StaticPartition::new(partitions.len(), threads);
        Ok(Partitions { pieces: partitions.iter().map(piece).collect(), ends, assignment })
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.pieces) + size_of_val(&*self.ends) + self.assignment.bytes()
    }

    /// The rows that lie in each partition as a whole.
    pub(crate) fn whole_rows(&self) -> impl ExactSizeIterator<Item = Range<usize>> {
        self.pieces.iter().map(|piece| piece.whole.clone())
    }

    /// Finishes all rows.
    pub(crate) fn execute(&mut self, threads: &Threads, parts: &dyn Parts<A>) {
        let pieces = &self.pieces;
        let ends = Output::new(&mut self.ends);
        self.assignment.run(threads, |_, s| {
            let piece = &pieces[s];
            let head = match &piece.head {
                Some((_, entries)) => parts.dot(entries.clone()),
                None => parts.empty(),
            };
            parts.whole(s, piece.whole.clone());
            let carry = parts.dot(piece.carry_out.clone());
            // SAFETY: one element per partition.
            unsafe { ends.put(s, (head, carry)) };
        });
        let mut sum = parts.empty();
        for (piece, (head, carry)) in self.pieces.iter().zip(&self.ends) {
            if let Some((row, _)) = piece.head {
                parts.finish(row, parts.add(sum, *head));
            }
            if piece.closes {
                sum = parts.empty();
            }
            sum = parts.add(sum, *carry);
        }
    }
}
