//! Lanes as a plain array: any machine, and NEON where it is the baseline.

use std::array::from_fn;

use gustav_core::Arith;

use super::Lanes;

#[derive(Clone, Copy)]
pub(crate) struct Array<E, const N: usize>([E; N]);

impl<E: Arith, const N: usize> Lanes for Array<E, N> {
    type Elem = E;
    type Index = [u32; N];
    const N: usize = N;
    const GATHERS: bool = false;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Array([E::zero(); N])
    }

    #[inline(always)]
    unsafe fn load(from: *const E) -> Self {
        // SAFETY: the caller's pointer is readable for N values.
        Array(unsafe { from.cast::<[E; N]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn load_first(from: *const E, n: usize) -> Self {
        // SAFETY: readable for n values.
        Array(from_fn(|k| if k < n { unsafe { *from.add(k) } } else { E::zero() }))
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Array(from_fn(|k| self.0[k].plus(other.0[k])))
    }

    #[inline(always)]
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        Array(from_fn(|k| self.0[k].times_plus(a.0[k], b.0[k])))
    }

    #[inline(always)]
    unsafe fn sum(self) -> E {
        let mut v = self.0;
        let mut half = N / 2;
        while half > 0 {
            for k in 0..half {
                v[k] = v[k].plus(v[k + half]);
            }
            half /= 2;
        }
        v[0]
    }

    #[inline(always)]
    unsafe fn index_u32(from: *const u32) -> [u32; N] {
        // SAFETY: readable for N indices.
        unsafe { from.cast::<[u32; N]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn index_u32_first(from: *const u32, n: usize) -> [u32; N] {
        // SAFETY: readable for n indices.
        from_fn(|k| if k < n { unsafe { *from.add(k) } } else { 0 })
    }

    #[inline(always)]
    unsafe fn index_u16(from: *const u16) -> [u32; N] {
        // SAFETY: readable for N indices.
        from_fn(|k| u32::from(unsafe { *from.add(k) }))
    }

    #[inline(always)]
    unsafe fn index_u16_first(from: *const u16, n: usize) -> [u32; N] {
        // SAFETY: readable for n indices.
        from_fn(|k| if k < n { u32::from(unsafe { *from.add(k) }) } else { 0 })
    }

    #[inline(always)]
    unsafe fn gather(from: *const E, index: [u32; N]) -> Self {
        // SAFETY: the caller's indices are in bounds.
        Array(from_fn(|k| unsafe { *from.add(index[k] as usize) }))
    }

    #[inline(always)]
    unsafe fn gather_first(from: *const E, index: [u32; N], n: usize) -> Self {
        // SAFETY: the first n indices are in bounds.
        Array(from_fn(|k| if k < n { unsafe { *from.add(index[k] as usize) } } else { E::zero() }))
    }
}
