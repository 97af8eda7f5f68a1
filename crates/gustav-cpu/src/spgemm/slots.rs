//! Unsorted rows of C whose columns keep the place they got when they were met (after Gustavson
//! 1978): sums are added up in the output itself, and nothing is collected or cleared afterwards.

use std::hint::select_unpredictable;
use std::ops::Range;

use gustav_core::{Buffer, Index, Result, Scalar, Semiring};

use super::accumulator::Accumulator;
use super::row::{Job, SHORT};
use super::vector::Vector;

/// The place of every column, of one thread.
pub(super) struct Slots {
    /// Place in the present row plus `stamp`; less than `stamp` when left by an earlier row.
    places: Buffer<u32>,
    stamp: u32,
    /// Whether most products open a place, as far as was seen.
    fresh: bool,
}

impl Slots {
    /// Room for `columns` columns.
    pub fn new(columns: usize) -> Result<Self> {
        Ok(Slots { places: Buffer::zeroed(columns, "places of columns")?, stamp: 1, fresh: false })
    }

    pub fn columns(&self) -> usize {
        self.places.len()
    }

    /// Makes sure that rows of `entries` entries together can be told from those before.
    pub fn reserve(&mut self, entries: usize) {
        if (u32::MAX - self.stamp) as usize <= entries {
            self.places.fill(0);
            self.stamp = 1;
        }
    }

    /// Says how many entries came out of how many products of late.
    pub fn note(&mut self, entries: usize, products: u64) {
        self.fresh = entries as u64 * 8 >= products * 7;
    }
}

impl<T: Scalar, I: Index, J: Index, O: Index> Job<'_, T, I, J, O> {
    /// Computes rows with their columns in the order in which they are met; calls
    /// `end(row, entries)` with the entries so far, and returns how many there are.
    ///
    /// # Safety
    /// The outputs have room for all entries and a block more;
    /// `slots` has room for all columns of B and was reserved for the entries.
    #[inline(always)]
    pub unsafe fn meet<S: Semiring<T::Accum>>(
        &self,
        rows: Range<usize>,
        slots: &mut Slots,
        to_columns: *mut u32,
        to_sums: *mut T::Accum,
        end: impl FnMut(usize, usize),
    ) -> usize {
        // SAFETY: promised by the caller.
        unsafe {
            if slots.fresh {
                self.meet_rows::<S, true>(rows, slots, to_columns, to_sums, end)
            } else {
                self.meet_rows::<S, false>(rows, slots, to_columns, to_sums, end)
            }
        }
    }

    /// Computes row `row` of less than [`SHORT`] products with its columns in ascending order, and
    /// returns how many entries there are.
    ///
    /// # Safety
    /// As [`Job::meet`]; the accumulator's list and slots have room for all columns of B.
    #[inline(always)]
    pub unsafe fn meet_sorted<S: Semiring<T::Accum>, V: Vector>(
        &self,
        row: usize,
        accumulator: &mut Accumulator<T::Accum>,
        to_columns: *mut u32,
        to_sums: *mut T::Accum,
    ) -> usize {
        let Accumulator { slots, list, spare, .. } = accumulator;
        let stamp = slots.stamp;
        // SAFETY: promised by the caller; the row writes `n` entries, whose columns have their
        // places below `n`, unless it is a copy of a row in order.
        unsafe {
            let n = self.meet::<S>(row..row + 1, slots, to_columns, to_sums, |_, _| {});
            if slots.stamp == stamp {
                return n;
            }
            let columns = std::slice::from_raw_parts_mut(to_columns, n);
            let sums = std::slice::from_raw_parts_mut(to_sums, n);
            let mut met = [S::zero(); SHORT];
            met[..n].copy_from_slice(sums);
            let list = &mut list[..n];
            list.copy_from_slice(columns);
            V::sort(list, &mut spare[..n]);
            for ((column, sum), from) in columns.iter_mut().zip(sums).zip(list) {
                *column = *from;
                let place = slots.places.get_unchecked(*from as usize).wrapping_sub(stamp);
                *sum = met[place as usize];
            }
            n
        }
    }

    /// # Safety
    /// As [`Job::meet`].
    #[inline(never)]
    unsafe fn meet_rows<S: Semiring<T::Accum>, const FRESH: bool>(
        &self,
        rows: Range<usize>,
        slots: &mut Slots,
        to_columns: *mut u32,
        to_sums: *mut T::Accum,
        mut end: impl FnMut(usize, usize),
    ) -> usize {
        let places = slots.places.as_mut_ptr();
        let (offsets, columns, values) =
            (self.b.offsets().as_ptr(), self.b.indices().as_ptr(), self.b.values().as_ptr());
        let mut total = 0;
        for row in rows {
            let entries = self.a.row_range(row);
            // SAFETY: promised by the caller.
            let (to_columns, to_sums) = unsafe { (to_columns.add(total), to_sums.add(total)) };
            if entries.len() == 1 && self.canonical {
                // SAFETY: promised by the caller.
                total += unsafe { self.copy::<S>(entries.start, to_columns, to_sums) };
                end(row, total);
                continue;
            }
            let stamp = slots.stamp;
            let mut n = 0u32;
            let mut filled = 0;
            let (inner, factors) = self.a.row(row);
            for (k, a) in inner.iter().zip(factors) {
                let (k, a) = (k.to_usize(), a.to_accum());
                // SAFETY: A's columns are rows of B, whose offsets lie within its entries; columns
                // of B have a place each; places of this row are below `n`, and there is room
                // for one more.
                unsafe {
                    let (first, last) = (offsets.add(k).read(), offsets.add(k + 1).read());
                    let products = first.to_usize()..last.to_usize();
                    filled += usize::from(!products.is_empty());
                    for at in products {
                        let j = columns.add(at).read().to_usize();
                        let b = values.add(at).read().to_accum();
                        let met = places.add(j).read().wrapping_sub(stamp);
                        let new = met >= n;
                        if FRESH {
                            if new {
                                places.add(j).write(stamp + n);
                                to_columns.add(n as usize).write(j as u32);
                                to_sums.add(n as usize).write(S::mul_add(a, b, S::zero()));
                                n += 1;
                            } else {
                                let sum = to_sums.add(met as usize);
                                sum.write(S::mul_add(a, b, sum.read()));
                            }
                        } else {
                            to_sums.add(n as usize).write(S::zero());
                            let place = select_unpredictable(new, n, met);
                            places.add(j).write(stamp + place);
                            to_columns.add(n as usize).write(j as u32);
                            let sum = to_sums.add(place as usize);
                            sum.write(S::mul_add(a, b, sum.read()));
                            n += u32::from(new);
                        }
                    }
                }
            }
            slots.stamp += n;
            if filled == 1 && self.canonical {
                // To the bit what a unit of such rows holds.
                for position in entries {
                    // SAFETY: promised by the caller; all but one of these rows are empty.
                    unsafe { self.copy::<S>(position, to_columns, to_sums) };
                }
            }
            total += n as usize;
            end(row, total);
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::{Csr, PlusTimes};

    use super::*;

    #[test]
    fn rows_are_told_apart_even_when_stamps_run_out() {
        let a: Csr<i64> =
            Csr::new(3, 3, vec![0, 3, 5, 6], vec![0, 1, 2, 2, 0, 1], vec![1i64; 6]).unwrap();
        let b: Csr<i64> =
            Csr::new(3, 5, vec![0, 2, 2, 5], vec![1, 4, 0, 1, 3], vec![1, 2, 3, 4, 5]).unwrap();
        let (a, b) = (a.view(), b.view());
        let job = Job { a, b, canonical: true, ranges: None, sorted: false, clustered: false };
        for fresh in [false, true] {
            for stamp in [1, u32::MAX - 20, u32::MAX - 9, u32::MAX - 8, u32::MAX] {
                let mut slots = Slots::new(5).unwrap();
                // As rows before have left them.
                slots.places.fill(stamp - 1);
                (slots.stamp, slots.fresh) = (stamp, fresh);
                slots.reserve(8);
                let (mut columns, mut sums, mut ends) = ([0; 16], [0; 16], Vec::new());
                let end = |_, n| ends.push(n);
                let (to, values) = (columns.as_mut_ptr(), sums.as_mut_ptr());
                // SAFETY: 8 entries at most, and columns below 5.
                let n = unsafe { job.meet::<PlusTimes>(0..3, &mut slots, to, values, end) };
                assert_eq!((n, &ends[..]), (8, &[4, 8, 8][..]), "{fresh} {stamp}");
                assert_eq!(columns[..n], [1, 4, 0, 3, 0, 1, 3, 4]);
                assert_eq!(sums[..n], [5, 2, 3, 5, 3, 5, 5, 2]);
            }
        }
    }
}
