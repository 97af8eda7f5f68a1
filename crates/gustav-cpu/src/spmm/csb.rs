//! `csb` (Aktulga et al. 2014; paper A §6): compressed sparse blocks, the same structure for A
//! and Aᵀ.
//!
//! A strip of blocks writes its own rows of C, so threads take strips: block rows for A, block
//! columns for Aᵀ. The sums of a strip stay in cache while its blocks, each of which meets few
//! rows of B, come one after another. Values are read where the caller holds them.

use std::sync::atomic::{AtomicUsize, Ordering};

use gustav_core::{Arith, Buffer, CsrView, Index, Result, Scalar, Semiring};

use super::kernel::{Panel, for_each_panel};
use super::operands::Operands;
use crate::Threads;
use crate::arch::Isa;
use crate::arch::vector::{Vector, Work, fence_streams, vectorize};
use crate::csb::{Csb, default_block};
use crate::spmm::CpuScalar;

pub(super) struct Blocks<A, O: Index> {
    csb: Csb<O>,
    transposed: bool,
    /// Sums of one strip for every thread.
    sums: Buffer<A>,
    stride: usize,
}

struct Shared<A>(*mut A);
// SAFETY: every thread writes its own strip of sums.
unsafe impl<A> Sync for Shared<A> {}

// Smallest useful block, whatever the cache.
const SMALLEST_BLOCK: usize = 64;

impl<A: Arith, O: Index> Blocks<A, O> {
    /// `sums_bytes`: cache for the sums of a strip; `block`: rows and columns of a block, if the
    /// cache is not to decide.
    pub(super) fn new<T: Scalar<Accum = A>, I: Index>(
        a: &CsrView<'_, T, I, O>,
        transposed: bool,
        columns: usize,
        sums_bytes: usize,
        block: Option<usize>,
        threads: usize,
    ) -> Result<Self> {
        let stride = columns.next_multiple_of(64);
        let fit = sums_bytes / (stride * size_of::<A>()).max(1);
        let fit = fit.max(SMALLEST_BLOCK).next_power_of_two();
        let csb = Csb::new(a, block.unwrap_or(default_block(a.nrows(), a.ncols()).min(fit)))?;
        let sums = Buffer::zeroed(threads * csb.block() * stride, "sums of strips")?;
        Ok(Blocks { csb, transposed, sums, stride })
    }

    pub(super) fn block(&self) -> usize {
        self.csb.block()
    }

    pub(super) fn bytes(&self) -> usize {
        self.csb.bytes() + size_of_val(&self.sums[..])
    }

    pub(super) fn execute<T: CpuScalar<Accum = A>, I: Index, S: Semiring<A>>(
        &mut self,
        threads: &Threads,
        isa: Isa,
        op: &Operands<'_, T, I>,
    ) {
        let strip_sums = self.csb.block() * self.stride;
        let parts = self.sums.len() / strip_sums.max(1);
        let (csb, transposed, stride) = (&self.csb, self.transposed, self.stride);
        let strips = csb.strips(transposed);
        let sums = Shared(self.sums.as_mut_ptr());
        let (sums, next) = (&sums, AtomicUsize::new(0));
        threads.each(parts.min(strips), |thread| {
            // SAFETY: one strip of sums was allocated for every part.
            let sums = unsafe { sums.0.add(thread * strip_sums) };
            loop {
                let strip = next.fetch_add(1, Ordering::Relaxed);
                if strip >= strips {
                    break;
                }
                let work = Strip { op, csb, transposed, strip, sums, stride };
                // SAFETY: the plan checked that the instruction set is there.
                unsafe { vectorize::<T, S, _>(isa, work) }
            }
            if op.streaming {
                fence_streams();
            }
        });
    }
}

/// One strip of blocks: `block()` rows of C.
struct Strip<'a, T: Scalar, I, O: Index> {
    op: &'a Operands<'a, T, I>,
    csb: &'a Csb<O>,
    transposed: bool,
    strip: usize,
    sums: *mut T::Accum,
    stride: usize,
}

impl<T: Scalar, I: Index, O: Index> Strip<'_, T, I, O> {
    #[inline(always)]
    unsafe fn panel<V: Vector<T>, const W: usize, const U: usize, const TAIL: bool>(
        &self,
        panel: &Panel<T, V, W, TAIL>,
    ) {
        let (op, csb) = (self.op, self.csb);
        let first = self.strip * csb.block();
        let rows = csb.block().min(op.rows - first);
        let (to, from) = match self.transposed {
            false => (csb.local_rows(), csb.local_cols()),
            true => (csb.local_cols(), csb.local_rows()),
        };
        // SAFETY: local positions stay below the block's sides, which end with the matrix;
        // positions are those of the plan's nonzeros, of which `values` has as many; the sums
        // have room for whole vectors of every row of a strip.
        unsafe {
            let sums = |row: usize| self.sums.add(row * self.stride + panel.start);
            for row in 0..rows {
                for w in 0..W {
                    V::store_sums(sums(row).add(w * V::LANES), V::splat(op.zero));
                }
            }
            for block in csb.strip(self.transposed, self.strip) {
                let b = op.b.add(if self.transposed { block.row } else { block.col } * op.ldb);
                for e in block.entries.clone() {
                    let sum = sums(usize::from(*to.get_unchecked(e)));
                    let x = b.add(usize::from(*from.get_unchecked(e)) * op.ldb);
                    let position = csb.positions().get_unchecked(e).to_usize();
                    let a = V::splat(op.values.get_unchecked(position).to_accum());
                    for w in 0..W {
                        let at = sum.add(w * V::LANES);
                        V::store_sums(at, V::mul_add(a, panel.load(x, w), V::load_sums(at)));
                    }
                }
            }
            for row in 0..rows {
                let mut all = [V::splat(op.zero); W];
                for w in 0..W {
                    all[w] = V::load_sums(sums(row).add(w * V::LANES));
                }
                panel.finish(op, first + row, &all);
            }
        }
    }
}

impl<T: Scalar, I: Index, O: Index> Work<T> for Strip<'_, T, I, O> {
    #[inline(always)]
    unsafe fn run<V: Vector<T>>(self) {
        // SAFETY: promised by the caller.
        unsafe { for_each_panel!(T, V, self.op.columns, V::WIDTH, self) }
    }
}
