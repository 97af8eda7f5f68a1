//! Sums over rows and parts of rows straight from CSR arrays: what the three schedules of
//! paper A share.

use std::ops::Range;

use bytemuck::cast_slice;
use gustav_core::{DType, Index, IndexType, Scalar, Semiring, SemiringKind};

use super::epilogue::{Epilogue, Output};
use super::lanes::{Element, Kernel, Lanes, dispatch};
use crate::arch::Isa;

/// A, or Aᵀ with the positions of its entries in A, and x.
pub(crate) struct Operands<'a, T, I, O> {
    pub(crate) offsets: &'a [O],
    pub(crate) indices: &'a [I],
    pub(crate) values: &'a [T],
    /// Position in `values` of each entry; none when they are in order.
    pub(crate) source: Option<&'a [O]>,
    pub(crate) x: &'a [T],
}

/// Whether vector kernels with 32-bit signed gathers can run.
pub(crate) fn vectorizes<T: Scalar, I: Index, S: Semiring<T::Accum>>(x: usize) -> bool {
    S::KIND == SemiringKind::PlusTimes
        && I::TYPE == IndexType::U32
        && matches!(T::DTYPE, DType::F32 | DType::F64)
        && x <= i32::MAX as usize
}

impl<T: Scalar, I: Index, O: Index> Operands<'_, T, I, O> {
    /// Finishes whole rows.
    ///
    /// # Safety
    /// `y` holds every row of `rows`, and no other thread touches them meanwhile.
    pub(crate) unsafe fn multiply<S: Semiring<T::Accum>>(
        &self,
        isa: Isa,
        rows: Range<usize>,
        epilogue: &Epilogue<T::Accum, S>,
        y: Output<'_, T>,
    ) {
        if self.source.is_none() && vectorizes::<T, I, S>(self.x.len()) {
            match T::DTYPE {
                DType::F32 => return self.vector_rows::<f32, S>(isa, rows, epilogue, y),
                _ => return self.vector_rows::<f64, S>(isa, rows, epilogue, y),
            }
        }
        for row in rows {
            let sum = self.sum::<S>(self.offsets[row].to_usize()..self.offsets[row + 1].to_usize());
            // SAFETY: promised by the caller.
            unsafe { epilogue.store(y, row, sum) };
        }
    }

    fn vector_rows<E: Element, S: Semiring<T::Accum>>(
        &self,
        isa: Isa,
        rows: Range<usize>,
        epilogue: &Epilogue<T::Accum, S>,
        y: Output<'_, T>,
    ) {
        let store = |row: usize, sum: E| {
            let sum = bytemuck::cast::<E, T::Accum>(sum);
            // SAFETY: promised by the caller of `multiply`.
            unsafe { epilogue.store(y, row, sum) }
        };
        dispatch(
            isa,
            Rows {
                offsets: &self.offsets[rows.start..=rows.end],
                indices: cast_slice(self.indices),
                values: cast_slice::<T, E>(self.values),
                x: cast_slice::<T, E>(self.x),
                first: rows.start,
                store,
            },
        );
    }

    /// The sum over the entries of one row (or a part of it).
    pub(crate) fn dot<S: Semiring<T::Accum>>(&self, isa: Isa, entries: Range<usize>) -> T::Accum {
        if self.source.is_none() && vectorizes::<T, I, S>(self.x.len()) {
            return match T::DTYPE {
                DType::F32 => bytemuck::cast(self.vector_dot::<f32>(isa, entries)),
                _ => bytemuck::cast(self.vector_dot::<f64>(isa, entries)),
            };
        }
        self.sum::<S>(entries)
    }

    fn vector_dot<E: Element>(&self, isa: Isa, entries: Range<usize>) -> E {
        let indices = cast_slice(&self.indices[entries.clone()]);
        let values = cast_slice::<T, E>(&self.values[entries]);
        dispatch(isa, Dot { indices, values, x: cast_slice::<T, E>(self.x) })
    }

    fn sum<S: Semiring<T::Accum>>(&self, entries: Range<usize>) -> T::Accum {
        let product = |sum, k: usize| {
            let at = self.source.map_or(k, |source| source[k].to_usize());
            let (a, x) = (self.values[at], self.x[self.indices[k].to_usize()]);
            S::mul_add(a.to_accum(), x.to_accum(), sum)
        };
        entries.fold(S::zero(), product)
    }
}

struct Rows<'a, E, O, F> {
    offsets: &'a [O],
    indices: &'a [u32],
    values: &'a [E],
    x: &'a [E],
    first: usize,
    store: F,
}

impl<E: Element, O: Index, F: Fn(usize, E)> Kernel<E> for Rows<'_, E, O, F> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = E>>(self) {
        let mut start = self.offsets[0].to_usize();
        for (k, end) in self.offsets[1..].iter().enumerate() {
            let end = end.to_usize();
            // SAFETY: offsets and indices belong to a valid matrix.
            let sum = unsafe { dot::<V>(self.indices, self.values, self.x, start..end) };
            (self.store)(self.first + k, sum);
            start = end;
        }
    }
}

struct Dot<'a, E> {
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

/// The sum over `entries`, two gathers in flight.
///
/// # Safety
/// The instruction set of `V` is there; `entries` lies in both arrays, indices in `x`.
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
