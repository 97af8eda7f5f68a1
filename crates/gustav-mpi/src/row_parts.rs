//! Consecutive rows that are multiplied together: those that need nothing of other ranks while messages are in flight.

use std::ops::Range;

use gustav_core::buffer::try_vec;
use gustav_core::{Index, Pattern, Result};

use crate::blocks::Blocks;

/// Consecutive rows of this rank that are multiplied together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPart {
    /// The rows, counted from the first of the rank.
    pub rows: Range<usize>,
    /// Whether they need no rows of other ranks.
    pub is_early: bool,
}

impl RowPart {
    /// Positions of its nonzeros among those of the rank, whose rows begin at `offsets`.
    pub fn nonzeros<O: Index>(&self, offsets: &[O]) -> Range<usize> {
        let at = |row: usize| offsets.get(row).map_or(0, |o| o.to_usize());
        at(self.rows.start)..at(self.rows.end)
    }

    /// The pattern of its rows over `columns` columns, where `index` gives the column index of every nonzero of the
    /// rank.
    ///
    /// # Errors
    /// Those of `index`, as [`Pattern::new`], and [`gustav_core::Error::Overflow`].
    pub fn pattern<I: Index, O: Index, P: Index>(
        &self,
        offsets: &[O],
        columns: usize,
        index: impl Fn(usize) -> Result<I>,
    ) -> Result<Pattern<I, P>> {
        let nonzeros = self.nonzeros(offsets);
        let mut of_rows = try_vec::<P>(self.rows.len() + 1, "row offsets of some rows")?;
        for offset in offsets.get(self.rows.start..=self.rows.end).unwrap_or_default() {
            let offset = offset.to_usize() - nonzeros.start;
            of_rows.push(P::try_from_usize(offset, "row offsets of some rows")?);
        }
        let mut indices = try_vec::<I>(nonzeros.len(), "column indices of some rows")?;
        for at in nonzeros {
            indices.push(index(at)?);
        }
        Pattern::new(self.rows.len(), columns, of_rows, indices)
    }
}

/// The position of the largest of `work`, or 0.
pub fn largest(work: impl Iterator<Item = usize>) -> usize {
    work.enumerate().max_by_key(|(_, work)| *work).map_or(0, |(at, _)| at)
}

/// All `rows` rows, whose nonzeros are `blocks`, in parts, in order. One is early if it has at least `least` of the
/// work that `work` counts, and a quarter of all: else it would not repay a product of its own.
pub fn row_parts(
    blocks: &Blocks,
    rows: usize,
    least: u64,
    work: impl Fn(&RowPart) -> u64,
) -> Vec<RowPart> {
    let whole = RowPart { rows: 0..rows, is_early: false };
    if blocks.others.is_empty() {
        return vec![whole];
    }
    let early = RowPart { rows: longest_without(blocks, rows), is_early: true };
    let early_work = work(&early);
    if early_work < least || early_work < work(&whole).div_ceil(4) {
        return vec![whole];
    }
    let rest = |rows: Range<usize>| RowPart { rows, is_early: false };
    let (before, after) = (rest(0..early.rows.start), rest(early.rows.end..rows));
    [before, early, after].into_iter().filter(|part| !part.rows.is_empty()).collect()
}

/// The most consecutive rows without nonzeros in columns of other ranks.
fn longest_without(blocks: &Blocks, rows: usize) -> Range<usize> {
    let mut is_local = vec![true; rows];
    for block in &blocks.others {
        let rows = block.here.rows.iter().chain(&block.there.rows);
        rows.for_each(|row| is_local[*row as usize] = false);
    }
    let (mut best, mut first) = (0..0, 0);
    for (row, is_local) in is_local.into_iter().enumerate() {
        if !is_local {
            first = row + 1;
        } else if row + 1 - first > best.len() {
            best = first..row + 1;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use gustav_core::Pattern;

    use super::*;
    use crate::Partition;

    /// Parts of the rows of rank 0 of two that have half of the columns each; work is a row.
    fn parts(columns_of_rows: &[u32], least: u64) -> Vec<RowPart> {
        let rows = columns_of_rows.len();
        let offsets: Vec<u32> = (0..=rows as u32).collect();
        let pattern = Pattern::<u32, u32>::new(rows, 8, offsets, columns_of_rows.to_vec());
        let pattern = pattern.expect("a pattern");
        let here = |_: usize, columns: usize, _: &[(u32, u32)]| vec![true; columns];
        let columns = Partition::even(8, 2);
        let blocks = Blocks::new(&pattern.view(), 0..rows, &columns, 0, &here).expect("blocks");
        row_parts(&blocks, rows, least, |part| part.rows.len() as u64)
    }

    fn early(rows: &[RowPart]) -> Vec<(Range<usize>, bool)> {
        rows.iter().map(|part| (part.rows.clone(), part.is_early)).collect()
    }

    #[test]
    fn the_most_consecutive_local_rows_are_early() {
        let found = parts(&[0, 4, 1, 2, 3, 7], 1);
        assert_eq!(early(&found), [(0..2, false), (2..5, true), (5..6, false)]);
        assert_eq!(early(&parts(&[0, 1, 5], 1)), [(0..2, true), (2..3, false)]);
    }

    #[test]
    fn little_work_is_not_worth_a_part() {
        let whole = [(0..6, false)];
        assert_eq!(early(&parts(&[0, 4, 1, 2, 3, 7], 4)), whole);
        assert_eq!(early(&parts(&[4, 5, 6, 7, 0, 7], 2)), whole);
        // One of nine is less than a quarter.
        assert_eq!(early(&parts(&[4, 5, 6, 7, 0, 7, 4, 4, 4], 1)), [(0..9, false)]);
    }

    #[test]
    fn without_messages_there_is_one_part() {
        assert_eq!(early(&parts(&[0, 1, 2], 1)), [(0..3, false)]);
    }
}
