//! The vector kernels: one for each encoding of columns.

use std::ops::Range;

use gustav_core::Index;

#[cfg(target_arch = "x86_64")]
use super::encode::Walk;
use super::encode::{Code, Encoded, Segment};
#[cfg(target_arch = "x86_64")]
use super::{masked, slices};
use crate::spmv::epilogue::Finish;
#[cfg(target_arch = "x86_64")]
use crate::spmv::lanes::MaskLanes;
use crate::spmv::lanes::{Element, Kernel, Lanes, PREFETCH_DISTANCE, are_short};

/// One partition of the rows of a compressed matrix, the operands, and the epilogue.
pub(crate) struct Part<'a, E> {
    pub(crate) columns: &'a super::Columns,
    pub(crate) partition: usize,
    pub(crate) indices: &'a [u32],
    pub(crate) values: &'a [E],
    pub(crate) x: &'a [E],
    pub(crate) finish: Finish<E>,
}

/// The same, with the type of the row offsets.
pub(crate) struct Partition<'a, E, O> {
    pub(super) encoded: &'a Encoded,
    pub(super) partition: usize,
    pub(super) offsets: &'a [O],
    pub(super) indices: &'a [u32],
    pub(super) values: &'a [E],
    pub(super) x: &'a [E],
    pub(super) finish: Finish<E>,
}

impl<'a, E, O> Partition<'a, E, O> {
    /// `part` with the offsets of its columns.
    pub(crate) fn new(part: Part<'a, E>, offsets: &'a [O]) -> Self {
        let Part { columns, partition, indices, values, x, finish } = part;
        Partition { encoded: &columns.encoded, partition, offsets, indices, values, x, finish }
    }
}

impl<E: Element, O: Index> Kernel<E> for Partition<'_, E, O> {
    type Output = ();
    #[cfg(target_arch = "x86_64")]
    const MASKED: bool = true;

    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = E>>(self) {
        for segment in self.encoded.of_partition(self.partition) {
            // SAFETY: the segment was made from this pattern.
            unsafe { self.segment::<V>(segment) };
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn run_masked<V: MaskLanes<Elem = E>>(self) {
        for segment in self.encoded.of_partition(self.partition) {
            // SAFETY: the segment was made from this pattern.
            unsafe {
                let rows = segment.rows.clone();
                match segment.code {
                    Code::Shift { first, len } => {
                        let distances = &self.encoded.distances[first..first + len];
                        masked::shift::<V, _>(&self, rows, distances);
                    }
                    Code::Windows { first, base, runs: true } => {
                        masked::windows::<V, _, true>(&self, rows, first, base);
                    }
                    Code::Windows { first, base, runs: false } => {
                        masked::windows::<V, _, false>(&self, rows, first, base);
                    }
                    Code::Narrow { base, walk } => {
                        let columns = Narrow::new(&self.encoded.codes, self.x, base);
                        self.walk::<V, _>(rows, columns, walk);
                    }
                    Code::Plain { walk } => {
                        let columns = Plain { indices: self.indices, x: self.x };
                        self.walk::<V, _>(rows, columns, walk);
                    }
                    Code::Slices { first, base, narrow: true, .. } => {
                        let columns = Narrow::new(&self.encoded.narrow[first..], self.x, base);
                        slices::slices::<V, _, _>(&self, rows, columns);
                    }
                    Code::Slices { first, narrow: false, .. } => {
                        let columns = Plain { indices: &self.encoded.wide[first..], x: self.x };
                        slices::slices::<V, _, _>(&self, rows, columns);
                    }
                }
            }
        }
    }
}

impl<E: Element, O: Index> Partition<'_, E, O> {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn walk<V, C>(&self, rows: Range<usize>, columns: C, walk: Walk)
    where
        V: MaskLanes<Elem = E>,
        C: Columns<E>,
    {
        // SAFETY: promised by the caller.
        unsafe {
            match walk {
                Walk::Rows => self.rows::<V, C>(rows, columns),
                Walk::Loads => self.rows::<E::Plain, C>(rows, columns),
                Walk::Alike => masked::alike::<V, _, C>(self, rows, columns),
                Walk::Flat => masked::flat::<V, _, C>(self, rows, columns),
            }
        }
    }

    #[inline(always)]
    unsafe fn segment<V: Lanes<Elem = E>>(&self, segment: &Segment) {
        let rows = segment.rows.clone();
        // SAFETY: promised by the caller.
        unsafe {
            match segment.code {
                Code::Shift { first, len } => {
                    self.shift(rows, &self.encoded.distances[first..first + len]);
                }
                Code::Narrow { base, .. } => {
                    self.rows::<V, _>(rows, Narrow::new(&self.encoded.codes, self.x, base));
                }
                // Windows and slices are encoded only for lanes with masks.
                Code::Plain { .. } | Code::Windows { .. } | Code::Slices { .. } => {
                    self.rows::<V, _>(rows, Plain { indices: self.indices, x: self.x });
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn shift(&self, rows: Range<usize>, distances: &[isize]) {
        let Partition { offsets, values, x, finish, .. } = *self;
        let mut value = values.as_ptr().wrapping_add(offsets[rows.start].to_usize());
        for row in rows {
            let mut sum = E::zero();
            // SAFETY: the segment was made from this pattern; the segment's rows are y's.
            unsafe {
                for distance in distances {
                    let x = *x.get_unchecked(row.wrapping_add_signed(*distance));
                    sum = (*value).times_plus(x, sum);
                    value = value.add(1);
                }
                finish.one(row, sum);
            }
        }
    }

    #[inline(always)]
    unsafe fn rows<V: Lanes<Elem = E>, C: Columns<E>>(&self, rows: Range<usize>, columns: C) {
        let entries = self.offsets[rows.end].to_usize() - self.offsets[rows.start].to_usize();
        // SAFETY: promised by the caller.
        unsafe {
            match are_short::<V>(rows.len(), entries) {
                true => self.each::<V, C, true>(rows, columns),
                false => self.each::<V, C, false>(rows, columns),
            }
        }
    }

    /// Finishes every row; with `SHORT` its entries are summed one after another.
    #[inline(always)]
    unsafe fn each<V: Lanes<Elem = E>, C: Columns<E>, const SHORT: bool>(
        &self,
        rows: Range<usize>,
        columns: C,
    ) {
        // Not read again from `self` after every row, which the compiler takes to be written with y.
        let Partition { offsets, values, finish, .. } = *self;
        let mut start = offsets[rows.start].to_usize();
        for row in rows {
            let end = offsets[row + 1].to_usize();
            // SAFETY: promised by the caller.
            unsafe {
                let sum = match SHORT {
                    true => Self::sum(values, start..end, columns),
                    false => Self::dot::<V, C>(values, start..end, columns),
                };
                finish.one(row, sum);
            }
            start = end;
        }
    }

    /// The sum of one row, an entry after another.
    #[inline(always)]
    unsafe fn sum<C: Columns<E>>(values: &[E], entries: Range<usize>, c: C) -> E {
        let mut sum = E::zero();
        let mut k = entries.start;
        while k < entries.end {
            // SAFETY: entries lie in the arrays; columns in x.
            sum = unsafe { values.get_unchecked(k).times_plus(c.at(k), sum) };
            k += 1;
        }
        sum
    }

    /// The sum of one row, two gathers in flight.
    #[inline(always)]
    unsafe fn dot<V: Lanes<Elem = E>, C: Columns<E>>(
        values: &[E],
        entries: Range<usize>,
        c: C,
    ) -> E {
        let values = values.as_ptr();
        let (mut k, end) = (entries.start, entries.end);
        // SAFETY: entries lie in the arrays; columns in x.
        unsafe {
            let (mut sum, mut other) = (V::zero(), V::zero());
            while k + 2 * V::N <= end {
                V::prefetch(values.wrapping_add(k).wrapping_byte_add(PREFETCH_DISTANCE));
                V::prefetch(values.wrapping_add(k + V::N).wrapping_byte_add(PREFETCH_DISTANCE));
                c.prefetch::<V>(k);
                sum = V::load(values.add(k)).mul_add(c.gather::<V>(k), sum);
                let k2 = k + V::N;
                other = V::load(values.add(k2)).mul_add(c.gather::<V>(k2), other);
                k += 2 * V::N;
            }
            if k + V::N <= end {
                sum = V::load(values.add(k)).mul_add(c.gather::<V>(k), sum);
                k += V::N;
            }
            if k < end {
                let n = end - k;
                let x = c.gather_first::<V>(k, n);
                other = V::load_first(values.add(k), n).mul_add(x, other);
            }
            sum.add(other).sum()
        }
    }
}

/// The columns of entries in one encoding, and x.
pub(super) trait Columns<E>: Copy {
    /// x at the column of entry `k`.
    unsafe fn at(self, k: usize) -> E;
    /// x at the columns of the entries from `k` on.
    unsafe fn gather<V: Lanes<Elem = E>>(self, k: usize) -> V;
    unsafe fn gather_first<V: Lanes<Elem = E>>(self, k: usize, n: usize) -> V;
    /// Prefetches the columns of entries well after `k`.
    fn prefetch<V: Lanes>(self, k: usize);
    #[cfg(target_arch = "x86_64")]
    unsafe fn gather_mask<V: MaskLanes<Elem = E>>(self, k: usize, mask: u32) -> V;
}

/// The caller's own indices.
#[derive(Clone, Copy)]
pub(super) struct Plain<'a, E> {
    indices: &'a [u32],
    x: &'a [E],
}

impl<E: Element> Columns<E> for Plain<'_, E> {
    #[inline(always)]
    unsafe fn at(self, k: usize) -> E {
        // SAFETY: entries lie in the arrays; columns in x.
        unsafe { *self.x.get_unchecked(*self.indices.get_unchecked(k) as usize) }
    }
    #[inline(always)]
    fn prefetch<V: Lanes>(self, k: usize) {
        V::prefetch(self.indices.as_ptr().wrapping_add(k).wrapping_byte_add(PREFETCH_DISTANCE));
    }
    #[inline(always)]
    unsafe fn gather<V: Lanes<Elem = E>>(self, k: usize) -> V {
        // SAFETY: entries lie in the arrays; columns in x.
        unsafe { V::gather(self.x.as_ptr(), V::index_u32(self.indices.as_ptr().add(k))) }
    }
    #[inline(always)]
    unsafe fn gather_first<V: Lanes<Elem = E>>(self, k: usize, n: usize) -> V {
        // SAFETY: as above.
        unsafe {
            let index = V::index_u32_first(self.indices.as_ptr().add(k), n);
            V::gather_first(self.x.as_ptr(), index, n)
        }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn gather_mask<V: MaskLanes<Elem = E>>(self, k: usize, mask: u32) -> V {
        // SAFETY: as above.
        unsafe {
            let index = V::index_u32_mask(self.indices.as_ptr().add(k), mask);
            V::gather_mask(self.x.as_ptr(), index, mask)
        }
    }
}

/// 16-bit codes; `x` begins at the segment's base.
#[derive(Clone, Copy)]
pub(super) struct Narrow<'a, E> {
    codes: &'a [u16],
    x: &'a [E],
}

impl<'a, E> Narrow<'a, E> {
    #[inline(always)]
    fn new(codes: &'a [u16], x: &'a [E], base: usize) -> Self {
        Narrow { codes, x: &x[base..] }
    }
}

impl<E: Element> Columns<E> for Narrow<'_, E> {
    #[inline(always)]
    unsafe fn at(self, k: usize) -> E {
        // SAFETY: entries lie in the arrays; columns in x.
        unsafe { *self.x.get_unchecked(usize::from(*self.codes.get_unchecked(k))) }
    }
    #[inline(always)]
    fn prefetch<V: Lanes>(self, k: usize) {
        V::prefetch(self.codes.as_ptr().wrapping_add(k).wrapping_byte_add(PREFETCH_DISTANCE));
    }
    #[inline(always)]
    unsafe fn gather<V: Lanes<Elem = E>>(self, k: usize) -> V {
        // SAFETY: entries lie in the arrays; columns in x.
        unsafe { V::gather(self.x.as_ptr(), V::index_u16(self.codes.as_ptr().add(k))) }
    }
    #[inline(always)]
    unsafe fn gather_first<V: Lanes<Elem = E>>(self, k: usize, n: usize) -> V {
        // SAFETY: as above.
        unsafe {
            let index = V::index_u16_first(self.codes.as_ptr().add(k), n);
            V::gather_first(self.x.as_ptr(), index, n)
        }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn gather_mask<V: MaskLanes<Elem = E>>(self, k: usize, mask: u32) -> V {
        // SAFETY: as above.
        unsafe {
            let index = V::index_u16_mask(self.codes.as_ptr().add(k), mask);
            V::gather_mask(self.x.as_ptr(), index, mask)
        }
    }
}
