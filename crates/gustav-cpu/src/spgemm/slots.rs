//! Unsorted rows of C (after Gustavson 1978): the first product of a column takes the next position
//! of the row, its slot, and later ones add there. Products are summed in the output itself, so
//! nothing is collected or cleared afterwards.

use std::hint::select_unpredictable;
use std::ops::Range;

use gustav_core::{Arith, Buffer, Ops, Result};

use super::accumulator::Accumulator;
use super::operands::Indices;
use super::row::{Job, SHORT, no_end};
use super::vector::Vector;

/// The slot of every column, of one thread.
pub(super) struct Slots {
    /// Slot in the current row plus `stamp`; less than `stamp` if an earlier row wrote it.
    slots: Buffer<u32>,
    stamp: u32,
    /// Whether most products take a new slot, judged by the previous unit.
    fresh: bool,
}

impl Slots {
    /// For `columns` columns.
    pub fn new(columns: usize) -> Result<Self> {
        Ok(Slots { slots: Buffer::zeroed(columns, "slots of columns")?, stamp: 1, fresh: false })
    }

    pub fn columns(&self) -> usize {
        self.slots.len()
    }

    /// Prepares for rows of `entries` entries in all: their slots must differ from all earlier
    /// ones.
    pub fn reserve(&mut self, entries: usize) {
        if (u32::MAX - self.stamp) as usize <= entries {
            self.slots.fill(0);
            self.stamp = 1;
        }
    }

    /// Records how many entries resulted from how many products.
    pub fn note(&mut self, entries: usize, products: u64) {
        self.fresh = entries as u64 * 8 >= products * 7;
    }
}

impl<A: Arith, X: Indices> Job<'_, A, X> {
    /// Computes rows with their columns in the order in which they occur; calls
    /// `end(row, entries)` with the entries so far, and returns how many there are.
    ///
    /// # Safety
    /// The outputs hold all entries and a block more; `slots` holds all columns of B and was
    /// reserved for the entries.
    #[inline(always)]
    pub unsafe fn merge<S: Ops<A>>(
        &self,
        s: S,
        rows: Range<usize>,
        slots: &mut Slots,
        to_columns: *mut u32,
        to_sums: *mut A,
        end: impl FnMut(usize, usize),
    ) -> usize {
        // SAFETY: promised by the caller.
        unsafe {
            if slots.fresh {
                self.merge_rows::<S, true>(s, rows, slots, to_columns, to_sums, end)
            } else {
                self.merge_rows::<S, false>(s, rows, slots, to_columns, to_sums, end)
            }
        }
    }

    /// Computes row `row` of less than [`SHORT`] products with its columns in ascending order, and
    /// returns how many entries there are.
    ///
    /// # Safety
    /// As [`Job::merge`]; the accumulator's list and slots hold all columns of B.
    #[inline(always)]
    pub unsafe fn merge_sorted<S: Ops<A>, V: Vector>(
        &self,
        s: S,
        row: usize,
        accumulator: &mut Accumulator<A>,
        to_columns: *mut u32,
        to_sums: *mut A,
    ) -> usize {
        let Accumulator { slots, list, spare, .. } = accumulator;
        let stamp = slots.stamp;
        // SAFETY: promised by the caller; the row writes `n` entries, whose columns have slots
        // below `n`, unless it is a copy of a row in order.
        unsafe {
            let n = self.merge(s, row..row + 1, slots, to_columns, to_sums, no_end);
            if slots.stamp == stamp {
                return n;
            }
            let columns = std::slice::from_raw_parts_mut(to_columns, n);
            let sums = std::slice::from_raw_parts_mut(to_sums, n);
            let mut unsorted = [s.zero(); SHORT];
            unsorted[..n].copy_from_slice(sums);
            let list = &mut list[..n];
            list.copy_from_slice(columns);
            V::sort(list, &mut spare[..n]);
            for ((column, sum), from) in columns.iter_mut().zip(sums).zip(list) {
                *column = *from;
                let slot = slots.slots.get_unchecked(*from as usize).wrapping_sub(stamp);
                *sum = unsorted[slot as usize];
            }
            n
        }
    }

    /// # Safety
    /// As [`Job::merge`].
    #[inline(never)]
    unsafe fn merge_rows<S: Ops<A>, const FRESH: bool>(
        &self,
        s: S,
        rows: Range<usize>,
        slots: &mut Slots,
        to_columns: *mut u32,
        to_sums: *mut A,
        mut end: impl FnMut(usize, usize),
    ) -> usize {
        let of_column = slots.slots.as_mut_ptr();
        let (inner, offsets) = (self.a.columns, self.b.offsets);
        let (columns, values) = (self.b.columns.as_ptr(), self.b_values.as_ptr());
        let mut total = 0;
        for row in rows {
            let entries = self.a.range(row);
            // SAFETY: promised by the caller.
            let (to_columns, to_sums) = unsafe { (to_columns.add(total), to_sums.add(total)) };
            if entries.len() == 1 && self.canonical {
                // SAFETY: promised by the caller.
                total += unsafe { self.copy(s, entries.start, to_columns, to_sums) };
                end(row, total);
                continue;
            }
            let stamp = slots.stamp;
            let mut n = 0u32;
            let mut filled = 0;
            for (position, a) in entries.clone().zip(&self.a_values[entries.clone()]) {
                let a = *a;
                // SAFETY: nonzeros of A have a column each; A's columns are rows of B, whose
                // offsets lie within its nonzeros; every column of B has a slot; slots of this row
                // are below `n`, and the outputs hold one entry more.
                unsafe {
                    let k = inner.at_unchecked(position);
                    let products = offsets.row_unchecked(k);
                    filled += usize::from(!products.is_empty());
                    for at in products {
                        let j = columns.add(at).read();
                        let b = values.add(at).read();
                        let of_column = of_column.add(j as usize);
                        let slot = of_column.read().wrapping_sub(stamp);
                        let new = slot >= n;
                        if FRESH {
                            if new {
                                of_column.write(stamp + n);
                                to_columns.add(n as usize).write(j);
                                to_sums.add(n as usize).write(s.mul_add(a, b, s.zero()));
                                n += 1;
                            } else {
                                let sum = to_sums.add(slot as usize);
                                sum.write(s.mul_add(a, b, sum.read()));
                            }
                        } else {
                            to_sums.add(n as usize).write(s.zero());
                            let slot = select_unpredictable(new, n, slot);
                            of_column.write(stamp + slot);
                            to_columns.add(n as usize).write(j);
                            let sum = to_sums.add(slot as usize);
                            sum.write(s.mul_add(a, b, sum.read()));
                            n += u32::from(new);
                        }
                    }
                }
            }
            slots.stamp += n;
            if filled == 1 && self.canonical {
                // Copies, as units without merging do: the same bits.
                for position in entries {
                    // SAFETY: promised by the caller; all but one of these rows are empty.
                    unsafe { self.copy(s, position, to_columns, to_sums) };
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
    use gustav_core::PlusTimes;

    use super::*;
    use crate::spgemm::operands::{Right, Rows};

    #[test]
    fn rows_are_distinguished_even_when_stamps_overflow() {
        const OFFSETS: [u32; 4] = [0, 3, 5, 6];
        const COLUMNS: [u32; 6] = [0, 1, 2, 2, 0, 1];
        const OFFSETS_OF_B: [u32; 4] = [0, 2, 2, 5];
        let job = Job {
            a: Rows { nrows: 3, ncols: 3, offsets: &OFFSETS[..], columns: &COLUMNS[..] },
            a_values: &[1i64; 6],
            b: Right { nrows: 3, ncols: 5, offsets: &OFFSETS_OF_B[..], columns: &[1, 4, 0, 1, 3] },
            b_values: &[1, 2, 3, 4, 5],
            canonical: true,
            ranges: None,
            sorted: false,
            clustered: false,
        };
        for fresh in [false, true] {
            for stamp in [1, u32::MAX - 20, u32::MAX - 9, u32::MAX - 8, u32::MAX] {
                let mut slots = Slots::new(5).unwrap();
                // The state that earlier rows leave.
                slots.slots.fill(stamp - 1);
                (slots.stamp, slots.fresh) = (stamp, fresh);
                slots.reserve(8);
                let (mut columns, mut sums, mut ends) = ([0; 16], [0; 16], Vec::new());
                let end = |_, n| ends.push(n);
                let (to, values) = (columns.as_mut_ptr(), sums.as_mut_ptr());
                // SAFETY: 8 entries at most, and columns below 5.
                let n = unsafe { job.merge(PlusTimes, 0..3, &mut slots, to, values, end) };
                assert_eq!((n, &ends[..]), (8, &[4, 8, 8][..]), "{fresh} {stamp}");
                assert_eq!(columns[..n], [1, 4, 0, 3, 0, 1, 3, 4]);
                assert_eq!(sums[..n], [5, 2, 3, 5, 3, 5, 5, 2]);
            }
        }
    }
}
