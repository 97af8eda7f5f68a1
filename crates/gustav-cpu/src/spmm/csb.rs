//! `csb` (Aktulga et al. 2014; Yang, Buluç, Owens 2018, §6): compressed sparse blocks, the same
//! structure for A and Aᵀ.
//!
//! A strip of blocks writes its own rows of C, so threads take strips: block rows for A, block
//! columns for Aᵀ. The sums of a strip stay in cache while its blocks, each of which reads few rows
//! of B, are processed one after another. Values are read from the caller's array.

use gustav_core::{Arith, Buffer, Index, Ops, PatternView, Result, Scalar};

use super::kernel::{Panel, Panels, for_each_panel};
use super::operands::Operands;
use crate::Threads;
use crate::arch::Isa;
use crate::arch::vector::{Vector, Work};
use crate::csb::{Block, Csb, default_block};
use crate::offsets::Offsets;
use crate::static_partition::StaticPartition;
use crate::types::CpuScalar;

pub(super) struct Blocks<A, O: Index> {
    csb: Csb<O>,
    transposed: bool,
    assignment: StaticPartition,
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
    /// `sums_bytes`: cache for the sums of a strip; `block`: rows and columns of a block, `None` to
    /// derive them from the cache.
    pub(super) fn new<I: Index>(
        a: &PatternView<'_, I, O>,
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
        let assignment = StaticPartition::new(csb.strips(transposed), threads);
        let sums = Buffer::zeroed(assignment.threads() * csb.block() * stride, "sums of strips")?;
        Ok(Blocks { csb, transposed, assignment, sums, stride })
    }

    pub(super) fn block(&self) -> usize {
        self.csb.block()
    }

    pub(super) fn bytes(&self) -> usize {
        self.csb.bytes() + size_of_val(&self.sums[..])
    }

    pub(super) fn execute<T: CpuScalar<Accum = A>, I: Index>(
        &mut self,
        threads: &Threads,
        isa: Isa,
        op: &Operands<'_, T, I>,
    ) {
        let strip_sums = self.csb.block() * self.stride;
        let (csb, transposed, stride) = (&self.csb, self.transposed, self.stride);
        let (to, from) = match transposed {
            false => (csb.local_rows(), csb.local_cols()),
            true => (csb.local_cols(), csb.local_rows()),
        };
        let entries = Entries { to, from, positions: Offsets::new(csb.positions()) };
        let sums = Shared(self.sums.as_mut_ptr());
        let (op, sums) = (&op.without_indices(), &sums);
        self.assignment.run(threads, |thread, strip| {
            // SAFETY: one strip of sums was allocated for every thread of the assignment.
            let sums = unsafe { sums.0.add(thread * strip_sums) };
            let first = strip * csb.block();
            let blocks = csb.strip(transposed, strip);
            let rows = csb.block();
            let work = Strip { op, entries, transposed, blocks, first, rows, sums, stride };
            // SAFETY: the plan checked that the instruction set is there.
            unsafe { T::vectorize(isa, op.semiring, work) }
        });
    }
}

/// The nonzeros in the order of the blocks: row and column within the block, and position of the
/// value.
#[derive(Clone, Copy)]
struct Entries<'a> {
    to: &'a [u16],
    from: &'a [u16],
    positions: Offsets<'a>,
}

/// One strip of blocks: at most `rows` rows of C from `first` on.
struct Strip<'a, T: Scalar> {
    op: &'a Operands<'a, T, ()>,
    entries: Entries<'a>,
    transposed: bool,
    blocks: &'a [Block],
    first: usize,
    rows: usize,
    sums: *mut T::Accum,
    stride: usize,
}

impl<T: Scalar> Panels<T> for Strip<'_, T> {
    #[inline(always)]
    unsafe fn panel<V: Vector<T>, const W: usize, const U: usize, const TAIL: bool>(
        &self,
        panel: &Panel<T, V, W, TAIL>,
    ) {
        let (op, entries) = (self.op, &self.entries);
        let s = V::S::of(op.semiring);
        let rows = self.rows.min(op.rows - self.first);
        // SAFETY: local positions stay below the block's sides, which end with the matrix;
        // positions are those of the plan's nonzeros, of which `values` has as many; the sums hold
        // whole vectors of every row of a strip.
        unsafe {
            let sums = |row: usize| self.sums.add(row * self.stride + panel.start);
            for row in 0..rows {
                for w in 0..W {
                    V::store_sums(sums(row).add(w * V::LANES), V::splat(op.zero));
                }
            }
            for block in self.blocks {
                let b = op.b.add(if self.transposed { block.row } else { block.col } * op.ldb);
                for e in block.entries.clone() {
                    let sum = sums(usize::from(*entries.to.get_unchecked(e)));
                    let x = b.add(usize::from(*entries.from.get_unchecked(e)) * op.ldb);
                    let value = *op.values.get_unchecked(entries.positions.at(e));
                    let a = V::splat(value.to_accum());
                    for w in 0..W {
                        let at = sum.add(w * V::LANES);
                        V::store_sums(at, V::mul_add(s, a, panel.load(x, w), V::load_sums(at)));
                    }
                }
            }
            for row in 0..rows {
                let mut all = [V::splat(op.zero); W];
                for w in 0..W {
                    all[w] = V::load_sums(sums(row).add(w * V::LANES));
                }
                panel.finish(op, self.first + row, &all);
            }
        }
    }
}

impl<T: Scalar> Work<T> for Strip<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<T>>(self) {
        // SAFETY: promised by the caller.
        unsafe { for_each_panel!(T, u32, V, self.op.columns, V::WIDTH, self) }
    }
}
