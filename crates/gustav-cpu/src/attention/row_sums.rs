//! Sums of a row of one head in vectors: inner products with rows, and multiples of rows.

use std::mem::MaybeUninit;

use gustav_core::{Arith, Ops, Scalar, Semiring, WIDEST_HEAD};

use super::exponential::CHUNK;
use crate::arch::vector::Vector;

// Nonzeros whose inner products are computed at once.
pub(super) const GROUP: usize = 4;
// Vectors of sums that stay in registers.
const WIDTH: usize = 4;

/// Whole vectors are stored, whatever their length.
pub(super) fn padded(columns: usize) -> usize {
    columns.next_multiple_of(16)
}

/// Sums of a row, in whole vectors: zeros follow its columns, and what follows these is not set.
#[repr(align(64))]
pub(super) struct Sums<A>(MaybeUninit<[A; WIDEST_HEAD]>);

impl<A: Arith> Sums<A> {
    #[inline(always)]
    pub(super) fn unset() -> Self {
        Sums(MaybeUninit::uninit())
    }

    #[inline(always)]
    pub(super) fn zeros(columns: usize) -> Self {
        let mut sums = Self::unset();
        // SAFETY: rows have at most so many columns; zeros are numbers of every type of sums.
        unsafe { sums.as_mut_ptr().write_bytes(0, padded(columns)) }
        sums
    }

    #[inline(always)]
    pub(super) fn as_ptr(&self) -> *const A {
        self.0.as_ptr().cast()
    }

    #[inline(always)]
    pub(super) fn as_mut_ptr(&mut self) -> *mut A {
        self.0.as_mut_ptr().cast()
    }
}

/// Widens a row.
#[inline(always)]
pub(super) unsafe fn widen<T: Scalar, V: Vector<T>>(
    row: *const T,
    columns: usize,
    to: &mut Sums<T::Accum>,
) {
    // SAFETY: the row has so many elements, says the caller, and the sums have whole vectors.
    unsafe {
        let to = to.as_mut_ptr();
        let whole = columns - columns % V::LANES;
        for k in (0..whole).step_by(V::LANES) {
            V::store_sums(to.add(k), V::load(row.add(k)));
        }
        if whole < columns {
            let mask = V::mask(columns - whole);
            V::store_sums(to.add(whole), V::load_masked(row.add(whole), mask));
        }
    }
}

/// The inner products of `x` with `count` rows.
#[inline(always)]
pub(super) unsafe fn inner<T: Scalar, V: Vector<T>>(
    x: &Sums<T::Accum>,
    rows: &[*const T; CHUNK],
    count: usize,
    columns: usize,
    to: &mut [T::Accum; CHUNK],
) {
    let s = V::S::of(Semiring::PlusTimes);
    // SAFETY: the rows have so many elements, says the caller; `x` has whole vectors.
    unsafe {
        let x = x.as_ptr();
        let whole = columns - columns % V::LANES;
        for u in (0..count).step_by(GROUP) {
            let mut sums = [V::splat(T::Accum::zero()); GROUP];
            for k in (0..whole).step_by(V::LANES) {
                let xs = V::load_sums(x.add(k));
                for g in 0..GROUP {
                    sums[g] = V::mul_add(s, xs, V::load(rows[u + g].add(k)), sums[g]);
                }
            }
            if whole < columns {
                let mask = V::mask(columns - whole);
                let xs = V::load_sums(x.add(whole));
                for g in 0..GROUP {
                    let y = V::load_masked(rows[u + g].add(whole), mask);
                    sums[g] = V::mul_add(s, xs, y, sums[g]);
                }
            }
            to[u..u + GROUP].copy_from_slice(&V::totals(sums));
        }
    }
}

/// Adds the multiples of `count` rows to `sums`.
#[inline(always)]
pub(super) unsafe fn add_rows<T: Scalar, V: Vector<T>>(
    sums: &mut Sums<T::Accum>,
    factors: &[T::Accum; CHUNK],
    rows: &[*const T; CHUNK],
    count: usize,
    columns: usize,
) {
    let s = V::S::of(Semiring::PlusTimes);
    // SAFETY: the rows have so many elements, says the caller; the sums have whole vectors.
    unsafe {
        let to = sums.as_mut_ptr();
        let (mut k, wide) = (0, WIDTH * V::LANES);
        while k + wide <= columns {
            let mut part = [V::splat(T::Accum::zero()); WIDTH];
            for t in 0..WIDTH {
                part[t] = V::load_sums(to.add(k + t * V::LANES));
            }
            for u in 0..count {
                let (factor, row) = (V::splat(factors[u]), rows[u].add(k));
                for t in 0..WIDTH {
                    part[t] = V::mul_add(s, factor, V::load(row.add(t * V::LANES)), part[t]);
                }
            }
            for t in 0..WIDTH {
                V::store_sums(to.add(k + t * V::LANES), part[t]);
            }
            k += wide;
        }
        while k + V::LANES <= columns {
            let mut part = V::load_sums(to.add(k));
            for u in 0..count {
                part = V::mul_add(s, V::splat(factors[u]), V::load(rows[u].add(k)), part);
            }
            V::store_sums(to.add(k), part);
            k += V::LANES;
        }
        if k < columns {
            let mask = V::mask(columns - k);
            let mut part = V::load_sums(to.add(k));
            for u in 0..count {
                let row = V::load_masked(rows[u].add(k), mask);
                part = V::mul_add(s, V::splat(factors[u]), row, part);
            }
            V::store_sums(to.add(k), part);
        }
    }
}

/// Multiplies `sums` by `factor`, or stores the products in a row.
#[inline(always)]
pub(super) unsafe fn multiply<T: Scalar, V: Vector<T>>(
    sums: &mut Sums<T::Accum>,
    factor: T::Accum,
    columns: usize,
    row: Option<*mut T>,
) {
    let s = V::S::of(Semiring::PlusTimes);
    // SAFETY: the row has so many elements, says the caller; the sums have whole vectors.
    unsafe {
        let from = sums.as_mut_ptr();
        let factor = V::splat(factor);
        for k in (0..columns).step_by(V::LANES) {
            let product = V::scale(s, factor, V::load_sums(from.add(k)));
            match row {
                None => V::store_sums(from.add(k), product),
                Some(row) if k + V::LANES <= columns => V::store(row.add(k), product),
                Some(row) => V::store_masked(row.add(k), V::mask(columns - k), product),
            }
        }
    }
}

/// Adds `factor` times sums that were put aside to `sums`.
#[inline(always)]
pub(super) unsafe fn add_aside<T: Scalar, V: Vector<T>>(
    sums: &mut Sums<T::Accum>,
    factor: T::Accum,
    from: *const T::Accum,
    columns: usize,
) {
    let s = V::S::of(Semiring::PlusTimes);
    // SAFETY: whole vectors are there, says the caller.
    unsafe {
        let to = sums.as_mut_ptr();
        let factor = V::splat(factor);
        for k in (0..columns).step_by(V::LANES) {
            let sum = V::load_sums(to.add(k));
            V::store_sums(to.add(k), V::mul_add(s, factor, V::load_sums(from.add(k)), sum));
        }
    }
}
