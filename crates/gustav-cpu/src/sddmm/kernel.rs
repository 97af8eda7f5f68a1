//! Inner products of a row of X with the rows of Y that the nonzeros of a row name.
//!
//! Four nonzeros of a row are summed at once: a load of X serves four, and four sums hide the latency of
//! additions. Every sum is made in the same order, alone or among four, so that results do not depend on
//! how the nonzeros are cut between threads.

use std::ops::Range;

use gustav_core::parallel::Shared;
use gustav_core::{Arith, DenseView, Index, Ops, Scalar, Semiring};

use crate::arch::vector::{Vector, Work};
use crate::offsets::Offsets;

// Nonzeros that are summed at once.
const GROUP: usize = 4;
// Nonzeros ahead of their use for which rows of Y are fetched, and bytes of a row that are.
const AHEAD: usize = 8;
const FETCHED: usize = 512;
const LINE: usize = 64;
// Most lanes of a vector of any instruction set.
const MOST_LANES: usize = 16;

/// What becomes of a sum.
#[derive(Clone, Copy)]
pub(super) struct Factors<'a, T: Scalar> {
    alpha: T::Accum,
    beta: T::Accum,
    of_nonzeros: Option<&'a [T]>,
    reads: bool,
}

impl<'a, T: Scalar> Factors<'a, T> {
    pub(super) fn new(alpha: T::Accum, beta: T::Accum, of_nonzeros: Option<&'a [T]>) -> Self {
        Factors { alpha, beta, of_nonzeros, reads: beta != T::Accum::zero() }
    }

    /// α·sum·factor + β·`before`, which is called when β is not zero.
    #[inline(always)]
    fn apply(&self, p: usize, sum: T::Accum, before: impl FnOnce() -> T) -> T {
        let mut result = self.alpha.times(sum);
        if let Some(factors) = self.of_nonzeros {
            result = result.times(factors[p].to_accum());
        }
        if self.reads {
            result = self.beta.times_plus(before().to_accum(), result);
        }
        T::from_accum(result)
    }
}

/// The operands, X and Y row-major.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a, T: Scalar, I: Index> {
    pub rows: usize,
    pub offsets: Offsets<'a>,
    pub indices: &'a [I],
    pub x: DenseView<'a, T>,
    pub y: DenseView<'a, T>,
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

    /// Stores the inner products of row `x` with the rows of Y of nonzeros `p..p + N`.
    ///
    /// # Safety
    /// The nonzeros are of the part, `x` is a row of X; the instruction set is available.
    #[inline(always)]
    unsafe fn multiply<V: Vector<T>, const N: usize>(&self, x: *const T, p: usize) {
        let op = &self.operands;
        let (depth, ld) = (op.x.ncols(), op.y.leading_dimension());
        let s = V::S::of(Semiring::PlusTimes);
        // SAFETY: column indices of a checked pattern are rows of Y, whose `depth` elements are
        // neighbours; the rest is promised by the caller.
        unsafe {
            let row = |p: usize| op.y.as_ptr().add(op.indices.get_unchecked(p).to_usize() * ld);
            let y: [*const T; N] = std::array::from_fn(|u| row(p + u));
            let mut sums = [V::splat(T::Accum::zero()); N];
            let whole = depth - depth % V::LANES;
            for k in (0..whole).step_by(V::LANES) {
                let x = V::load(x.add(k));
                for u in 0..N {
                    sums[u] = V::mul_add(s, x, V::load(y[u].add(k)), sums[u]);
                }
            }
            if whole < depth {
                let mask = V::mask(depth - whole);
                let x = V::load_masked(x.add(whole), mask);
                for u in 0..N {
                    sums[u] = V::mul_add(s, x, V::load_masked(y[u].add(whole), mask), sums[u]);
                }
            }
            for u in 0..N {
                let sum = total::<T, V>(sums[u]);
                let out = op.out.slice(p + u..p + u + 1);
                out[0] = op.factors.apply(p + u, sum, || out[0]);
            }
        }
    }

    /// Has the rows of Y of nonzeros soon after `p` brought to L1.
    ///
    /// # Safety
    /// The instruction set is available.
    #[inline(always)]
    unsafe fn prefetch<V: Vector<T>>(&self, p: usize) {
        let op = &self.operands;
        let bytes = (op.x.ncols() * size_of::<T>()).min(FETCHED);
        let ld = op.y.leading_dimension();
        for p in p + AHEAD..(p + AHEAD + GROUP).min(self.nonzeros.end) {
            let row = op.y.as_ptr().wrapping_add(op.indices[p].to_usize() * ld);
            for byte in (0..bytes).step_by(LINE) {
                // SAFETY: nothing is read through the pointer.
                unsafe { V::fetch(row.wrapping_byte_add(byte)) }
            }
        }
    }
}

/// The sum of a vector's lanes, halves added to halves.
///
/// # Safety
/// The instruction set is available.
#[inline(always)]
unsafe fn total<T: Scalar, V: Vector<T>>(v: V::V) -> T::Accum {
    let mut lanes = [T::Accum::zero(); MOST_LANES];
    const { assert!(V::LANES <= MOST_LANES && V::LANES.is_power_of_two()) };
    // SAFETY: there are as many lanes at least.
    unsafe { V::store_sums(lanes.as_mut_ptr(), v) };
    let mut half = V::LANES / 2;
    while half > 0 {
        for k in 0..half {
            lanes[k] = lanes[k].plus(lanes[k + half]);
        }
        half /= 2;
    }
    lanes[0]
}

impl<T: Scalar, I: Index> Work<T> for Part<'_, T, I> {
    #[inline(always)]
    unsafe fn run<V: Vector<T>>(self) {
        let Range { start: mut p, end } = self.nonzeros;
        if p == end {
            return;
        }
        let (offsets, ld) = (self.operands.offsets, self.operands.x.leading_dimension());
        let mut row = self.row_of(p);
        while p < end {
            let last = offsets.at(row + 1).min(end);
            let x = self.operands.x.as_ptr().wrapping_add(row * ld);
            // SAFETY: the nonzeros are of this part and of `row`, which has an X where it has
            // nonzeros.
            unsafe {
                while p + GROUP <= last {
                    self.prefetch::<V>(p);
                    self.multiply::<V, GROUP>(x, p);
                    p += GROUP;
                }
                while p < last {
                    self.multiply::<V, 1>(x, p);
                    p += 1;
                }
            }
            row += 1;
        }
    }
}
