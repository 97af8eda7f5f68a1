//! `segmented`: rows, or parts of long ones, 32 values at a time. Parts of a cut row put their sums
//! aside, which are merged in their order; then the parts are passed over once more.

use std::ops::Range;

use gustav_core::parallel::Shared;
use gustav_core::{Arith, Scalar};

use crate::arch::vector::{Vector, Work};
use crate::attention::exponential::{CHUNK, Exponential};
use crate::attention::schedule::Step;
use crate::attention::segmented::OfNonzeros;
use crate::offsets::Offsets;

/// Numbers that a part of a row puts aside.
pub(crate) const NUMBERS: usize = 2;

/// The operands.
pub struct Operands<'a, T: Scalar> {
    pub(crate) offsets: Offsets<'a>,
    /// Values, or the softmax for its gradient.
    pub values: OfNonzeros<&'a [T]>,
    /// The gradient of the softmax.
    pub of_values: Option<OfNonzeros<&'a [T]>>,
    pub out: OfNonzeros<Shared<'a, T>>,
    pub aside: Shared<'a, T::Accum>,
    /// Slots of a head.
    pub slots: usize,
}

/// A step in a head.
pub struct Task<'a, T: Scalar> {
    pub operands: &'a Operands<'a, T>,
    pub head: usize,
    pub step: Step<'a>,
    /// What rows put aside, once it is merged: then parts of cut rows are written.
    pub merged: Option<&'a [T::Accum]>,
}

/// What is known of a row, or of a part of it: the maximum m and Σ exp(x − m); of a gradient, Σ y g
/// in `total`.
#[derive(Clone, Copy)]
struct Sums<A> {
    largest: A,
    total: A,
}

fn minus<A: Arith>(a: A, b: A) -> A {
    A::from_i64(-1).times_plus(b, a)
}

/// What values are compared with, which is finite where there is none.
fn base_of<A: Arith>(largest: A) -> A {
    if largest == A::NEG_INFINITY { A::zero() } else { largest }
}

impl<T: Scalar> Task<'_, T>
where
    T::Accum: Exponential,
{
    #[inline(always)]
    fn read(&self, from: &OfNonzeros<&[T]>, range: &Range<usize>) -> [T::Accum; CHUNK] {
        let mut chunk = [T::Accum::zero(); CHUNK];
        let start = self.head * from.head;
        for (to, at) in chunk.iter_mut().zip(range.clone()) {
            *to = from.values[start + at * from.nonzero].to_accum();
        }
        chunk
    }

    /// # Safety
    /// The nonzeros are this part's own.
    #[inline(always)]
    unsafe fn write(&self, range: &Range<usize>, chunk: &[T::Accum; CHUNK]) {
        let to = &self.operands.out;
        let start = self.head * to.head;
        for (value, at) in chunk.iter().zip(range.clone()) {
            // SAFETY: there is an element for every nonzero in every head.
            unsafe { to.values.put(start + at * to.nonzero, T::from_accum(*value)) }
        }
    }

    #[inline(always)]
    fn sum(&self, range: Range<usize>) -> Sums<T::Accum> {
        let op = self.operands;
        let mut sums = Sums { largest: T::Accum::NEG_INFINITY, total: T::Accum::zero() };
        for chunk in chunks(range) {
            let mut x = self.read(&op.values, &chunk);
            if let Some(of_values) = &op.of_values {
                let g = self.read(of_values, &chunk);
                for u in 0..chunk.len() {
                    sums.total = x[u].times_plus(g[u], sums.total);
                }
                continue;
            }
            let mut largest = sums.largest;
            for x in &x[..chunk.len()] {
                if *x > largest {
                    largest = *x;
                }
            }
            if largest > sums.largest {
                let correction = minus(sums.largest, largest).exp();
                sums = Sums { largest, total: correction.times(sums.total) };
            }
            let base = base_of(largest);
            for x in &mut x[..chunk.len()] {
                *x = minus(*x, base);
            }
            T::Accum::exponentials(&mut x, chunk.len());
            for x in &x[..chunk.len()] {
                sums.total = sums.total.plus(*x);
            }
        }
        sums
    }

    /// # Safety
    /// As [`Task::write`].
    #[inline(always)]
    unsafe fn finish(&self, range: Range<usize>, sums: Sums<T::Accum>) {
        let (op, zero) = (self.operands, T::Accum::zero());
        let base = base_of(sums.largest);
        let factor = if sums.total == zero { zero } else { sums.total.reciprocal() };
        for chunk in chunks(range) {
            let mut x = self.read(&op.values, &chunk);
            if let Some(of_values) = &op.of_values {
                let g = self.read(of_values, &chunk);
                for u in 0..chunk.len() {
                    x[u] = x[u].times(minus(g[u], sums.total));
                }
            } else {
                for x in &mut x[..chunk.len()] {
                    *x = minus(*x, base);
                }
                T::Accum::exponentials(&mut x, chunk.len());
                for x in &mut x[..chunk.len()] {
                    *x = factor.times(*x);
                }
            }
            // SAFETY: promised by the caller.
            unsafe { self.write(&chunk, &x) }
        }
    }

    /// Numbers of a slot of this head.
    #[inline(always)]
    fn numbers(&self, slot: usize) -> Range<usize> {
        let start = (self.head * self.operands.slots + slot) * NUMBERS;
        start..start + NUMBERS
    }

    /// # Safety
    /// Nobody else uses the slot.
    #[inline(always)]
    unsafe fn put_aside(&self, slot: usize, Sums { largest, total }: Sums<T::Accum>) {
        // SAFETY: there is a slot for every part of a cut row, of every head.
        unsafe { self.operands.aside.slice(self.numbers(slot)) }.copy_from_slice(&[largest, total]);
    }

    /// Adds up what the parts of a row put aside, in their order.
    ///
    /// # Safety
    /// Nobody else uses the slots.
    #[inline(always)]
    unsafe fn merge(&self, slots: Range<usize>) -> Sums<T::Accum> {
        let mut sums = Sums { largest: T::Accum::NEG_INFINITY, total: T::Accum::zero() };
        for slot in slots {
            // SAFETY: there is such a slot, and nobody else uses it, says the caller.
            let numbers = unsafe { self.operands.aside.slice(self.numbers(slot)) };
            let (largest, total) = (numbers[0], numbers[1]);
            if self.operands.of_values.is_some() {
                sums.total = sums.total.plus(total);
                continue;
            }
            let most = if largest > sums.largest { largest } else { sums.largest };
            let base = base_of(most);
            let before = minus(sums.largest, base).exp().times(sums.total);
            let total = minus(largest, base).exp().times_plus(total, before);
            sums = Sums { largest: most, total };
        }
        sums
    }
}

fn chunks(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(CHUNK).map(move |start| start..end.min(start + CHUNK))
}

impl<T: Scalar> Work<T> for Task<'_, T>
where
    T::Accum: Exponential,
{
    #[inline(always)]
    unsafe fn run<V: Vector<T>>(self) {
        // SAFETY: parts, and the slots of cut rows, are one thread's at a time.
        unsafe {
            match self.step {
                Step::Merge(cut) => {
                    self.put_aside(cut.slots.start, self.merge(cut.slots.clone()));
                }
                Step::Part(part) => match (part.cut, self.merged) {
                    (None, _) => {
                        for row in part.rows.clone() {
                            let range = self.operands.offsets.row(row);
                            self.finish(range.clone(), self.sum(range));
                        }
                    }
                    (Some(cut), Some(merged)) => {
                        let numbers = &merged[self.numbers(cut.start)];
                        let (largest, total) = (numbers[0], numbers[1]);
                        self.finish(part.nonzeros.clone(), Sums { largest, total });
                    }
                    (Some(cut), None) => {
                        self.put_aside(cut.slot, self.sum(part.nonzeros.clone()));
                    }
                },
            }
        }
    }
}
