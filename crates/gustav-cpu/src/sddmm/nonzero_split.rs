//! `nonzero-split`: inner products of rows of X with the rows of Y that nonzeros name.
//!
//! Four nonzeros are summed at once, which hides the latency of additions, and their lanes are added
//! together. Every sum is made in the same order, alone or among four, so that results do not depend on
//! how the nonzeros are cut between threads.

use std::ops::Range;

use gustav_core::parallel::Shared;
use gustav_core::{Arith, DenseView, Index, Ops, Scalar, Semiring};

use crate::arch::vector::{Vector, Work};
use crate::offsets::Offsets;

// Nonzeros that are summed at once.
const GROUP: usize = 4;
// Bytes of a row of Y that are prefetched at most.
const FETCHED: usize = 512;
const LINE: usize = 64;

/// Scaling of a finished sum.
#[derive(Clone, Copy)]
pub(super) struct Factors<'a, T: Scalar> {
    alpha: T::Accum,
    beta: T::Accum,
    of_nonzeros: Option<&'a [T]>,
    reads: bool,
    /// Whether the sums are the values.
    plain: bool,
}

impl<'a, T: Scalar> Factors<'a, T> {
    pub(super) fn new(alpha: T::Accum, beta: T::Accum, of_nonzeros: Option<&'a [T]>) -> Self {
        let reads = beta != T::Accum::zero();
        let plain = alpha == T::Accum::one() && !reads && of_nonzeros.is_none();
        Factors { alpha, beta, of_nonzeros, reads, plain }
    }

    /// α·sum·factor + β·`before`, which is left out when β is zero.
    #[inline(always)]
    fn apply(&self, p: usize, sum: T::Accum, before: T) -> T {
        let mut result = self.alpha.times(sum);
        if let Some(factors) = self.of_nonzeros {
            result = result.times(factors[p].to_accum());
        }
        if self.reads {
            result = self.beta.times_plus(before.to_accum(), result);
        }
        T::from_accum(result)
    }
}

/// The operands, X and Y row-major with these leading dimensions.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a, T: Scalar, I: Index> {
    pub rows: usize,
    pub offsets: Offsets<'a>,
    pub indices: &'a [I],
    pub x: DenseView<'a, T>,
    pub ldx: usize,
    pub y: DenseView<'a, T>,
    pub ldy: usize,
    /// Nonzeros ahead of their use for which rows of Y are prefetched, 0 for not at all.
    pub ahead: usize,
    pub factors: Factors<'a, T>,
    pub out: Shared<'a, T>,
}

/// Some of the nonzeros.
pub(super) struct Part<'a, T: Scalar, I: Index> {
    pub operands: Operands<'a, T, I>,
    pub nonzeros: Range<usize>,
}

impl<T: Scalar, I: Index> Part<'_, T, I> {
    /// The row of nonzero `p`: the last that begins at or before it.
    fn row_of(&self, p: usize) -> usize {
        let offsets = &self.operands.offsets;
        let (mut low, mut high) = (0, self.operands.rows);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if offsets.at(middle) <= p { low = middle } else { high = middle }
        }
        low
    }

    /// Stores the inner products of `count` nonzeros from `p` on, at most four: of row `x[u]` of X and
    /// the row of Y that nonzero `p + u` names. `ONE_ROW` when all `x` are the same.
    ///
    /// # Safety
    /// The nonzeros are of the part, `x` are rows of X; the instruction set is available.
    #[inline(always)]
    unsafe fn multiply<V: Vector<T>, const ONE_ROW: bool>(
        &self,
        x: [*const T; GROUP],
        p: usize,
        count: usize,
    ) {
        let op = self.operands;
        let (depth, ld) = (op.x.ncols(), op.ldy);
        let s = V::S::of(Semiring::PlusTimes);
        // SAFETY: column indices of a checked pattern are rows of Y, whose `depth` elements are
        // neighbours; the rest is promised by the caller.
        unsafe {
            // A group of fewer than four repeats its last nonzero.
            let start = op.y.as_ptr();
            let mut y = [start; GROUP];
            for u in 0..GROUP {
                let at = if count == GROUP { p + u } else { p + u.min(count - 1) };
                y[u] = start.add(op.indices.get_unchecked(at).to_usize() * ld);
            }
            let mut sums = [V::splat(T::Accum::zero()); GROUP];
            let whole = depth - depth % V::LANES;
            for k in (0..whole).step_by(V::LANES) {
                let mut xs = V::load(x[0].add(k));
                for u in 0..GROUP {
                    if !ONE_ROW {
                        xs = V::load(x[u].add(k));
                    }
                    sums[u] = V::mul_add(s, xs, V::load(y[u].add(k)), sums[u]);
                }
            }
            if whole < depth {
                let mask = V::mask(depth - whole);
                let mut xs = V::load_masked(x[0].add(whole), mask);
                for u in 0..GROUP {
                    if !ONE_ROW {
                        xs = V::load_masked(x[u].add(whole), mask);
                    }
                    sums[u] = V::mul_add(s, xs, V::load_masked(y[u].add(whole), mask), sums[u]);
                }
            }
            let sums = V::totals(sums);
            let out = op.out.slice(p..p + count);
            if op.factors.plain && count == GROUP {
                for u in 0..GROUP {
                    *out.get_unchecked_mut(u) = T::from_accum(sums[u]);
                }
                return;
            }
            for u in 0..count {
                out[u] = op.factors.apply(p + u, sums[u], out[u]);
            }
        }
    }

    /// Prefetches rows of Y of later nonzeros than `p` into L1.
    ///
    /// # Safety
    /// The instruction set is available.
    #[inline(always)]
    unsafe fn prefetch<V: Vector<T>>(&self, p: usize) {
        let op = &self.operands;
        let bytes = (op.x.ncols() * size_of::<T>()).min(FETCHED);
        for p in p + op.ahead..(p + op.ahead + GROUP).min(self.nonzeros.end) {
            let row = op.y.as_ptr().wrapping_add(op.indices[p].to_usize() * op.ldy);
            for byte in (0..bytes).step_by(LINE) {
                // SAFETY: nothing is read through the pointer.
                unsafe { V::fetch(row.wrapping_byte_add(byte)) }
            }
        }
    }
}

impl<T: Scalar, I: Index> Work<T> for Part<'_, T, I> {
    #[inline(always)]
    unsafe fn run<V: Vector<T>>(self) {
        let Range { start, end } = self.nonzeros;
        if start == end {
            return;
        }
        let (offsets, ld) = (self.operands.offsets, self.operands.ldx);
        let mut row = self.row_of(start);
        let mut row_end = offsets.at(row + 1);
        for p in (start..end).step_by(GROUP) {
            let count = GROUP.min(end - p);
            // SAFETY: the nonzeros are of this part, and each of them has its row of X.
            unsafe {
                if self.operands.ahead > 0 {
                    self.prefetch::<V>(p);
                }
                let of = |row: usize| self.operands.x.as_ptr().add(row * ld);
                while p >= row_end {
                    row += 1;
                    row_end = offsets.at(row + 1);
                }
                if p + count <= row_end {
                    self.multiply::<V, true>([of(row); GROUP], p, count);
                    continue;
                }
                let mut x = [of(row); GROUP];
                for u in 1..count {
                    while p + u >= row_end {
                        row += 1;
                        row_end = offsets.at(row + 1);
                    }
                    x[u] = of(row);
                }
                self.multiply::<V, false>(x, p, count);
            }
        }
    }
}
