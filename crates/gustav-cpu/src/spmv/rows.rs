//! Sums over rows and parts of rows of CSR arrays, shared by the three schedules of Yang, Buluç,
//! Owens 2018.

use std::ops::Range;

use bytemuck::cast_slice;
use gustav_core::{Arith, DType, Index, IndexSlice, IndexType, Ops, Scalar};

use super::compiled::Compiled;
use super::epilogue::{Epilogue, Finish, Output};
use super::lanes::{Element, Kernel, Lanes, are_short};
use crate::arch::Isa;
use crate::offsets::Offsets;

/// A, or Aᵀ with the positions of its entries in A, and x.
#[derive(Clone, Copy)]
pub(crate) struct Operands<'a, T, I> {
    pub(crate) offsets: Offsets<'a>,
    pub(crate) indices: &'a [I],
    pub(crate) values: &'a [T],
    /// Position in `values` of each entry; `None` when they are in order.
    pub(crate) source: Option<Offsets<'a>>,
    pub(crate) x: &'a [T],
}

/// Whether a product of these types has vector kernels.
pub(crate) const fn has_vectors<T: Scalar, I: Index, S: Ops<T::Accum>>() -> bool {
    S::PLUS_TIMES
        && matches!(I::TYPE, IndexType::U32)
        && matches!(T::DTYPE, DType::F32 | DType::F64)
}

/// Rows that are summed in one manner.
const BLOCK: usize = 512;

/// Longest x that vector kernels read: their gathers take 32-bit signed indices.
pub(crate) const LONGEST: usize = i32::MAX as usize;

impl<'a, T: Scalar, I: Index> Operands<'a, T, I> {
    /// Whether entries are in order and vectors can gather from x.
    pub(crate) fn in_order(&self) -> bool {
        self.source.is_none() && self.x.len() <= LONGEST
    }

    /// Finishes whole rows.
    ///
    /// # Safety
    /// `y` holds every row of `rows`, and no other thread accesses them during the call.
    pub(crate) unsafe fn multiply<S: Ops<T::Accum>>(
        &self,
        isa: Isa,
        rows: Range<usize>,
        epilogue: &Epilogue<T::Accum, S>,
        y: Output<'_, T>,
    ) {
        if const { has_vectors::<T, I, S>() } && self.in_order() {
            // SAFETY: promised by the caller; plans reject an instruction set that the machine
            // lacks.
            return unsafe {
                match T::DTYPE {
                    DType::F32 => f32::rows(isa, self.rows(rows, epilogue.finish(y))),
                    _ => f64::rows(isa, self.rows(rows, epilogue.finish(y))),
                }
            };
        }
        for row in rows {
            let sum = self.sum(epilogue.semiring, self.offsets.row(row));
            // SAFETY: promised by the caller.
            unsafe { epilogue.store(y, row, sum) };
        }
    }

    fn rows<E: Element>(&self, rows: Range<usize>, finish: Finish<E>) -> Rows<'a, E> {
        Rows {
            offsets: self.offsets.all(),
            rows,
            indices: cast_slice(self.indices),
            values: cast_slice::<T, E>(self.values),
            x: cast_slice::<T, E>(self.x),
            finish,
        }
    }

    /// The sum over the entries of one row (or a part of it).
    pub(crate) fn dot<S: Ops<T::Accum>>(&self, isa: Isa, s: S, entries: Range<usize>) -> T::Accum {
        if const { has_vectors::<T, I, S>() } && self.in_order() {
            // SAFETY: the columns of a valid matrix are in bounds of x; plans reject an instruction
            // set that the machine lacks.
            return unsafe {
                match T::DTYPE {
                    DType::F32 => bytemuck::cast(f32::dot(isa, self.part(entries))),
                    _ => bytemuck::cast(f64::dot(isa, self.part(entries))),
                }
            };
        }
        self.sum(s, entries)
    }

    fn part<E: Element>(&self, entries: Range<usize>) -> Dot<'a, E> {
        Dot {
            indices: cast_slice(&self.indices[entries.clone()]),
            values: cast_slice::<T, E>(&self.values[entries]),
            x: cast_slice::<T, E>(self.x),
        }
    }

    fn sum<S: Ops<T::Accum>>(&self, s: S, entries: Range<usize>) -> T::Accum {
        let product = |sum, k: usize| {
            let at = self.source.as_ref().map_or(k, |source| source.at(k));
            let (a, x) = (self.values[at], self.x[self.indices[k].to_usize()]);
            s.mul_add(a.to_accum(), x.to_accum(), sum)
        };
        entries.fold(s.zero(), product)
    }
}

/// Some whole rows of A.
pub(crate) struct Rows<'a, E> {
    /// Of all rows.
    pub(crate) offsets: IndexSlice<'a>,
    rows: Range<usize>,
    indices: &'a [u32],
    values: &'a [E],
    x: &'a [E],
    finish: Finish<E>,
}

/// The same with the type of the offsets.
pub(super) struct TypedRows<'a, E, O> {
    pub(super) rows: Rows<'a, E>,
    pub(super) offsets: &'a [O],
}

impl<E: Element, O: Index> Kernel<E> for TypedRows<'_, E, O> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = E>>(self) {
        let Range { start, end } = self.rows.rows;
        // A few long rows say nothing of those far from them. Blocks are those of the whole matrix: which thread has a
        // row does not change its sum.
        for block in start / BLOCK..end.div_ceil(BLOCK) {
            let whole = block * BLOCK..(self.offsets.len() - 1).min((block + 1) * BLOCK);
            let [first, last] = [whole.start, whole.end].map(|k| self.offsets[k].to_usize());
            let rows = whole.start.max(start)..whole.end.min(end);
            // SAFETY: offsets and indices belong to a valid matrix, the rows are in bounds of y.
            unsafe {
                match are_short::<V>(whole.len(), last - first) {
                    true => self.each::<V, true>(rows),
                    false => self.each::<V, false>(rows),
                }
            }
        }
    }
}

impl<E: Element, O: Index> TypedRows<'_, E, O> {
    /// Finishes each of `rows`; with `SHORT` its entries are summed one after another.
    ///
    /// # Safety
    /// Offsets and indices belong to a valid matrix, the rows are in bounds of y.
    #[inline(always)]
    unsafe fn each<V: Lanes<Elem = E>, const SHORT: bool>(&self, rows: Range<usize>) {
        let Rows { indices, values, x, finish, .. } = self.rows;
        let mut start = self.offsets[rows.start].to_usize();
        for row in rows {
            let end = self.offsets[row + 1].to_usize();
            // SAFETY: promised by the caller.
            unsafe {
                let sum = match SHORT {
                    true => sum(indices, values, x, start..end),
                    false => dot::<V>(indices, values, x, start..end),
                };
                finish.one(row, sum);
            }
            start = end;
        }
    }
}

/// A part of one row.
pub(crate) struct Dot<'a, E> {
    indices: &'a [u32],
    values: &'a [E],
    x: &'a [E],
}

impl<E: Element> Kernel<E> for Dot<'_, E> {
    type Output = E;

    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = E>>(self) -> E {
        // SAFETY: indices belong to a valid matrix.
        unsafe { dot::<V>(self.indices, self.values, self.x, 0..self.values.len()) }
    }
}

/// The sum over `entries`, one after another.
///
/// # Safety
/// `entries` is in bounds of both arrays, indices of `x`.
#[inline(always)]
unsafe fn sum<E: Arith>(indices: &[u32], values: &[E], x: &[E], entries: Range<usize>) -> E {
    let mut sum = E::zero();
    let mut k = entries.start;
    while k < entries.end {
        // SAFETY: promised by the caller.
        unsafe {
            let x = *x.get_unchecked(*indices.get_unchecked(k) as usize);
            sum = values.get_unchecked(k).times_plus(x, sum);
        }
        k += 1;
    }
    sum
}

/// The sum over `entries`, two gathers in flight.
///
/// # Safety
/// The instruction set of `V` is available; `entries` is in bounds of both arrays, indices of `x`.
#[inline(always)]
unsafe fn dot<V: Lanes>(
    indices: &[u32],
    values: &[V::Elem],
    x: &[V::Elem],
    entries: Range<usize>,
) -> V::Elem {
    let (mut i, mut v) = (indices.as_ptr().wrapping_add(entries.start), values.as_ptr());
    v = v.wrapping_add(entries.start);
    let mut left = entries.len();
    // SAFETY: promised by the caller; pointers stay within `entries`.
    unsafe {
        let (mut sum, mut other) = (V::zero(), V::zero());
        while left >= 2 * V::N {
            sum = V::load(v).mul_add(V::gather(x.as_ptr(), V::index_u32(i)), sum);
            let (i2, v2) = (i.add(V::N), v.add(V::N));
            other = V::load(v2).mul_add(V::gather(x.as_ptr(), V::index_u32(i2)), other);
            (i, v, left) = (i.add(2 * V::N), v.add(2 * V::N), left - 2 * V::N);
        }
        if left >= V::N {
            sum = V::load(v).mul_add(V::gather(x.as_ptr(), V::index_u32(i)), sum);
            (i, v, left) = (i.add(V::N), v.add(V::N), left - V::N);
        }
        if left > 0 {
            let index = V::index_u32_first(i, left);
            let picked = V::gather_first(x.as_ptr(), index, left);
            other = V::load_first(v, left).mul_add(picked, other);
        }
        sum.add(other).sum()
    }
}
