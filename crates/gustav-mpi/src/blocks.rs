//! The nonzeros of one rank's rows, by the rank that has their columns.

use gustav_core::buffer::try_vec;
use gustav_core::{Error, Index, Pattern, PatternView, Result};

use crate::Partition;

/// Some nonzeros of a rank: rows that have one, with columns, and where their values are.
#[derive(Debug)]
pub struct Part {
    /// The rows, counted from the first of the rank, increasing.
    pub rows: Vec<u32>,
    /// Offsets of the rows, one more than there are rows.
    pub offsets: Vec<u64>,
    /// Columns, counted from the first of the rank that has them.
    pub columns: Vec<u32>,
    /// Positions of the values among those of the rank.
    pub positions: Vec<usize>,
}

/// The nonzeros of a rank whose columns another rank has.
#[derive(Debug)]
pub struct Block {
    /// The rank that has the columns.
    pub peer: usize,
    /// What the block is made of.
    pub counts: Counts,
    /// Columns whose nonzeros are multiplied on the rank of the rows, increasing.
    pub columns: Vec<u32>,
    /// Nonzeros in these columns.
    pub here: Part,
    /// The other nonzeros: those multiplied on the rank of the columns.
    pub there: Part,
}

/// What a block is made of: what has to travel for it follows from these numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows with a nonzero.
    pub rows: usize,
    /// Columns with a nonzero.
    pub columns: usize,
    /// Nonzeros.
    pub nonzeros: usize,
    /// Columns that are multiplied where the rows are.
    pub columns_here: usize,
    /// Rows with a nonzero that is multiplied where the columns are.
    pub rows_there: usize,
    /// Nonzeros that are multiplied where the columns are.
    pub nonzeros_there: usize,
}

/// Which columns of a block are multiplied where the rows are: given its rows, its columns, and its nonzeros as (row,
/// column), row by row, both numbered without gaps.
pub type Choose<'c> = dyn Fn(usize, usize, &[(u32, u32)]) -> Vec<bool> + 'c;

/// All nonzeros of a rank.
#[derive(Debug)]
pub struct Blocks {
    /// Those whose columns it has itself, of all rows.
    pub own: Part,
    /// Those of other ranks that have some, in rank order.
    pub others: Vec<Block>,
}

/// `count` as a number of rows or columns of one rank.
pub fn fits(what: &str, count: usize) -> Result<()> {
    if u32::try_from(count).is_ok() {
        return Ok(());
    }
    Err(Error::Unsupported {
        problem: format!("{count} {what} on one rank"),
        backend: "a product over ranks".into(),
        reason: "rows and columns of one rank are numbered in u32".into(),
        nearest: "more ranks".into(),
    })
}

impl Blocks {
    /// The nonzeros of rows `rows` of `pattern` by the ranks that have their columns; `rank` has the rows.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when a rank has more than 2³² rows or columns, [`Error::OutOfMemory`].
    pub fn new<I: Index, O: Index>(
        pattern: &PatternView<'_, I, O>,
        rows: std::ops::Range<usize>,
        columns: &Partition,
        rank: usize,
        choose: &Choose<'_>,
    ) -> Result<Self> {
        fits("rows", rows.len())?;
        (0..columns.ranks()).try_for_each(|q| fits("columns", columns.count(q)))?;
        let base = pattern.offsets().get(rows.start).map_or(0, |o| o.to_usize());
        let mut counts = vec![0_usize; columns.ranks()];
        each_owned(pattern, rows.clone(), columns, |owner, _, _, _| counts[owner] += 1);
        let own_count = std::mem::take(&mut counts[rank]);

        // Nonzeros of other ranks, rank by rank, in the order of the rows.
        let mut ends = vec![0; counts.len() + 1];
        counts.iter().enumerate().for_each(|(q, count)| ends[q + 1] = ends[q] + count);
        let foreign = ends[counts.len()];
        let mut entries = try_vec::<(u32, u32, usize)>(foreign, "nonzeros of other ranks")?;
        entries.resize(foreign, (0, 0, 0));
        let mut own = Part::with_capacity(rows.len(), own_count)?;
        let mut at = ends.clone();
        let mut row_now = 0;
        each_owned(pattern, rows.clone(), columns, |owner, row, column, position| {
            if owner == rank {
                while row_now < row {
                    own.offsets.push(own.columns.len() as u64);
                    row_now += 1;
                }
                own.columns.push(column);
                own.positions.push(position - base);
            } else {
                entries[at[owner]] = (row as u32, column, position - base);
                at[owner] += 1;
            }
        });
        own.offsets.resize(rows.len() + 1, own.columns.len() as u64);
        own.rows.extend(0..rows.len() as u32);
        let blocks = (0..counts.len()).filter(|q| counts[*q] > 0);
        let others = blocks.map(|q| Block::new(q, &entries[ends[q]..ends[q + 1]], choose));
        Ok(Blocks { own, others: others.collect::<Result<_>>()? })
    }
}

/// Calls `visit` with owner, row, column of the owner and position of every nonzero of `rows`, row by row.
fn each_owned<I: Index, O: Index>(
    pattern: &PatternView<'_, I, O>,
    rows: std::ops::Range<usize>,
    columns: &Partition,
    mut visit: impl FnMut(usize, usize, u32, usize),
) {
    // Neighbouring nonzeros are often of one rank.
    let (mut owner, mut range) = (0, 0..0);
    for (row, stored) in rows.enumerate() {
        for position in pattern.row_range(stored) {
            let column = pattern.indices()[position].to_usize();
            if !range.contains(&column) {
                owner = columns.owner(column);
                range = columns.range(owner);
            }
            visit(owner, row, (column - range.start) as u32, position);
        }
    }
}

impl Block {
    fn new(peer: usize, entries: &[(u32, u32, usize)], choose: &Choose<'_>) -> Result<Self> {
        let mut columns = try_vec(entries.len(), "columns of other ranks")?;
        columns.extend(entries.iter().map(|(_, column, _)| *column));
        columns.sort_unstable();
        columns.dedup();
        let mut edges = try_vec::<(u32, u32)>(entries.len(), "nonzeros of other ranks")?;
        let (mut rows, mut last) = (0_u32, None);
        for (row, column, _) in entries {
            if last.replace(*row).is_some_and(|last| last != *row) {
                rows += 1;
            }
            // It is among them.
            edges.push((rows, columns.partition_point(|c| c < column) as u32));
        }
        let rows = rows as usize + 1;
        let take = choose(rows, columns.len(), &edges);
        let is_here = |k: &usize| take[edges[*k].1 as usize];
        let here = Part::of(entries, (0..entries.len()).filter(is_here))?;
        let there = Part::of(entries, (0..entries.len()).filter(|k| !is_here(k)))?;
        let all = columns.len();
        let mut number = 0;
        columns.retain(|_| {
            number += 1;
            take[number - 1]
        });
        let counts = Counts {
            rows,
            columns: all,
            nonzeros: entries.len(),
            columns_here: columns.len(),
            rows_there: there.rows.len(),
            nonzeros_there: there.columns.len(),
        };
        Ok(Block { peer, counts, columns, here, there })
    }
}

impl Part {
    fn with_capacity(rows: usize, nonzeros: usize) -> Result<Self> {
        let mut offsets = try_vec(rows + 1, "row offsets")?;
        offsets.push(0);
        Ok(Part {
            rows: try_vec(rows, "rows")?,
            offsets,
            columns: try_vec(nonzeros, "column indices")?,
            positions: try_vec(nonzeros, "positions of values")?,
        })
    }

    /// The nonzeros with these numbers, which increase, of `entries` in the order of rows.
    fn of(entries: &[(u32, u32, usize)], numbers: impl Iterator<Item = usize>) -> Result<Self> {
        let mut part = Part::with_capacity(0, 0)?;
        for k in numbers {
            let (row, column, position) = entries[k];
            if part.rows.last() != Some(&row) {
                part.rows.push(row);
                part.offsets.push(0);
            }
            part.columns.push(column);
            part.positions.push(position);
            // The end of the last row.
            *part.offsets.last_mut().unwrap_or(&mut 0) = part.columns.len() as u64;
        }
        Ok(part)
    }

    /// The pattern over `columns` columns.
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub fn pattern(&self, columns: usize) -> Result<Pattern<u32, u64>> {
        Pattern::new(self.rows.len(), columns, self.offsets.clone(), self.columns.clone())
    }
}
