//! Vectors as arrays, in plain Rust: any semiring, any scalar.

use gustav_core::semiring::Visit;
use gustav_core::{Arith, Ops, Scalar, Semiring};

use super::vector::{Vector, Work};

/// Arrays of 16 sums.
pub struct Portable;

const LANES: usize = 16;

#[inline(always)]
fn map<A: Copy>(f: impl Fn(usize) -> A) -> [A; LANES] {
    std::array::from_fn(f)
}

/// `acc ⊕ (a ⊗ b)` in every lane; one branch on the semiring for all lanes.
struct MulAdd<A> {
    a: [A; LANES],
    b: [A; LANES],
    acc: [A; LANES],
}

impl<A: Arith> Visit<A> for MulAdd<A> {
    type Output = [A; LANES];
    #[inline(always)]
    fn visit<S: Ops<A>>(self, s: S) -> [A; LANES] {
        map(|k| s.mul_add(self.a[k], self.b[k], self.acc[k]))
    }
}

/// `a ⊕ b` in every lane.
struct Add<A> {
    a: [A; LANES],
    b: [A; LANES],
}

impl<A: Arith> Visit<A> for Add<A> {
    type Output = [A; LANES];
    #[inline(always)]
    fn visit<S: Ops<A>>(self, s: S) -> [A; LANES] {
        map(|k| s.add(self.a[k], self.b[k]))
    }
}

/// Applies α or β to the sum in every lane.
struct Factor<A> {
    factor: [A; LANES],
    sum: [A; LANES],
}

impl<A: Arith> Visit<A> for Factor<A> {
    type Output = [A; LANES];
    #[inline(always)]
    fn visit<S: Ops<A>>(self, s: S) -> [A; LANES] {
        map(|k| s.scale(self.factor[k], self.sum[k]))
    }
}

impl<T: Scalar> Vector<T> for Portable {
    type S = Semiring;
    type V = [T::Accum; LANES];
    type Mask = usize;
    const LANES: usize = LANES;
    const WIDTH: usize = 1;
    const WHOLE: bool = false;
    const CHAINS: bool = false;
    const GROUP_WIDTH: usize = 1;
    const GROUPS: bool = false;

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
        // SAFETY: the caller guarantees LANES readable values.
        map(|k| unsafe { p.add(k).read().to_accum() })
    }
    #[inline(always)]
    unsafe fn load_masked(p: *const T, count: usize) -> Self::V {
        // Kernels of these vectors have masked loads alone (`WHOLE`). Most are of whole vectors, which
        // need no branch for each lane.
        if count == LANES {
            // SAFETY: as below.
            return unsafe { <Self as Vector<T>>::load(p) };
        }
        // SAFETY: the caller guarantees that the lanes of the mask are readable.
        map(|k| if k < count { unsafe { p.add(k).read().to_accum() } } else { T::Accum::default() })
    }
    #[inline(always)]
    unsafe fn store(p: *mut T, v: Self::V) {
        // SAFETY: the caller guarantees LANES writable values.
        (0..LANES).for_each(|k| unsafe { p.add(k).write(T::from_accum(v[k])) });
    }
    #[inline(always)]
    unsafe fn store_masked(p: *mut T, count: usize, v: Self::V) {
        if count == LANES {
            // SAFETY: as below.
            return unsafe { Self::store(p, v) };
        }
        for k in 0..count {
            // SAFETY: the caller guarantees that the lanes of the mask are writable.
            unsafe { p.add(k).write(T::from_accum(v[k])) }
        }
    }
    #[inline(always)]
    unsafe fn stream(p: *mut T, v: Self::V) {
        // SAFETY: as `store`.
        unsafe { Self::store(p, v) }
    }
    #[inline(always)]
    unsafe fn stream_16(p: *mut T, v: Self::V) {
        // SAFETY: as `store`.
        unsafe { Self::store(p, v) }
    }
    #[inline(always)]
    unsafe fn prefetch(_p: *const T) {}
    #[inline(always)]
    unsafe fn load_sums(p: *const T::Accum) -> Self::V {
        // SAFETY: the caller guarantees LANES readable sums.
        unsafe { p.cast::<Self::V>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store_sums(p: *mut T::Accum, v: Self::V) {
        // SAFETY: the caller guarantees LANES writable sums.
        unsafe { p.cast::<Self::V>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn mul_add(s: Semiring, a: Self::V, b: Self::V, acc: Self::V) -> Self::V {
        s.specialize(MulAdd { a, b, acc })
    }
    #[inline(always)]
    unsafe fn add(s: Semiring, a: Self::V, b: Self::V) -> Self::V {
        s.specialize(Add { a, b })
    }
    #[inline(always)]
    unsafe fn scale(s: Semiring, factor: Self::V, sum: Self::V) -> Self::V {
        s.specialize(Factor { factor, sum })
    }
    #[inline(always)]
    unsafe fn enter<W: Work<T>>(work: W) {
        // SAFETY: plain Rust needs no feature.
        unsafe { work.run::<Self>() }
    }
}
