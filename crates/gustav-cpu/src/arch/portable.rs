//! Vectors as arrays, in plain Rust: any semiring, any scalar.

use std::marker::PhantomData;

use gustav_core::{Scalar, Semiring};

use super::vector::{Vector, Work};

/// Arrays of 8 sums of semiring `S`.
pub struct Portable<S>(PhantomData<S>);

const LANES: usize = 8;

#[inline(always)]
fn map<A: Copy>(f: impl Fn(usize) -> A) -> [A; LANES] {
    std::array::from_fn(f)
}

impl<T: Scalar, S: Semiring<T::Accum>> Vector<T> for Portable<S> {
    type V = [T::Accum; LANES];
    type Mask = usize;
    const LANES: usize = LANES;
    const WIDTH: usize = 2;
    const WHOLE: bool = false;
    const GROUP_WIDTH: usize = 1;

    #[inline(always)]
    unsafe fn splat(a: T::Accum) -> Self::V {
        [a; LANES]
    }
    #[inline(always)]
    unsafe fn mask(count: usize) -> usize {
        count
    }
    #[inline(always)]
    unsafe fn load(p: *const T) -> Self::V {
        // SAFETY: LANES values can be read, says the caller.
        map(|k| unsafe { p.add(k).read().to_accum() })
    }
    #[inline(always)]
    unsafe fn load_masked(p: *const T, count: usize) -> Self::V {
        // SAFETY: the lanes of the mask can be read, says the caller.
        map(|k| if k < count { unsafe { p.add(k).read().to_accum() } } else { S::zero() })
    }
    #[inline(always)]
    unsafe fn store(p: *mut T, v: Self::V) {
        // SAFETY: LANES values can be written, says the caller.
        unsafe { Self::store_masked(p, LANES, v) }
    }
    #[inline(always)]
    unsafe fn store_masked(p: *mut T, count: usize, v: Self::V) {
        for k in 0..count {
            // SAFETY: the lanes of the mask can be written, says the caller.
            unsafe { p.add(k).write(T::from_accum(v[k])) }
        }
    }
    #[inline(always)]
    unsafe fn stream(p: *mut T, v: Self::V) {
        // SAFETY: as `store`.
        unsafe { Self::store_masked(p, LANES, v) }
    }
    #[inline(always)]
    unsafe fn stream_pieces(p: *mut T, v: Self::V) {
        // SAFETY: as `store`.
        unsafe { Self::store_masked(p, LANES, v) }
    }
    #[inline(always)]
    unsafe fn fetch(_p: *const T) {}
    #[inline(always)]
    unsafe fn load_sums(p: *const T::Accum) -> Self::V {
        // SAFETY: LANES sums can be read, says the caller.
        unsafe { p.cast::<Self::V>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store_sums(p: *mut T::Accum, v: Self::V) {
        // SAFETY: LANES sums can be written, says the caller.
        unsafe { p.cast::<Self::V>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn mul_add(a: Self::V, b: Self::V, acc: Self::V) -> Self::V {
        map(|k| S::mul_add(a[k], b[k], acc[k]))
    }
    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        map(|k| S::add(a[k], b[k]))
    }
    #[inline(always)]
    unsafe fn scale(factor: Self::V, sum: Self::V) -> Self::V {
        map(|k| S::scale(factor[k], sum[k]))
    }
    #[inline(always)]
    unsafe fn enter<W: Work<T>>(work: W) {
        // SAFETY: plain Rust needs no feature.
        unsafe { work.run::<Self>() }
    }
}
