//! One row of C: the choice of the accumulator, and the loops that fill and drain it.

use std::ops::Range;

use gustav_core::{Arith, Ops};

use super::accumulator::Accumulator;
use super::operands::{Indices, Right, Rows};
use super::vector::Vector;

/// The operands of a product and its options. Values have the type of sums.
#[derive(Clone, Copy)]
pub(super) struct Job<'a, A, X> {
    /// op(A), whose columns are rows of B.
    pub a: Rows<X>,
    pub a_values: &'a [A],
    pub b: Right<'a, X>,
    pub b_values: &'a [A],
    /// Whether the columns of every row of B strictly increase.
    pub canonical: bool,
    /// Smallest and largest column of every row of B, where B is not canonical.
    pub ranges: Option<&'a [[u32; 2]]>,
    pub sorted: bool,
    /// Whether columns of B mostly have close neighbours.
    pub clustered: bool,
}

/// What is known of a row of C before it is computed.
pub(super) struct Facts {
    pub products: usize,
    /// Smallest and largest column.
    pub first: usize,
    pub last: usize,
    /// Rows of B with entries that this row adds up, and the position in A of the last of them.
    pub filled: usize,
    pub position: usize,
}

// Draining reads every flag between the first and the last column. Up to this many columns per
// product it costs less than listing the columns that occur and sorting them.
const SCAN: usize = 112;
// The same limit for unsorted rows, whose columns need no sorting, and for columns in clusters,
// between which draining skips whole blocks.
const UNSORTED_SCAN: usize = 4;
const CLUSTERED_SCAN: usize = 32;
// Unsorted rows of fewer products are never drained.
pub(super) const LONG: usize = 128;
// Sorted rows are not drained either in a unit whose rows all have fewer products than this.
pub(super) const SHORT: usize = 32;

// Rows of B with consecutive columns are added as vectors from this length on.
const RUN: usize = 16;

/// Ignores the end of a row: for single rows, whose function returns it. A function, not a closure:
/// every closure has a type of its own, for which the loops would be compiled again.
pub(super) fn no_end(_row: usize, _entries: usize) {}

impl<A: Arith, X: Indices> Job<'_, A, X> {
    #[inline(always)]
    pub fn facts(&self, row: usize) -> Facts {
        let mut facts = Facts { products: 0, first: usize::MAX, last: 0, filled: 0, position: 0 };
        for position in self.a.range(row) {
            let k = self.a.column(position);
            // SAFETY: the columns of A are rows of B.
            let range = unsafe { self.b.offsets.row_unchecked(k) };
            if range.is_empty() {
                continue;
            }
            facts.products += range.len();
            facts.filled += 1;
            facts.position = position;
            let (first, last) = match self.ranges {
                None => {
                    let columns = self.b.columns;
                    (columns[range.start] as usize, columns[range.end - 1] as usize)
                }
                Some(ranges) => (ranges[k][0] as usize, ranges[k][1] as usize),
            };
            facts.first = facts.first.min(first);
            facts.last = facts.last.max(last);
        }
        facts
    }

    /// Whether the row of C is one scaled row of B.
    #[inline(always)]
    pub fn is_copy(&self, facts: &Facts) -> bool {
        facts.filled == 1 && self.canonical
    }

    /// The value of A at `position`, and the columns and values of the row of B that it multiplies.
    #[inline(always)]
    pub fn factor(&self, position: usize) -> (A, &[u32], &[A]) {
        // SAFETY: the columns of A are rows of B, whose offsets lie within its nonzeros.
        let (columns, values) = unsafe {
            let range = self.b.offsets.row_unchecked(self.a.column(position));
            (self.b.columns.get_unchecked(range.clone()), self.b_values.get_unchecked(range))
        };
        (self.a_values[position], columns, values)
    }

    /// Columns per product up to which a row of that many products is drained.
    #[inline(always)]
    fn scan(&self, products: usize) -> usize {
        match products {
            _ if self.sorted => SCAN,
            LONG.. if self.clustered => CLUSTERED_SCAN,
            LONG.. => UNSORTED_SCAN,
            _ => 0,
        }
    }

    /// Computes row `row`, writes its columns and sums, and returns how many there are.
    ///
    /// # Safety
    /// The outputs hold the row's products or all columns, whichever is less, and one
    /// block more; the accumulator holds all columns of B.
    #[inline(always)]
    pub unsafe fn compute<S: Ops<A>, V: Vector>(
        &self,
        s: S,
        row: usize,
        accumulator: &mut Accumulator<A>,
        to_columns: *mut u32,
        to_sums: *mut A,
    ) -> usize {
        let facts = self.facts(row);
        if facts.products == 0 {
            return 0;
        }
        if self.is_copy(&facts) {
            // SAFETY: the outputs hold the row's products.
            return unsafe { self.copy(s, facts.position, to_columns, to_sums) };
        }
        let (sums, flags) = (accumulator.sums.as_mut_ptr(), accumulator.flags.as_mut_ptr());
        let span = facts.last - facts.first + 1;
        if span <= facts.products.saturating_mul(self.scan(facts.products)) {
            for position in self.a.range(row) {
                // SAFETY: columns of B are in bounds of the accumulator.
                unsafe { self.add_flagged(s, position, sums, flags) };
            }
            // SAFETY: as promised by the caller.
            return unsafe {
                V::drain(s.zero(), flags, sums, facts.first, facts.last, to_columns, to_sums)
            };
        }
        if !self.sorted {
            // SAFETY: as promised by the caller.
            return unsafe {
                self.merge(s, row..row + 1, &mut accumulator.slots, to_columns, to_sums, no_end)
            };
        }
        let list = accumulator.list.as_mut_ptr();
        let mut n = 0;
        for position in self.a.range(row) {
            // SAFETY: columns are in bounds, and the list holds every column once.
            n = unsafe { self.add_listed(s, position, sums, flags, list, n) };
        }
        // SAFETY: the list holds `n` columns, each flagged, and the outputs hold them.
        unsafe {
            V::sort(&mut accumulator.list[..n], &mut accumulator.spare[..n]);
            for at in 0..n {
                let column = *list.add(at);
                to_columns.add(at).write(column);
                to_sums.add(at).write(sums.add(column as usize).replace(s.zero()));
                flags.add(column as usize).write(0);
            }
        }
        n
    }

    /// Writes the row of B that the nonzero of A at `position` multiplies, scaled by it; returns
    /// its number of entries.
    ///
    /// # Safety
    /// The outputs hold them.
    #[inline(always)]
    pub unsafe fn copy<S: Ops<A>>(
        &self,
        s: S,
        position: usize,
        to_columns: *mut u32,
        to_sums: *mut A,
    ) -> usize {
        let (a, columns, values) = self.factor(position);
        for (at, (j, b)) in columns.iter().zip(values).enumerate() {
            // SAFETY: promised by the caller.
            unsafe {
                to_columns.add(at).write(*j);
                to_sums.add(at).write(s.mul(a, *b));
            }
        }
        columns.len()
    }

    /// Computes rows of C that are scaled copies of at most one row of B; calls `end(row, entries)`
    /// with the entries so far, and returns how many there are.
    ///
    /// # Safety
    /// The outputs hold the rows' products.
    #[inline(always)]
    pub unsafe fn scale<S: Ops<A>>(
        &self,
        s: S,
        rows: Range<usize>,
        to_columns: *mut u32,
        to_sums: *mut A,
        mut end: impl FnMut(usize, usize),
    ) -> usize {
        let mut n = 0;
        for row in rows {
            for position in self.a.range(row) {
                // SAFETY: promised by the caller.
                n += unsafe { self.copy(s, position, to_columns.add(n), to_sums.add(n)) };
            }
            end(row, n);
        }
        n
    }

    /// Adds a scaled row of B and flags its columns.
    ///
    /// # Safety
    /// The columns of B are in bounds of `sums` and `flags`.
    #[inline(always)]
    unsafe fn add_flagged<S: Ops<A>>(&self, s: S, position: usize, sums: *mut A, flags: *mut u8) {
        let (a, columns, values) = self.factor(position);
        if self.is_run(columns) {
            let start = columns[0] as usize;
            // SAFETY: the columns of the run are in bounds, as its last one is.
            let (sums, flags) = unsafe {
                (
                    std::slice::from_raw_parts_mut(sums.add(start), columns.len()),
                    std::slice::from_raw_parts_mut(flags.add(start), columns.len()),
                )
            };
            flags.fill(1);
            for (sum, b) in sums.iter_mut().zip(values) {
                *sum = s.mul_add(a, *b, *sum);
            }
            return;
        }
        for (j, b) in columns.iter().zip(values) {
            let j = *j as usize;
            // SAFETY: promised by the caller.
            unsafe {
                flags.add(j).write(1);
                *sums.add(j) = s.mul_add(a, *b, *sums.add(j));
            }
        }
    }

    /// Whether these columns of a row of B are consecutive and at least [`RUN`].
    #[inline(always)]
    pub fn is_run(&self, columns: &[u32]) -> bool {
        let n = columns.len();
        self.canonical && n >= RUN && (columns[n - 1] - columns[0]) as usize == n - 1
    }

    /// Adds a scaled row of B and lists the columns that the row of C did not have before.
    ///
    /// # Safety
    /// The columns of B are in bounds of `sums`, `flags` and `list`, which holds `n` columns.
    #[inline(always)]
    unsafe fn add_listed<S: Ops<A>>(
        &self,
        s: S,
        position: usize,
        sums: *mut A,
        flags: *mut u8,
        list: *mut u32,
        mut n: usize,
    ) -> usize {
        let (a, columns, values) = self.factor(position);
        for (j, b) in columns.iter().zip(values) {
            let j = *j as usize;
            // SAFETY: promised by the caller; a repeated column is overwritten by the next.
            unsafe {
                list.add(n).write(j as u32);
                n += usize::from(flags.add(j).replace(1) == 0);
                *sums.add(j) = s.mul_add(a, *b, *sums.add(j));
            }
        }
        n
    }

    /// Counts the entries of row `row` of C.
    pub fn count(&self, row: usize, accumulator: &mut Accumulator<A>) -> usize {
        let facts = self.facts(row);
        if self.is_copy(&facts) {
            return facts.products;
        }
        let span = facts.last.saturating_sub(facts.first) + 1;
        if span <= facts.products.saturating_mul(self.scan(facts.products)) {
            for position in self.a.range(row) {
                for j in self.factor(position).1 {
                    accumulator.flags[*j as usize] = 1;
                }
            }
            let flags = &mut accumulator.flags[facts.first..=facts.last];
            // Flags are 0 or 1, so the sum of 128 fits in a byte.
            let sums = flags.chunks(128).map(|some| usize::from(some.iter().sum::<u8>()));
            let n = sums.sum();
            flags.fill(0);
            return n;
        }
        let mut n = 0;
        for position in self.a.range(row) {
            for j in self.factor(position).1 {
                let flag = &mut accumulator.flags[*j as usize];
                accumulator.list[n] = *j;
                n += usize::from(std::mem::replace(flag, 1) == 0);
            }
        }
        for column in &accumulator.list[..n] {
            accumulator.flags[*column as usize] = 0;
        }
        n
    }
}
