//! `segmented`: a row, or a part of a long one, gathers two rows for every nonzero, 32 nonzeros at
//! a time: their scores, then their exponentials, then their multiples of rows. Nothing of the size
//! of the nonzeros is stored: gradients make the weights again from the logarithm of the sum of
//! exponentials of every row.
//!
//! | pass | own rows | gathered rows | sums |
//! |---|---|---|---|
//! | forward | qᵢ | kⱼ, vⱼ | Oᵢ = Σ p vⱼ with p = exp(s − m), beside the maximum m and Σ p |
//! | rows | qᵢ, dOᵢ | kⱼ, vⱼ | dQᵢ = Σ scale·ds·kⱼ |
//! | columns | kⱼ, vⱼ | qᵢ, dOᵢ | dKⱼ = Σ scale·ds·qᵢ, dVⱼ = Σ p dOᵢ |
//! | | left, right | left, right | left, right |
//!
//! s = leak·t with t = scale·⟨left, left⟩ + bias and leak = 1 for t > 0, else the negative slope; p =
//! exp(s − lse), ds = p(⟨right, right⟩ − δ)·leak, the gradient of t, δ = ⟨dOᵢ, Oᵢ⟩. The pass over
//! columns takes the transposed pattern.
//!
//! A part of a cut row puts its sums aside, with m and Σ p; they are merged in their order when all
//! are there.

use std::ops::Range;

use gustav_core::parallel::Shared;
use gustav_core::{Arith, IndexSlice, Scalar};

use super::exponential::{CHUNK, Exponential};
use super::row_sums::{GROUP, Sums, add_aside, add_rows, inner, multiply, padded, widen};
use super::schedule::{CutRow, Part, Step};
use crate::arch::vector::{Vector, Work};
use crate::offsets::Offsets;

// Nonzeros ahead of their use for which gathered rows are prefetched.
pub(super) const PREFETCH_DISTANCE: usize = 8;
// Bytes of a row that are prefetched at most.
const FETCHED: usize = 512;
const LINE: usize = 64;

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pass {
    Forward,
    Rows,
    Columns,
}

/// The rows of a matrix, of every head.
#[derive(Clone, Copy)]
pub struct Rows<P> {
    pub start: P,
    /// Elements from one head to the next.
    pub head: usize,
    /// Elements from one row to the next.
    pub ld: usize,
}

impl<T> Rows<*const T> {
    #[inline(always)]
    fn row(&self, head: usize, row: usize) -> *const T {
        // A matrix without elements has no addresses, and its rows are not read.
        self.start.wrapping_add(head * self.head + row * self.ld)
    }
}

impl<T> Rows<*mut T> {
    #[inline(always)]
    fn row(&self, head: usize, row: usize) -> *mut T {
        self.start.wrapping_add(head * self.head + row * self.ld)
    }
}

/// Values of nonzeros and heads, with their distances.
#[derive(Clone, Copy)]
pub struct OfNonzeros<V> {
    pub values: V,
    pub head: usize,
    pub nonzero: usize,
}

/// The operands of a pass.
#[derive(Clone, Copy)]
pub struct Operands<'a, T: Scalar> {
    pub pass: Pass,
    /// Rows of the pattern of the product, which `lse` and `delta` are of.
    pub rows: usize,
    pub(crate) offsets: Offsets<'a>,
    pub indices: IndexSlice<'a>,
    /// Where nonzeros are in the pattern of the product, if not here.
    pub positions: Option<IndexSlice<'a>>,
    pub depth: usize,
    pub value_depth: usize,
    pub own_left: Rows<*const T>,
    pub own_right: Rows<*const T>,
    pub left: Rows<*const T>,
    pub right: Rows<*const T>,
    /// O (`Pass::Rows`).
    pub result: Rows<*const T>,
    pub left_result: Rows<*mut T>,
    pub right_result: Rows<*mut T>,
    pub bias: Option<OfNonzeros<&'a [T]>>,
    pub of_bias: Option<OfNonzeros<Shared<'a, T>>>,
    pub lse: &'a [T::Accum],
    /// Where lse goes (`Pass::Forward`).
    pub keeps: Option<Shared<'a, T::Accum>>,
    /// Where δ goes (`Pass::Rows`).
    pub to_delta: Option<Shared<'a, T::Accum>>,
    /// δ (`Pass::Columns`).
    pub deltas: &'a [T::Accum],
    pub scale: T::Accum,
    pub negative_slope: T::Accum,
    /// What parts of cut rows put aside, `stride` of every slot.
    pub aside: Shared<'a, T::Accum>,
    pub stride: usize,
    /// Slots of a head.
    pub slots: usize,
    /// Whether gathered rows are prefetched.
    pub prefetches: bool,
}

// SAFETY: a shared borrow of what is read; of results every row, nonzero and slot is written by one
// thread.
unsafe impl<T: Scalar> Sync for Operands<'_, T> {}

impl<T: Scalar> Operands<'_, T> {
    /// Columns of the sums of left rows.
    #[inline(always)]
    fn left_sums(&self) -> usize {
        if self.pass == Pass::Forward { 0 } else { self.depth }
    }

    /// Columns of the sums of right rows.
    #[inline(always)]
    fn right_sums(&self) -> usize {
        if self.pass == Pass::Rows { 0 } else { self.value_depth }
    }
}

/// Numbers of a slot for sums of so many columns: m and Σ p, and the sums.
pub(crate) fn stride(left: usize, right: usize) -> usize {
    2 + padded(left) + padded(right)
}

/// A step of a pass in a head.
pub struct Task<'a, T: Scalar> {
    pub operands: &'a Operands<'a, T>,
    pub head: usize,
    pub step: Step<'a>,
    /// Where ds of the part's nonzeros are added, in place of `of_bias`.
    pub slopes: Option<&'a mut [T::Accum]>,
}

/// What one row sums.
struct Row<T: Scalar> {
    left: Sums<T::Accum>,
    right: Sums<T::Accum>,
    largest: T::Accum,
    total: T::Accum,
}

/// Nonzeros that are processed at once.
struct Chunk<T: Scalar> {
    count: usize,
    left: [*const T; CHUNK],
    right: [*const T; CHUNK],
    /// Scores, then weights.
    weights: [T::Accum; CHUNK],
    /// ⟨dO, v⟩, then ds.
    slopes: [T::Accum; CHUNK],
    /// Derivatives of the leaky ReLU.
    leaks: [T::Accum; CHUNK],
}

#[inline(always)]
fn none<A: Arith>() -> A {
    A::NEG_INFINITY
}

/// What scores are compared with, which is finite where there is none.
#[inline(always)]
fn base_of<A: Arith>(largest: A) -> A {
    if largest == none() { A::zero() } else { largest }
}

#[inline(always)]
fn minus<A: Arith>(a: A, b: A) -> A {
    A::from_i64(-1).times_plus(b, a)
}

impl<T: Scalar> Row<T> {
    #[inline(always)]
    fn new(op: &Operands<'_, T>) -> Self {
        let (largest, total) = (none(), T::Accum::zero());
        let (left, right) = (Sums::zeros(op.left_sums()), Sums::zeros(op.right_sums()));
        Row { left, right, largest, total }
    }
}

impl<T: Scalar> Task<'_, T>
where
    T::Accum: Exponential,
{
    /// Brings cache lines of a row to L1.
    #[inline(always)]
    unsafe fn prefetch<V: Vector<T>>(row: *const T, columns: usize) {
        for byte in (0..(columns * size_of::<T>()).min(FETCHED)).step_by(LINE) {
            // SAFETY: nothing is read through the pointer.
            unsafe { V::prefetch(row.wrapping_byte_add(byte)) }
        }
    }

    /// Sums the nonzeros of `range`, which are of row `row`.
    ///
    /// # Safety
    /// As [`Work::run`].
    #[inline(always)]
    unsafe fn sum<V: Vector<T>>(
        &mut self,
        row: usize,
        range: Range<usize>,
        first: bool,
        sums: &mut Row<T>,
    ) {
        let (op, head) = (self.operands, self.head);
        let (depth, value_depth) = (op.depth, op.value_depth);
        let of_row = head * op.rows + row;
        let (zero, gradient) = (T::Accum::zero(), op.pass != Pass::Forward);
        let (mut own_left, mut own_right) = (Sums::unset(), Sums::unset());
        let (mut own_lse, mut own_delta) = (zero, zero);
        let mut chunk = Chunk::<T> {
            count: 0,
            left: [std::ptr::null(); CHUNK],
            right: [std::ptr::null(); CHUNK],
            weights: [zero; CHUNK],
            slopes: [zero; CHUNK],
            leaks: [zero; CHUNK],
        };
        // SAFETY: rows and nonzeros are of the pattern, which the operands were found to fit.
        unsafe {
            widen::<T, V>(op.own_left.row(head, row), depth, &mut own_left);
            if gradient {
                widen::<T, V>(op.own_right.row(head, row), value_depth, &mut own_right);
            }
            if op.pass == Pass::Rows {
                let result = [op.result.row(head, row); CHUNK];
                inner::<T, V>(&own_right, &result, 1, value_depth, &mut chunk.slopes);
                (own_lse, own_delta) = (op.lse[of_row], chunk.slopes[0]);
                if let Some(to) = op.to_delta.filter(|_| first) {
                    to.put(of_row, own_delta);
                }
            }
            let last = range.end;
            for start in range.clone().step_by(CHUNK) {
                let count = CHUNK.min(last - start);
                chunk.count = count;
                for u in 0..count {
                    let column = op.indices.get(start + u);
                    chunk.left[u] = op.left.row(head, column);
                    chunk.right[u] = op.right.row(head, column);
                }
                // A group of fewer repeats its last nonzero.
                for u in count..count.next_multiple_of(GROUP) {
                    (chunk.left[u], chunk.right[u]) =
                        (chunk.left[count - 1], chunk.right[count - 1]);
                }
                if op.prefetches {
                    for u in 0..count {
                        Self::prefetch::<V>(chunk.left[u], depth);
                        Self::prefetch::<V>(chunk.right[u], value_depth);
                    }
                    for at in start + count..(start + count + PREFETCH_DISTANCE).min(last) {
                        let column = op.indices.get(at);
                        Self::prefetch::<V>(op.left.row(head, column), depth);
                    }
                }
                inner::<T, V>(&own_left, &chunk.left, count, depth, &mut chunk.weights);
                for u in 0..count {
                    let bias = op.bias.map_or(zero, |bias| {
                        let at = op.positions.map_or(start + u, |p| p.get(start + u));
                        bias.values[head * bias.head + at * bias.nonzero].to_accum()
                    });
                    let score = op.scale.times_plus(chunk.weights[u], bias);
                    let leak = if score > zero { T::Accum::one() } else { op.negative_slope };
                    (chunk.weights[u], chunk.leaks[u]) = (leak.times(score), leak);
                }
                if !gradient {
                    self.weigh::<V>(&mut chunk, sums);
                    continue;
                }
                inner::<T, V>(&own_right, &chunk.right, count, value_depth, &mut chunk.slopes);
                let (mut lses, mut deltas) = ([own_lse; CHUNK], [own_delta; CHUNK]);
                if op.pass == Pass::Columns {
                    for u in 0..count {
                        let at = head * op.rows + op.indices.get(start + u);
                        lses[u] = op.lse[at];
                        deltas[u] = op.deltas[at];
                    }
                }
                for u in 0..count {
                    let nothing = lses[u] == none();
                    let exponent = minus(chunk.weights[u], lses[u]);
                    chunk.weights[u] = if nothing { none() } else { exponent };
                }
                T::Accum::exponentials(&mut chunk.weights, count);
                for u in 0..count {
                    let of_score = chunk.weights[u].times(minus(chunk.slopes[u], deltas[u]));
                    chunk.slopes[u] = chunk.leaks[u].times(of_score);
                }
                if op.pass == Pass::Rows {
                    self.store_slopes(&chunk, start);
                }
                add_rows::<T, V>(&mut sums.left, &chunk.slopes, &chunk.left, count, depth);
                if op.pass == Pass::Columns {
                    let (weights, rows) = (&chunk.weights, &chunk.right);
                    add_rows::<T, V>(&mut sums.right, weights, rows, count, value_depth);
                }
            }
        }
    }

    /// Takes the scores of a chunk into the softmax of a row.
    #[inline(always)]
    unsafe fn weigh<V: Vector<T>>(&self, chunk: &mut Chunk<T>, sums: &mut Row<T>) {
        let (count, columns) = (chunk.count, self.operands.value_depth);
        let mut largest = sums.largest;
        for score in &chunk.weights[..count] {
            if *score > largest {
                largest = *score;
            }
        }
        if largest > sums.largest {
            if sums.largest > none() {
                let correction = minus(sums.largest, largest).exp();
                // SAFETY: the sums have so many columns.
                unsafe { multiply::<T, V>(&mut sums.right, correction, columns, None) }
                sums.total = correction.times(sums.total);
            }
            sums.largest = largest;
        }
        let base = base_of(sums.largest);
        for weight in &mut chunk.weights[..count] {
            *weight = minus(*weight, base);
        }
        T::Accum::exponentials(&mut chunk.weights, count);
        for weight in &chunk.weights[..count] {
            sums.total = sums.total.plus(*weight);
        }
        // SAFETY: the rows have so many columns.
        unsafe {
            add_rows::<T, V>(&mut sums.right, &chunk.weights, &chunk.right, count, columns);
        }
    }

    /// Stores the gradient of the bias at a chunk's nonzeros.
    #[inline(always)]
    fn store_slopes(&mut self, chunk: &Chunk<T>, start: usize) {
        let (op, head) = (self.operands, self.head);
        let slopes = &chunk.slopes[..chunk.count];
        if let (Some(sums), Step::Part(part)) = (&mut self.slopes, self.step) {
            let sums = &mut sums[start - part.nonzeros.start..];
            sums.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum = sum.plus(*slope));
        } else if let Some(to) = op.of_bias {
            for (u, slope) in slopes.iter().enumerate() {
                let at = head * to.head + (start + u) * to.nonzero;
                // SAFETY: a part's nonzeros are its own, and there is a value for each in every
                // head.
                unsafe { to.values.put(at, T::from_accum(*slope)) }
            }
        }
    }

    /// Stores the sums of a whole row.
    #[inline(always)]
    unsafe fn finish<V: Vector<T>>(&self, row: usize, sums: &mut Row<T>) {
        let (op, head) = (self.operands, self.head);
        let (zero, one) = (T::Accum::zero(), T::Accum::one());
        // SAFETY: the row is of the pattern, which the operands were found to fit, and no other
        // thread's.
        unsafe {
            let mut of_right = one;
            if op.pass == Pass::Forward {
                let nothing = sums.total == zero;
                of_right = if nothing { zero } else { sums.total.reciprocal() };
                if let Some(to) = op.keeps {
                    let lse = if nothing { none() } else { sums.largest.plus(sums.total.ln()) };
                    to.put(head * op.rows + row, lse);
                }
            } else {
                let to = op.left_result.row(head, row);
                multiply::<T, V>(&mut sums.left, op.scale, op.depth, Some(to));
            }
            if op.pass != Pass::Rows {
                let to = op.right_result.row(head, row);
                multiply::<T, V>(&mut sums.right, of_right, op.value_depth, Some(to));
            }
        }
    }

    /// What slot `slot` of this head puts aside.
    #[inline(always)]
    unsafe fn aside(&self, slot: usize) -> *mut T::Accum {
        let op = self.operands;
        let start = (self.head * op.slots + slot) * op.stride;
        // SAFETY: there is a slot for every part of a cut row, of every head.
        unsafe { op.aside.slice(start..start + op.stride).as_mut_ptr() }
    }

    #[inline(always)]
    unsafe fn put_aside(&self, slot: usize, sums: &Row<T>) {
        let op = self.operands;
        let (left, right) = (padded(op.left_sums()), padded(op.right_sums()));
        // SAFETY: the slot is this part's own.
        unsafe {
            let to = self.aside(slot);
            to.write(sums.largest);
            to.add(1).write(sums.total);
            to.add(2).copy_from_nonoverlapping(sums.left.as_ptr(), left);
            to.add(2 + left).copy_from_nonoverlapping(sums.right.as_ptr(), right);
        }
    }

    /// Adds up what the parts of a row put aside, in their order.
    #[inline(always)]
    unsafe fn merge<V: Vector<T>>(&self, cut: &CutRow) -> Row<T> {
        let op = self.operands;
        let mut sums = Row::new(op);
        // SAFETY: the parts are done, and their slots are this row's own.
        unsafe {
            for slot in cut.slots.clone() {
                let largest = *self.aside(slot);
                if largest > sums.largest {
                    sums.largest = largest;
                }
            }
            for slot in cut.slots.clone() {
                let from = self.aside(slot);
                let mut weight = T::Accum::one();
                if op.pass == Pass::Forward {
                    weight = minus(*from, base_of(sums.largest)).exp();
                    sums.total = weight.times_plus(*from.add(1), sums.total);
                }
                let right = from.add(2 + padded(op.left_sums()));
                add_aside::<T, V>(&mut sums.left, weight, from.add(2), op.left_sums());
                add_aside::<T, V>(&mut sums.right, weight, right, op.right_sums());
            }
        }
        sums
    }
}

impl<T: Scalar> Work<T> for Task<'_, T>
where
    T::Accum: Exponential,
{
    #[inline(always)]
    unsafe fn run<V: Vector<T>>(mut self) {
        // SAFETY: the caller has the instruction set; parts and rows are those of the operands'
        // pattern.
        unsafe {
            match self.step {
                Step::Merge(cut) => {
                    let mut sums = self.merge::<V>(cut);
                    self.finish::<V>(cut.row, &mut sums);
                }
                Step::Part(part) => self.part::<V>(part),
            }
        }
    }
}

impl<T: Scalar> Task<'_, T>
where
    T::Accum: Exponential,
{
    #[inline(always)]
    unsafe fn part<V: Vector<T>>(&mut self, part: &Part) {
        for row in part.rows.clone() {
            let range = match part.cut {
                Some(_) => part.nonzeros.clone(),
                None => self.operands.offsets.row(row),
            };
            let mut sums = Row::new(self.operands);
            // SAFETY: as `run`.
            unsafe {
                self.sum::<V>(
                    row,
                    range,
                    part.cut.is_none_or(|cut| cut.slot == cut.start),
                    &mut sums,
                );
                match part.cut {
                    Some(cut) => self.put_aside(cut.slot, &sums),
                    None => self.finish::<V>(row, &mut sums),
                }
            }
        }
    }
}
