//! `csb` (Aktulga et al. 2014; Yang, Buluç, Owens 2018, §6): compressed sparse blocks, the same
//! structure for A and Aᵀ.
//!
//! A strip of blocks writes its own elements of y, so threads take strips: block rows for A, block
//! columns for Aᵀ. x is read one block at a time, y stays in cache for the whole strip. Values are
//! read from the caller's array.

use gustav_core::{Arith, Buffer, Index, Ops, PatternView, Result, Scalar};

use super::epilogue::{Epilogue, Output};
use crate::Threads;
use crate::csb::{Csb, default_block};

pub(crate) struct Blocks<A, O: Index> {
    csb: Csb<O>,
    transposed: bool,
    /// Strips of each thread.
    bounds: Vec<usize>,
    /// One sum for every row of the result.
    sums: Buffer<A>,
}

impl<A: Arith, O: Index> Blocks<A, O> {
    pub(crate) fn new<I: Index>(
        a: &PatternView<'_, I, O>,
        transposed: bool,
        threads: &Threads,
    ) -> Result<Self> {
        let csb = Csb::new(a, default_block(a.nrows(), a.ncols()))?;
        let bounds = csb.balanced(transposed, threads.count());
        let rows = if transposed { a.ncols() } else { a.nrows() };
        Ok(Blocks { csb, transposed, bounds, sums: Buffer::zeroed(rows, "sums")? })
    }

    pub(crate) fn block(&self) -> usize {
        self.csb.block()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.csb.bytes() + size_of_val(&*self.bounds) + size_of_val(&*self.sums)
    }

    pub(crate) fn execute<T: Scalar<Accum = A>, S: Ops<A>>(
        &mut self,
        threads: &Threads,
        values: &[T],
        x: &[T],
        epilogue: &Epilogue<A, S>,
        y: &mut [T],
    ) {
        let (rows, block, s) = (y.len(), self.csb.block(), epilogue.semiring);
        let (csb, transposed, bounds) = (&self.csb, self.transposed, &self.bounds);
        let (out, sums) = (Output::new(y), Output::new(&mut self.sums));
        threads.each(bounds.len() - 1, |t| {
            for strip in bounds[t]..bounds[t + 1] {
                let first = strip * block;
                let len = block.min(rows - first);
                // SAFETY: the sums of different strips are disjoint.
                let sums = unsafe { sums.slice(first, len) };
                sums.fill(s.zero());
                for b in csb.strip(transposed, strip) {
                    let locals = (csb.local_rows(), csb.local_cols());
                    let ((to, from), start) =
                        if transposed { ((locals.1, locals.0), b.row) } else { (locals, b.col) };
                    for e in b.entries.clone() {
                        let a = values[csb.positions()[e].to_usize()].to_accum();
                        let x = x[start + usize::from(from[e])].to_accum();
                        let sum = &mut sums[usize::from(to[e])];
                        *sum = s.mul_add(a, x, *sum);
                    }
                }
                for (k, sum) in sums.iter().enumerate() {
                    // SAFETY: these rows of y are the strip's own.
                    unsafe { epilogue.store(out, first + k, *sum) };
                }
            }
        });
    }
}
