//! `masked`: the entries of C = α·op(A)·B at positions of a given pattern. A hash table holds the
//! columns of a row of the mask; products whose column is not found in it are left out.

use std::ops::Range;

use gustav_core::buffer::try_vec;
use gustav_core::{AnyPattern, Arith, Index, IndexSlice, IndexType, Ops, Result, Scalar, parallel};

use super::operands::{Product, Rows, with_indices};
use super::rows::{RowBlock, joined, joined_values};

// Blocks of rows for every thread, and the fewest rows of a block.
const BLOCKS: usize = 8;
const LEAST: usize = 64;

/// The operands of a product under a mask. Values have the type of sums.
pub(super) struct Job<'a, A> {
    /// op(A).
    pub a: Rows<IndexSlice<'a>>,
    pub a_values: &'a [A],
    pub alpha: A,
    pub b: Rows<IndexSlice<'a>>,
    pub b_values: &'a [A],
    pub mask: Rows<IndexSlice<'a>>,
    pub drop_zeros: bool,
}

/// Computes C, whose pattern is `known` after the first product: a mask entry without an
/// intermediate product is no entry of C.
///
/// # Errors
/// [`gustav_core::Error::Overflow`] when the entries of C outnumber the offset type,
/// [`gustav_core::Error::OutOfMemory`].
pub(super) fn multiply<S: Ops<A>, A: Arith, U: Scalar<Accum = A>>(
    s: S,
    job: &Job<'_, A>,
    types: (IndexType, IndexType),
    known: Option<&AnyPattern<'static>>,
) -> Result<Product<U>> {
    let nrows = job.mask.nrows;
    let count = (nrows / LEAST).clamp(1, BLOCKS * parallel::threads());
    let cut = |k: usize| nrows * k / count;
    let blocks = parallel::map(count, |k| job.rows(s, cut(k)..cut(k + 1)));
    let blocks = blocks.into_iter().collect::<Result<Vec<_>>>()?;
    match known {
        Some(known) => Ok(Product { pattern: known.clone(), values: joined_values(&blocks)? }),
        // SAFETY: columns are those of the mask, and blocks follow one another.
        None => unsafe { joined(&blocks, (nrows, job.mask.ncols), types) },
    }
}

/// The columns of one row of the mask, increasing, and their sums.
struct Table<A> {
    columns: Vec<usize>,
    sums: Vec<Option<A>>,
    /// By hash of a column its position in `columns` plus one, 0 if empty; the length is a power of
    /// two, at least twice the number of columns.
    slots: Vec<usize>,
}

impl<A: Copy> Table<A> {
    fn new(most: usize) -> Result<Self> {
        let what = "hash table of a mask's row";
        let mut slots = try_vec(2 * most.max(1).next_power_of_two(), what)?;
        slots.resize(slots.capacity(), 0);
        Ok(Table { columns: try_vec(most, what)?, sums: try_vec(most, what)?, slots })
    }

    /// Replaces the columns by those of the next row.
    fn set(&mut self, columns: impl Iterator<Item = usize>) {
        self.columns.clear();
        self.columns.extend(columns);
        if !self.columns.is_sorted_by(|left, right| left < right) {
            self.columns.sort_unstable();
            self.columns.dedup();
        }
        self.sums.clear();
        self.sums.resize(self.columns.len(), None);
        let len = 2 * self.columns.len().max(1).next_power_of_two();
        self.slots.resize(len, 0);
        self.slots.fill(0);
        for position in 0..self.columns.len() {
            let mut at = self.hash(self.columns[position]);
            while self.slots[at] != 0 {
                at = (at + 1) & (len - 1);
            }
            self.slots[at] = position + 1;
        }
    }

    fn hash(&self, column: usize) -> usize {
        let bits = self.slots.len().trailing_zeros();
        let product = (column as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (product >> (64 - bits)) as usize
    }

    /// The sum of `column`, if the mask has it.
    fn at(&mut self, column: usize) -> Option<&mut Option<A>> {
        let mut at = self.hash(column);
        loop {
            match self.slots[at] {
                0 => return None,
                slot if self.columns[slot - 1] == column => return self.sums.get_mut(slot - 1),
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }
}

impl<A: Arith> Job<'_, A> {
    fn rows<S: Ops<A>, U: Scalar<Accum = A>>(
        &self,
        s: S,
        rows: Range<usize>,
    ) -> Result<RowBlock<U>> {
        let length = |row| self.mask.range(row).len();
        let mut table = Table::new(rows.clone().map(length).max().unwrap_or(0))?;
        let mut out = RowBlock::new(rows.len(), rows.clone().map(length).sum())?;
        for row in rows {
            let start = out.columns.len();
            let range = self.mask.range(row);
            if !range.is_empty() {
                table.set(range.map(|at| self.mask.column(at)));
                self.add_products(s, row, &mut table);
            }
            for (column, sum) in table.columns.drain(..).zip(&table.sums) {
                let Some(value) = sum.map(|sum| s.scale(self.alpha, sum)) else { continue };
                if !self.drop_zeros || value != s.zero() {
                    out.columns.push(column as u64);
                    out.values.push(U::from_accum(value));
                }
            }
            out.lengths.push(out.columns.len() - start);
        }
        Ok(out)
    }

    fn add_products<S: Ops<A>>(&self, s: S, row: usize, table: &mut Table<A>) {
        for position in self.a.range(row) {
            let a = self.a_values[position];
            let range = self.b.range(self.a.column(position));
            let values = &self.b_values[range.clone()];
            with_indices!(self.b.columns, |columns| add_row(s, a, &columns[range], values, table));
        }
    }
}

/// Adds a scaled row of B, in the columns of the mask alone.
#[inline(always)]
fn add_row<S: Ops<A>, A: Arith, J: Index>(
    s: S,
    a: A,
    columns: &[J],
    values: &[A],
    table: &mut Table<A>,
) {
    for (j, b) in columns.iter().zip(values) {
        if let Some(sum) = table.at(j.to_usize()) {
            *sum = Some(s.mul_add(a, *b, sum.unwrap_or(s.zero())));
        }
    }
}
