//! Partitions that cut rows: what `nonzero-split` and `merge-path` have in common.
//!
//! A partition stores two partial sums: that of its first row, if the row began in an earlier
//! partition (`head`), and its carry-out (`tail`). A serial pass then adds, for every cut row, the
//! tails in the order of the partitions and the head, and writes the row once.

use gustav_core::{Arith, Buffer, Index, Ops, Result, Scalar};

use super::kernel::{Panel, Panels, Rows, for_each_panel};
use super::operands::Operands;
use crate::Threads;
use crate::arch::Isa;
use crate::arch::stream;
use crate::arch::vector::{Vector, Work};
use crate::schedule::Partition;
use crate::types::CpuScalar;

/// A partition and its parts of cut rows.
struct Cut {
    partition: Partition,
    /// Nonzeros of the first row, when an earlier partition began it.
    head: Option<std::ops::Range<usize>>,
    /// Nonzeros of the carry-out, when there are any.
    tail: Option<std::ops::Range<usize>>,
}

pub(super) struct Cuts<A> {
    cuts: Vec<Cut>,
    /// Two rows of sums for every partition: head and tail.
    sums: Buffer<A>,
    stride: usize,
}

/// Sums of one partition, written by the thread that holds it.
struct Sums<A>(*mut A);
// SAFETY: every partition writes its own two rows.
unsafe impl<A> Sync for Sums<A> {}

impl<A: Arith> Cuts<A> {
    pub(super) fn new<O: Index>(
        offsets: &[O],
        partitions: Vec<Partition>,
        columns: usize,
    ) -> Result<Self> {
        // Whole vectors are stored, whatever their length.
        let stride = columns.next_multiple_of(64);
        let sums = Buffer::zeroed(partitions.len() * 2 * stride, "carry-outs")?;
        let cuts = partitions.into_iter().map(|partition| {
            let first = partition.rows.start;
            let cut =
                !partition.rows.is_empty() && offsets[first].to_usize() < partition.nonzeros.start;
            let head = cut.then(|| partition.of_row(offsets, first));
            let tail = Some(partition.carry_out(offsets)).filter(|t| !t.is_empty());
            Cut { partition, head, tail }
        });
        Ok(Cuts { cuts: cuts.collect(), sums, stride })
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.cuts[..]) + size_of_val(&self.sums[..])
    }

    pub(super) fn execute<T: CpuScalar<Accum = A>, I: Index>(
        &mut self,
        threads: &Threads,
        isa: Isa,
        op: &Operands<'_, T, I>,
    ) {
        let sums = Sums(self.sums.as_mut_ptr());
        let (sums, stride) = (&sums, self.stride);
        let cuts = &self.cuts;
        threads.each(cuts.len(), |p| {
            let cut = &cuts[p];
            // SAFETY: two rows of sums were allocated for every partition; the plan checked that
            // the instruction set is there, and partitions end in disjoint rows.
            unsafe {
                let head = sums.0.add(2 * p * stride);
                for (range, to) in [(&cut.head, head), (&cut.tail, head.add(stride))] {
                    if let Some(range) = range {
                        let part = Partial { op, range: range.clone(), to };
                        T::vectorize(isa, op.semiring, part);
                    }
                }
                let rows = cut.partition.rows.start + usize::from(cut.head.is_some())
                    ..cut.partition.rows.end;
                T::vectorize(isa, op.semiring, Rows { op, rows });
            }
            stream::fence();
        });
        // SAFETY: the threads are done; the plan checked that the instruction set is there.
        unsafe {
            let op = &op.without_indices();
            T::vectorize(isa, op.semiring, FixUp { op, cuts, sums: sums.0, stride })
        }
        stream::fence();
    }
}

/// The partial sums of a part of a row.
struct Partial<'a, T: Scalar, I> {
    op: &'a Operands<'a, T, I>,
    range: std::ops::Range<usize>,
    to: *mut T::Accum,
}

impl<T: Scalar, I: Index> Panels<T> for Partial<'_, T, I> {
    #[inline(always)]
    unsafe fn panel<V: Vector<T>, const W: usize, const U: usize, const TAIL: bool>(
        &self,
        panel: &Panel<T, V, W, TAIL>,
    ) {
        // SAFETY: the range comes from a checked matrix; `to` holds whole vectors.
        unsafe {
            let sums = panel.sum::<I, U, false>(self.op, self.range.clone());
            for w in 0..W {
                V::store_sums(self.to.add(panel.start + w * V::LANES), sums[w]);
            }
        }
    }
}

impl<T: Scalar, I: Index> Work<T> for Partial<'_, T, I> {
    #[inline(always)]
    unsafe fn run<V: Vector<T>>(self) {
        // SAFETY: promised by the caller.
        unsafe { for_each_panel!(T, I, V, self.op.columns, V::WIDTH, self) }
    }
}

/// Adds up and writes the rows that were cut.
struct FixUp<'a, T: Scalar> {
    op: &'a Operands<'a, T, ()>,
    cuts: &'a [Cut],
    sums: *const T::Accum,
    stride: usize,
}

impl<T: Scalar> Panels<T> for FixUp<'_, T> {
    #[inline(always)]
    unsafe fn panel<V: Vector<T>, const W: usize, const U: usize, const TAIL: bool>(
        &self,
        panel: &Panel<T, V, W, TAIL>,
    ) {
        // SAFETY: every head and tail that exists was stored by its partition; the rows are C's.
        unsafe {
            let s = V::S::of(self.op.semiring);
            let zero = [V::splat(self.op.zero); W];
            let mut carry = zero;
            for (p, cut) in self.cuts.iter().enumerate() {
                let head = self.sums.add(2 * p * self.stride + panel.start);
                if cut.head.is_some() {
                    take::<T, V, W>(s, &mut carry, head);
                    panel.finish(self.op, cut.partition.rows.start, &carry);
                    carry = zero;
                }
                if cut.tail.is_some() {
                    take::<T, V, W>(s, &mut carry, head.add(self.stride));
                }
            }
        }
    }
}

/// Adds stored partial sums to `carry`.
///
/// # Safety
/// `W` vectors of sums lie behind `from`; the instruction set is available.
#[inline(always)]
unsafe fn take<T: Scalar, V: Vector<T>, const W: usize>(
    s: V::S,
    carry: &mut [V::V; W],
    from: *const T::Accum,
) {
    for w in 0..W {
        // SAFETY: promised by the caller.
        carry[w] = unsafe { V::add(s, carry[w], V::load_sums(from.add(w * V::LANES))) };
    }
}

impl<T: Scalar> Work<T> for FixUp<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<T>>(self) {
        // SAFETY: promised by the caller.
        unsafe { for_each_panel!(T, u32, V, self.op.columns, V::WIDTH, self) }
    }
}
