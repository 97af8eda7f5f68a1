//! The nonzeros of one rank's rows, by the rank that has their columns.

use gustav_core::buffer::try_vec;
use gustav_core::{Error, Index, Pattern, PatternView, Result, parallel};

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

/// What a block is made of: what has to be sent for it follows from these numbers.
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
pub type Choose<'c> = dyn Fn(usize, usize, &[(u32, u32)]) -> Vec<bool> + Sync + 'c;

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
        let base = pattern.offsets().get(rows.start).map_or(0, |o| o.to_usize());
        let counts = count_by_owner(pattern, rows.clone(), columns)?;
        let mut own = Part::with_capacity(rows.len(), counts[rank])?;
        let mut row_now = 0;
        let others = RemoteNonzeros::new(
            pattern,
            rows.clone(),
            columns,
            (rank, counts),
            |row, column, position| (row, column, position - base),
            |row, column, position| {
                while row_now < row {
                    own.offsets.push(own.columns.len() as u64);
                    row_now += 1;
                }
                own.columns.push(column);
                own.positions.push(position - base);
            },
        )?;
        own.offsets.resize(rows.len() + 1, own.columns.len() as u64);
        own.rows.extend(0..rows.len() as u32);
        let others = others.each().map(|(q, entries)| Block::new(q, entries, choose));
        Ok(Blocks { own, others: others.collect::<Result<_>>()? })
    }
}

/// A block that is only counted.
pub struct CountedBlock {
    /// The rank that has the columns.
    pub peer: usize,
    /// What the block is made of.
    pub counts: Counts,
    /// Columns whose nonzeros are multiplied on the rank of the rows, increasing.
    pub columns: Vec<u32>,
    /// Rows with a nonzero that is multiplied on the rank of the columns, increasing.
    pub rows: Vec<u32>,
}

/// Counts the nonzeros of rows `rows` of `pattern` whose columns `rank` has, and the blocks of other ranks, in rank
/// order. It needs 8 bytes for a nonzero of other ranks, and for a block, of which each thread has one at a time,
/// some 30.
///
/// # Errors
/// As [`Blocks::new`].
pub fn count<I: Index, O: Index>(
    pattern: &PatternView<'_, I, O>,
    rows: std::ops::Range<usize>,
    columns: &Partition,
    rank: usize,
    choose: &Choose<'_>,
) -> Result<(usize, Vec<CountedBlock>)> {
    let counts = count_by_owner(pattern, rows.clone(), columns)?;
    let own = counts[rank];
    let counts = (rank, counts);
    let entry = |row, column, _| (row, column);
    let others = RemoteNonzeros::new(pattern, rows, columns, counts, entry, |_, _, _| {})?;
    let blocks: Vec<(usize, &[(u32, u32)])> = others.each().collect();
    let counted = parallel::map(blocks.len(), |k| {
        let (peer, entries) = blocks[k];
        let Numbered { rows, mut columns, edges, take } =
            Numbered::new(entries.iter().copied(), choose)?;
        let all = columns.len();
        let mut number = 0;
        columns.retain(|_| {
            number += 1;
            take[number - 1]
        });
        let (mut rows_there, mut nonzeros_there) = (Vec::new(), 0);
        let numbered = entries.iter().zip(&edges);
        for ((row, _), _) in numbered.filter(|(_, (_, column))| !take[*column as usize]) {
            nonzeros_there += 1;
            if rows_there.last() != Some(row) {
                rows_there.push(*row);
            }
        }
        let counts = Counts {
            rows,
            columns: all,
            nonzeros: entries.len(),
            columns_here: columns.len(),
            rows_there: rows_there.len(),
            nonzeros_there,
        };
        Ok(CountedBlock { peer, counts, columns, rows: rows_there })
    });
    Ok((own, counted.into_iter().collect::<Result<_>>()?))
}

/// How many nonzeros of rows `rows` are in the columns of each rank.
fn count_by_owner<I: Index, O: Index>(
    pattern: &PatternView<'_, I, O>,
    rows: std::ops::Range<usize>,
    columns: &Partition,
) -> Result<Vec<usize>> {
    fits("rows", rows.len())?;
    (0..columns.ranks()).try_for_each(|q| fits("columns", columns.count(q)))?;
    let mut counts = vec![0_usize; columns.ranks()];
    each_owned(pattern, rows, columns, |owner, _, _, _| counts[owner] += 1);
    Ok(counts)
}

/// Nonzeros of a rank whose columns others have: rank by rank, in the order of the rows.
struct RemoteNonzeros<E> {
    entries: Vec<E>,
    ends: Vec<usize>,
}

impl<E: Copy + Default> RemoteNonzeros<E> {
    /// Sorts the nonzeros of `rows` whose columns `rank` does not have, as `entry` describes them; `own` is called with
    /// row, column and position of the others. `counts` are those of [`count_by_owner`].
    fn new<I: Index, O: Index>(
        pattern: &PatternView<'_, I, O>,
        rows: std::ops::Range<usize>,
        columns: &Partition,
        (rank, mut counts): (usize, Vec<usize>),
        entry: impl Fn(u32, u32, usize) -> E,
        mut own: impl FnMut(usize, u32, usize),
    ) -> Result<Self> {
        counts[rank] = 0;
        let mut ends = vec![0; counts.len() + 1];
        counts.iter().enumerate().for_each(|(q, count)| ends[q + 1] = ends[q] + count);
        let remote = ends[counts.len()];
        let mut entries = try_vec::<E>(remote, "nonzeros of other ranks")?;
        entries.resize(remote, E::default());
        let mut at = ends.clone();
        each_owned(pattern, rows, columns, |owner, row, column, position| {
            if owner == rank {
                own(row, column, position);
            } else {
                entries[at[owner]] = entry(row as u32, column, position);
                at[owner] += 1;
            }
        });
        Ok(RemoteNonzeros { entries, ends })
    }

    /// Ranks that have columns of some, and these.
    fn each(&self) -> impl Iterator<Item = (usize, &[E])> {
        let blocks = self.ends.windows(2).enumerate();
        blocks
            .filter(|(_, ends)| ends[0] < ends[1])
            .map(|(q, ends)| (q, &self.entries[ends[0]..ends[1]]))
    }
}

/// A block with rows and columns numbered without gaps.
struct Numbered {
    /// Number of rows.
    rows: usize,
    /// The columns, increasing.
    columns: Vec<u32>,
    /// The nonzeros as (row, column), row by row.
    edges: Vec<(u32, u32)>,
    /// Which columns are multiplied where the rows are.
    take: Vec<bool>,
}

impl Numbered {
    fn new(
        entries: impl ExactSizeIterator<Item = (u32, u32)> + Clone,
        choose: &Choose<'_>,
    ) -> Result<Self> {
        let (columns, number) = number(entries.clone().map(|(_, column)| column))?;
        let mut edges = try_vec::<(u32, u32)>(entries.len(), "nonzeros of other ranks")?;
        let (mut rows, mut last) = (0_u32, None);
        for (row, column) in entries {
            if last.replace(row).is_some_and(|last| last != row) {
                rows += 1;
            }
            let column = match &number {
                Some(number) => number[column as usize],
                None => columns.partition_point(|c| *c < column) as u32,
            };
            edges.push((rows, column));
        }
        let rows = if edges.is_empty() { 0 } else { rows as usize + 1 };
        let take = choose(rows, columns.len(), &edges);
        Ok(Numbered { rows, columns, edges, take })
    }
}

/// The different numbers among `numbers`, increasing, and the position of each where a table of that is no larger than
/// the list.
fn number(
    numbers: impl ExactSizeIterator<Item = u32> + Clone,
) -> Result<(Vec<u32>, Option<Vec<u32>>)> {
    const ABSENT: u32 = u32::MAX;
    let len = numbers.len();
    let bound = numbers.clone().max().map_or(0, |n| n as usize + 1);
    if bound > len {
        let mut list = try_vec(len, "columns of other ranks")?;
        list.extend(numbers);
        list.sort_unstable();
        list.dedup();
        return Ok((list, None));
    }
    let mut table = try_vec::<u32>(bound, "columns of other ranks")?;
    table.resize(bound, ABSENT);
    numbers.for_each(|n| table[n as usize] = 0);
    let mut list = Vec::new();
    for (n, position) in table.iter_mut().enumerate().filter(|(_, p)| **p != ABSENT) {
        *position = list.len() as u32;
        list.push(n as u32);
    }
    Ok((list, Some(table)))
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
        let Numbered { rows, mut columns, edges, take } =
            Numbered::new(entries.iter().map(|(row, column, _)| (*row, *column)), choose)?;
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
