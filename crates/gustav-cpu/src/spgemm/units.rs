//! Divides the rows of C into units of about the same number of intermediate products.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use gustav_core::{Buffer, Error, IndexSlice, IndexType, Result, parallel};

use super::clusters::clustered;
use super::operands::{Indices, Right, Rows, with_indices};
use crate::schedule;

/// Consecutive rows of C that one thread computes together.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub rows: Range<usize>,
    /// Upper bound of the entries of its rows.
    pub bound: usize,
    pub products: u64,
    /// Whether some row of C combines several rows of B and so needs an accumulator.
    pub merges: bool,
    /// Most products of a row.
    pub longest: usize,
}

impl Unit {
    fn starting_at(row: usize) -> Self {
        Unit { rows: row..row, bound: 0, products: 0, merges: false, longest: 0 }
    }
}

// A unit's output stays in the level-2 cache until it is copied to C.
const MAX_BOUND: usize = 32 << 10;
const MAX_PRODUCTS: u64 = 256 << 10;

/// Facts about A and B that the algorithm uses.
pub(super) struct Analysis {
    pub units: Vec<Unit>,
    pub products: u64,
    /// Upper bound of the entries of C.
    pub bound: u128,
    /// Whether the columns of every row of B strictly increase.
    pub canonical: bool,
    /// Smallest and largest column of every row of B, where B is not canonical.
    pub ranges: Option<Buffer<[u32; 2]>>,
    /// Whether columns of B mostly have close neighbours.
    pub clustered: bool,
}

impl Analysis {
    /// Both patterns are read once. Columns of B are below 2^32.
    pub fn new(
        a: &Rows<IndexSlice<'_>>,
        b: &Right<'_, IndexSlice<'_>>,
        parts: usize,
    ) -> Result<Self> {
        let parts = with_indices!(a.offsets, |offsets| schedule::balanced_rows(offsets, parts, 1));
        let rows = |p: usize| parts[p].rows.clone();
        let cut = match (a.narrow(), b.narrow()) {
            (Some(a), Some(b)) => parallel::map(parts.len(), |p| cut_units(&a, &b, rows(p))),
            _ => parallel::map(parts.len(), |p| cut_units(a, b, rows(p))),
        };
        let mut units: Vec<Unit> = cut.into_iter().flatten().collect();
        let total: u128 = units.iter().map(|u| u128::from(u.products)).sum();
        let products = u64::try_from(total).map_err(|_| Error::Overflow {
            what: "intermediate products",
            need: total,
            index_type: IndexType::U64,
        })?;
        let canonical = is_canonical(b);
        if !canonical {
            units.iter_mut().for_each(|unit| unit.merges = true);
        }
        Ok(Analysis {
            products,
            bound: units.iter().map(|u| u.bound as u128).sum(),
            units,
            canonical,
            clustered: clustered(a, b),
            ranges: if canonical { None } else { Some(column_ranges(b)?) },
        })
    }
}

fn cut_units<X: Indices>(a: &Rows<X>, b: &Right<'_, X>, rows: Range<usize>) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut unit = Unit::starting_at(rows.start);
    for row in rows {
        let entries = a.range(row);
        if entries.is_empty() {
            unit.rows.end = row + 1;
            continue;
        }
        let (mut products, mut filled) = (0, 0);
        for position in entries {
            // SAFETY: a nonzero of A, whose columns are rows of B.
            let range = unsafe { b.offsets.row_unchecked(a.columns.at_unchecked(position)) };
            let len = range.len() as u64;
            products += len;
            filled += usize::from(len > 0);
        }
        let bound = products.min(b.ncols as u64) as usize;
        let full = unit.bound + bound > MAX_BOUND || unit.products + products > MAX_PRODUCTS;
        if full && !unit.rows.is_empty() {
            units.push(std::mem::replace(&mut unit, Unit::starting_at(row)));
        }
        unit.rows.end = row + 1;
        unit.bound += bound;
        unit.products += products;
        unit.merges |= filled > 1;
        unit.longest = unit.longest.max(usize::try_from(products).unwrap_or(usize::MAX));
    }
    if !unit.rows.is_empty() {
        units.push(unit);
    }
    units
}

/// Intermediate products of A and of B with these row offsets.
pub(super) fn products(a: &Rows<IndexSlice<'_>>, offsets: IndexSlice<'_>) -> u64 {
    let nnz = if a.nrows == 0 { 0 } else { a.range(a.nrows - 1).end };
    (0..nnz).map(|position| offsets.row(a.column(position)).len() as u64).sum()
}

/// Whether columns decrease or repeat only from one row to the next, never within a row.
fn is_canonical(b: &Right<'_, IndexSlice<'_>>) -> bool {
    let canonical = AtomicBool::new(true);
    parallel::ranges(b.nrows, 1024, |rows| {
        let (first, end) = (b.offsets.row(rows.start).start, b.offsets.row(rows.end - 1).end);
        let columns = &b.columns[first..end];
        let steps = columns.iter().zip(columns.get(1..).unwrap_or_default());
        let descents: usize = steps.map(|(left, right)| usize::from(left >= right)).sum();
        if descents == 0 {
            return;
        }
        let at_starts: usize = rows
            .skip(1)
            .map(|row| {
                let Range { start, end } = b.offsets.row(row);
                let at = start - first;
                usize::from(0 < at && start < end && columns[at - 1] >= columns[at])
            })
            .sum();
        if descents != at_starts {
            canonical.store(false, Ordering::Relaxed);
        }
    });
    canonical.into_inner()
}

fn column_ranges(b: &Right<'_, IndexSlice<'_>>) -> Result<Buffer<[u32; 2]>> {
    let mut ranges = Buffer::<[u32; 2]>::zeroed(b.nrows, "column ranges of B")?;
    parallel::each_mut(&mut ranges, 1024, |r, range| {
        let columns = b.row(r);
        let least = columns.iter().min().map_or(0, |c| *c);
        let most = columns.iter().max().map_or(0, |c| *c);
        *range = [least, most];
    });
    Ok(ranges)
}
