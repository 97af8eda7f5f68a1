//! y = scale(α, sum) ⊕ scale(β, y), and y shared between threads.

use std::marker::PhantomData;

use gustav_core::{Arith, Ops, Scalar};

#[cfg(target_arch = "x86_64")]
use super::lanes::MaskLanes;

/// Applied to every finished sum. β equal to the semiring's zero leaves y unread.
#[derive(Clone, Copy)]
pub(crate) struct Epilogue<A, S> {
    alpha: A,
    beta: A,
    reads: bool,
    pub(crate) semiring: S,
}

impl<A: Arith, S: Ops<A>> Epilogue<A, S> {
    pub(crate) fn new(semiring: S, (alpha, beta): (A, A)) -> Self {
        Epilogue { alpha, beta, reads: beta != semiring.zero(), semiring }
    }

    /// Finishes the row at `at`.
    ///
    /// # Safety
    /// `at` is below the length of y, and no other thread touches it meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn store<T: Scalar<Accum = A>>(&self, y: Output<'_, T>, at: usize, sum: A) {
        let s = self.semiring;
        let mut sum = s.scale(self.alpha, sum);
        // SAFETY: promised by the caller.
        let slot = unsafe { &mut *y.start.add(at) };
        if self.reads {
            sum = s.add(sum, s.scale(self.beta, slot.to_accum()));
        }
        *slot = T::from_accum(sum);
    }
}

/// The same for vector kernels: α·sum + β·y, all of one floating-point type.
#[derive(Clone, Copy)]
pub(crate) struct Finish<E> {
    alpha: E,
    beta: E,
    reads: bool,
    y: *mut E,
}

impl<A: Arith, S: Ops<A>> Epilogue<A, S> {
    /// For plus-times, where stored values and sums are both `E`.
    pub(crate) fn finish<T: Scalar<Accum = A>, E: Arith>(&self, y: Output<'_, T>) -> Finish<E> {
        let cast = bytemuck::cast::<A, E>;
        let (alpha, beta) = (cast(self.alpha), cast(self.beta));
        Finish { alpha, beta, reads: self.reads, y: y.start.cast() }
    }
}

impl<E: Arith> Finish<E> {
    /// Finishes the row at `at`.
    ///
    /// # Safety
    /// As [`Epilogue::store`].
    #[inline(always)]
    pub(crate) unsafe fn one(self, at: usize, sum: E) {
        // SAFETY: promised by the caller.
        unsafe {
            let to = self.y.add(at);
            let sum = self.alpha.times(sum);
            to.write(if self.reads { sum.plus(self.beta.times(to.read())) } else { sum });
        }
    }

    /// Finishes `n` rows from `at` on.
    ///
    /// # Safety
    /// As [`Epilogue::store`], for each row.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) unsafe fn first<V: MaskLanes<Elem = E>>(self, at: usize, sums: V, n: usize) {
        // SAFETY: promised by the caller.
        unsafe {
            let to = self.y.add(at);
            let mut sums = V::splat(self.alpha).mul(sums);
            if self.reads {
                let y = V::load_first(to, n);
                sums = sums.add(V::splat(self.beta).mul(y));
            }
            sums.store_first(to, n);
        }
    }
}

/// The vector y, of which every thread writes its own rows.
#[derive(Clone, Copy)]
pub(crate) struct Output<'a, T> {
    start: *mut T,
    y: PhantomData<&'a mut [T]>,
}

// SAFETY: users of `Epilogue::store` and `Output::put` promise disjoint positions.
unsafe impl<T: Send> Send for Output<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Output<'_, T> {}

impl<'a, T> Output<'a, T> {
    pub(crate) fn new(y: &'a mut [T]) -> Self {
        Output { start: y.as_mut_ptr(), y: PhantomData }
    }

    /// Writes one element.
    ///
    /// # Safety
    /// As [`Epilogue::store`].
    #[inline(always)]
    pub(crate) unsafe fn put(self, at: usize, value: T) {
        // SAFETY: promised by the caller.
        unsafe { self.start.add(at).write(value) }
    }

    /// A slice of y.
    ///
    /// # Safety
    /// It is in bounds, and no other thread accesses it while it is borrowed.
    pub(crate) unsafe fn slice(self, start: usize, len: usize) -> &'a mut [T] {
        // SAFETY: promised by the caller.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }
}
