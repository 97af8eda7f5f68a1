//! `nonzero-split`: inner products of rows of X with the rows of Y that nonzeros name.
//!
//! Four nonzeros are summed at once, which hides the latency of additions, and their lanes are
//! added together. Every sum is made in the same order, alone or among four, so that results do not
//! depend on how the nonzeros are cut between threads.

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
    /// The row of X of every row of the pattern, if it is not that of the same number.
    pub rows_of_x: Option<&'a [u32]>,
    pub offsets: Offsets<'a>,
    pub indices: &'a [I],
    pub x: DenseView<'a, T>,
    pub ldx: usize,
    pub y: DenseView<'a, T>,
    pub ldy: usize,
    /// Nonzeros ahead of their use for which rows of Y are prefetched, 0 for not at all.
    pub prefetch_distance: usize,
    pub factors: Factors<'a, T>,
    pub out: Shared<'a, T>,
}

/// Some of the nonzeros.
pub(super) struct Part<'a, T: Scalar, I: Index> {
    pub operands: Operands<'a, T, I>,
    pub nonzeros: Range<usize>,
}

/// The row of X of a nonzero, found from one nonzero to the next.
struct Row<'a, T> {
    offsets: Offsets<'a>,
    number: usize,
    end: usize,
    x: *const T,
    ld: usize,
    rows_of_x: Option<&'a [u32]>,
    /// The first row of X.
    first: *const T,
}

impl<'a, T: Scalar> Row<'a, T> {
    /// That of nonzero `p`: the last row that begins at or before it.
    fn of<I: Index>(op: &Operands<'a, T, I>, p: usize) -> Self {
        let offsets = op.offsets;
        let (mut low, mut high) = (0, op.rows);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if offsets.at(middle) <= p { low = middle } else { high = middle }
        }
        let (first, rows_of_x) = (op.x.as_ptr(), op.rows_of_x);
        let x = first.wrapping_add(rows_of_x.map_or(low, |rows| rows[low] as usize) * op.ldx);
        Row { offsets, number: low, end: offsets.at(low + 1), x, ld: op.ldx, rows_of_x, first }
    }

    /// Goes on to that of `p`, a later nonzero.
    #[inline(always)]
    fn advance(&mut self, p: usize) {
        while p >= self.end {
            self.number += 1;
            self.end = self.offsets.at(self.number + 1);
            self.x = self.x.wrapping_add(self.ld);
        }
        if let Some(rows) = self.rows_of_x {
            self.x = self.first.wrapping_add(rows[self.number] as usize * self.ld);
        }
    }
}

impl<T: Scalar, I: Index> Part<'_, T, I> {
    /// Adds up the inner products of four nonzeros: of row `x[u]` of X, `ONE_ROW` when all are the
    /// same, and row `y[u]` of Y. `WIDTH` vectors are a row, if it is not 0.
    ///
    /// # Safety
    /// `x` are rows of X and `y` of Y; the instruction set is available.
    #[inline(always)]
    unsafe fn multiply<V: Vector<T>, const ONE_ROW: bool, const WIDTH: usize>(
        &self,
        x: [*const T; GROUP],
        y: [*const T; GROUP],
    ) -> [T::Accum; GROUP] {
        let s = V::S::of(Semiring::PlusTimes);
        let depth = self.operands.x.ncols();
        let whole = if WIDTH > 0 { WIDTH * V::LANES } else { depth - depth % V::LANES };
        // SAFETY: rows have `depth` elements, which are neighbours.
        unsafe {
            let mut sums = [V::splat(T::Accum::zero()); GROUP];
            for k in (0..whole).step_by(V::LANES) {
                let mut xs = V::load(x[0].add(k));
                for u in 0..GROUP {
                    if !ONE_ROW {
                        xs = V::load(x[u].add(k));
                    }
                    sums[u] = V::mul_add(s, xs, V::load(y[u].add(k)), sums[u]);
                }
            }
            if WIDTH == 0 && whole < depth {
                let mask = V::mask(depth - whole);
                let mut xs = V::load_masked(x[0].add(whole), mask);
                for u in 0..GROUP {
                    if !ONE_ROW {
                        xs = V::load_masked(x[u].add(whole), mask);
                    }
                    sums[u] = V::mul_add(s, xs, V::load_masked(y[u].add(whole), mask), sums[u]);
                }
            }
            V::totals(sums)
        }
    }

    /// Stores finished sums of the nonzeros from `p` on.
    ///
    /// # Safety
    /// The nonzeros are of this part.
    #[inline(always)]
    unsafe fn store(&self, p: usize, sums: &[T::Accum]) {
        let factors = &self.operands.factors;
        // SAFETY: parts have different nonzeros.
        let out = unsafe { self.operands.out.slice(p..p + sums.len()) };
        if factors.plain {
            for (to, sum) in out.iter_mut().zip(sums) {
                *to = T::from_accum(*sum);
            }
        } else {
            for (u, (to, sum)) in out.iter_mut().zip(sums).enumerate() {
                *to = factors.apply(p + u, *sum, *to);
            }
        }
    }

    /// The nonzeros, where rows of X and Y are `WIDTH` vectors, if that is not 0.
    ///
    /// # Safety
    /// The instruction set is available.
    #[inline(always)]
    unsafe fn run_width<V: Vector<T>, const WIDTH: usize>(&self) {
        let op = &self.operands;
        let Range { start, end } = self.nonzeros;
        let (indices, from, ld) = (&op.indices[..end], op.y.as_ptr(), op.ldy);
        let bytes = if WIDTH > 0 { WIDTH * V::LANES } else { op.x.ncols() } * size_of::<T>();
        let bytes = bytes.min(FETCHED);
        let mut row = Row::of(op, start);
        let (mut p, whole) = (start, start + (end - start) / GROUP * GROUP);
        // SAFETY: the nonzeros are of this part; column indices of a checked pattern are rows of Y.
        let y_of = |p: usize| unsafe { from.add(indices.get_unchecked(p).to_usize() * ld) };
        let prefetch = |p: usize| {
            if op.prefetch_distance > 0 {
                let later = p.saturating_add(op.prefetch_distance).min(end - GROUP);
                for u in 0..GROUP {
                    let y = y_of(later + u);
                    for byte in (0..bytes).step_by(LINE) {
                        // SAFETY: nothing is read through the pointer.
                        unsafe { V::prefetch(y.wrapping_byte_add(byte)) };
                    }
                }
            }
        };
        while p < whole {
            row.advance(p);
            // SAFETY: as above, and rows of X are those of the nonzeros.
            unsafe {
                while p + GROUP <= row.end.min(whole) {
                    prefetch(p);
                    let y = std::array::from_fn(|u| y_of(p + u));
                    let sums = self.multiply::<V, true, WIDTH>([row.x; GROUP], y);
                    self.store(p, &sums);
                    p += GROUP;
                }
                if p < row.end.min(whole) {
                    prefetch(p);
                    let mut x = [row.x; GROUP];
                    for u in 1..GROUP {
                        row.advance(p + u);
                        x[u] = row.x;
                    }
                    let y = std::array::from_fn(|u| y_of(p + u));
                    let sums = self.multiply::<V, false, WIDTH>(x, y);
                    self.store(p, &sums);
                    p += GROUP;
                }
            }
        }
        for p in whole..end {
            row.advance(p);
            // SAFETY: as above.
            unsafe {
                let y = from.add(indices.get_unchecked(p).to_usize() * ld);
                let sums = self.multiply::<V, true, 0>([row.x; GROUP], [y; GROUP]);
                self.store(p, &sums[..1]);
            }
        }
    }
}

impl<T: Scalar, I: Index> Work<T> for Part<'_, T, I> {
    #[inline(always)]
    unsafe fn run<V: Vector<T>>(self) {
        if self.nonzeros.is_empty() {
            return;
        }
        let depth = self.operands.x.ncols();
        let width = if V::WHOLE && depth % V::LANES == 0 { depth / V::LANES } else { 0 };
        // SAFETY: promised by the caller.
        unsafe {
            match width {
                2 => self.run_width::<V, 2>(),
                4 => self.run_width::<V, 4>(),
                8 => self.run_width::<V, 8>(),
                _ => self.run_width::<V, 0>(),
            }
        }
    }
}
