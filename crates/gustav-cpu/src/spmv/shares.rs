//! Rows cut between workers: carry-outs are written aside and added afterwards.
//!
//! Shares are cut by the pattern alone, never by the number of threads, and carries are added
//! in their order: results are the same to the bit for any number of threads.

use std::ops::Range;

use gustav_core::{Index, Result, Scalar, Semiring, buffer::try_vec};

use super::epilogue::{Epilogue, Output};
use super::rows::Operands;
use crate::Threads;
use crate::arch::Isa;
use crate::schedule::Share;

// Nonzeros plus rows of one share, and the most shares of a matrix.
const WORK: usize = 8192;
const MOST: usize = 1024;
// Shares come in multiples of this, so that as many threads get the same number of them.
const MULTIPLE: usize = 16;

/// The shares of a plan and room for their sums.
pub(crate) struct Shares<A> {
    shares: Vec<Share>,
    /// Of each share, what it has of its first row (when that began before), and its carry-out.
    ends: Vec<(A, A)>,
}

/// How many shares make `work` nonzeros and rows.
fn count(work: usize) -> usize {
    match work / WORK {
        0 => 1,
        n if n < MULTIPLE => MULTIPLE / 2,
        n => n.next_multiple_of(MULTIPLE).min(MOST),
    }
}

impl<A: gustav_core::Arith> Shares<A> {
    pub(crate) fn new<O: Index>(
        offsets: &[O],
        schedule: fn(&[O], usize) -> Vec<Share>,
    ) -> Result<Self> {
        let work = offsets.len() - 1 + offsets[offsets.len() - 1].to_usize();
        let shares = schedule(offsets, count(work));
        let mut ends = try_vec(shares.len(), "carry-outs")?;
        ends.resize(shares.len(), (A::zero(), A::zero()));
        Ok(Shares { shares, ends })
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.shares) + size_of_val(&*self.ends)
    }

    pub(crate) fn shares(&self) -> &[Share] {
        &self.shares
    }

    /// Computes y; `whole(share, rows, y)` finishes the rows that lie in a share as a whole.
    pub(crate) fn execute<T, I, O, S>(
        &mut self,
        threads: &Threads,
        isa: Isa,
        operands: &Operands<'_, T, I, O>,
        epilogue: &Epilogue<A, S>,
        y: &mut [T],
        whole: impl Fn(usize, Range<usize>, Output<'_, T>) + Sync,
    ) where
        T: Scalar<Accum = A>,
        I: Index,
        O: Index,
        S: Semiring<A>,
    {
        let (shares, offsets) = (&self.shares, operands.offsets);
        let workers = threads.count().min(shares.len());
        let (out, ends) = (Output::new(y), Output::new(&mut self.ends));
        threads.each(workers, |w| {
            for s in w * shares.len() / workers..(w + 1) * shares.len() / workers {
                let share = &shares[s];
                let rows = share.whole_rows(offsets);
                let head = if rows.start > share.rows.start {
                    operands.dot::<S>(isa, share.of_row(offsets, share.rows.start))
                } else {
                    S::zero()
                };
                whole(s, rows, out);
                let carry = operands.dot::<S>(isa, share.carry_out(offsets));
                // SAFETY: one share, one place.
                unsafe { ends.put(s, (head, carry)) };
            }
        });
        let mut sum = S::zero();
        for (share, (head, carry)) in self.shares.iter().zip(&self.ends) {
            if !share.rows.is_empty() {
                if share.begins_inside(offsets) {
                    // SAFETY: the workers are done, and `rows.start` is a row of y.
                    unsafe { epilogue.store(out, share.rows.start, S::add(sum, *head)) };
                }
                sum = S::zero();
            }
            sum = S::add(sum, *carry);
        }
    }
}
