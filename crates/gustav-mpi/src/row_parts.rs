//! Consecutive rows that are multiplied together, as soon as what they need of other ranks has arrived.

use std::ops::Range;

use gustav_core::buffer::try_vec;
use gustav_core::{Index, Pattern, Result};

use crate::blocks::Blocks;

/// Consecutive rows of this rank that are multiplied together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPart {
    /// The rows, counted from the first of the rank.
    pub rows: Range<usize>,
    /// The other ranks that have columns of theirs, increasing.
    pub needs: Vec<usize>,
}

impl RowPart {
    /// Positions of its nonzeros among those of the rank, whose rows begin at `offsets`.
    pub fn nonzeros<O: Index>(&self, offsets: &[O]) -> Range<usize> {
        nonzeros_of(&self.rows, offsets)
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

/// Positions of the nonzeros of `rows` among those of all rows, which begin at `offsets`.
pub fn nonzeros_of<O: Index>(rows: &Range<usize>, offsets: &[O]) -> Range<usize> {
    let at = |row: usize| offsets.get(row).map_or(0, |o| o.to_usize());
    at(rows.start)..at(rows.end)
}

/// The position of the largest of `work`, or 0.
pub fn largest(work: impl Iterator<Item = usize>) -> usize {
    work.enumerate().max_by_key(|(_, work)| *work).map_or(0, |(at, _)| at)
}

/// All `rows` rows, whose nonzeros are `blocks`, in parts, in order: the consecutive rows with most work that need
/// nothing of other ranks, rows that need the same one rank, and what is between them. The first two are parts of
/// their own if they have at least `least` of the work that `work` counts, and a quarter of all: else they would not
/// repay a product.
pub fn row_parts(
    blocks: &Blocks,
    rows: usize,
    least: u64,
    work: &dyn Fn(&Range<usize>) -> u64,
) -> Vec<RowPart> {
    let needs = needs_of_rows(blocks, rows);
    let all = work(&(0..rows));
    let is_worth = |rows: &Range<usize>| {
        let work = work(rows);
        work >= least && work >= all.div_ceil(4)
    };
    let local = runs(0..rows, |row| needs[row], |needs| matches!(needs, Needs::Nothing));
    let early = local.into_iter().rev().max_by_key(|rows| work(rows)).filter(is_worth);
    let mut cuts: Vec<Range<usize>> = early.iter().cloned().collect();
    let early = early.unwrap_or(0..0);
    for rest in [0..early.start, early.end..rows] {
        let of_one_rank = runs(rest, |row| needs[row], |needs| !matches!(needs, Needs::Several));
        // Plans rely on one part at most that needs nothing.
        let needs_one = |rows: &Range<usize>| rows.clone().any(|row| needs[row] != Needs::Nothing);
        cuts.extend(of_one_rank.into_iter().filter(needs_one).filter(is_worth));
    }
    cuts.sort_by_key(|rows| rows.start);
    let (mut parts, mut first) = (Vec::new(), 0);
    for cut in cuts {
        parts.extend([first..cut.start, cut.clone()]);
        first = cut.end;
    }
    parts.push(first..rows);
    // A rank without rows has a part without rows.
    parts.retain(|part| !part.is_empty() || rows == 0);
    let parts = parts.into_iter().map(|rows| RowPart { rows, needs: Vec::new() });
    with_needs(parts.collect(), blocks)
}

/// The other ranks that have columns of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    One(usize),
    Several,
}

impl Needs {
    /// Those of rows with these needs together.
    fn and(self, other: Needs) -> Needs {
        match (self, other) {
            (needs, Needs::Nothing) | (Needs::Nothing, needs) => needs,
            (Needs::One(a), Needs::One(b)) if a == b => self,
            _ => Needs::Several,
        }
    }
}

fn needs_of_rows(blocks: &Blocks, rows: usize) -> Vec<Needs> {
    let mut needs = vec![Needs::Nothing; rows];
    for block in &blocks.others {
        for row in block.here.rows.iter().chain(&block.there.rows) {
            let needs = &mut needs[*row as usize];
            *needs = needs.and(Needs::One(block.peer));
        }
    }
    needs
}

/// The longest ranges of `rows`, from the first on, whose needs together are `allowed`.
fn runs(
    rows: Range<usize>,
    needs_of: impl Fn(usize) -> Needs,
    allowed: impl Fn(Needs) -> bool,
) -> Vec<Range<usize>> {
    let (mut found, mut first, mut needs) = (Vec::new(), rows.start, Needs::Nothing);
    for row in rows.clone() {
        let both = needs.and(needs_of(row));
        if allowed(both) {
            needs = both;
            continue;
        }
        found.push(first..row);
        let alone = needs_of(row);
        (first, needs) = if allowed(alone) { (row, alone) } else { (row + 1, Needs::Nothing) };
    }
    found.push(first..rows.end);
    found.retain(|rows| !rows.is_empty());
    found
}

/// `parts`, which are all rows in order, with what they need.
fn with_needs(mut parts: Vec<RowPart>, blocks: &Blocks) -> Vec<RowPart> {
    for block in &blocks.others {
        for rows in [&block.here.rows, &block.there.rows] {
            let mut part = 0;
            for row in rows {
                while parts[part].rows.end <= *row as usize {
                    part += 1;
                }
                let needs = &mut parts[part].needs;
                if needs.last() != Some(&block.peer) {
                    needs.push(block.peer);
                }
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use gustav_core::Pattern;

    use super::*;
    use crate::Partition;

    /// Parts of the rows of rank 0 of `ranks` that have four columns each; work is a row.
    fn parts(rows: &[&[u32]], ranks: usize, least: u64) -> Vec<(Range<usize>, Vec<usize>)> {
        parts_by(rows, ranks, least, |rows| rows.len() as u64)
    }

    /// The same with another measure of work.
    fn parts_by(
        rows: &[&[u32]],
        ranks: usize,
        least: u64,
        work: impl Fn(&Range<usize>) -> u64,
    ) -> Vec<(Range<usize>, Vec<usize>)> {
        let mut offsets = vec![0_u32];
        rows.iter().for_each(|row| offsets.push(offsets[offsets.len() - 1] + row.len() as u32));
        let columns = Partition::even(4 * ranks, ranks);
        let pattern = Pattern::<u32, u32>::new(rows.len(), 4 * ranks, offsets, rows.concat());
        let pattern = pattern.expect("a pattern");
        let here = |_: usize, columns: usize, _: &[(u32, u32)]| vec![true; columns];
        let blocks = Blocks::new(&pattern.view(), 0..rows.len(), &columns, 0, &here);
        let blocks = blocks.expect("blocks");
        let parts = row_parts(&blocks, rows.len(), least, &work);
        parts.into_iter().map(|part| (part.rows, part.needs)).collect()
    }

    #[test]
    fn the_local_rows_with_most_work_are_a_part() {
        let found = parts(&[&[0], &[4], &[1], &[2], &[3], &[7]], 2, 1);
        assert_eq!(found, [(0..2, vec![1]), (2..5, vec![]), (5..6, vec![1])]);
        assert_eq!(parts(&[&[0], &[1], &[5]], 2, 1), [(0..2, vec![]), (2..3, vec![1])]);
    }

    #[test]
    fn rows_without_work_are_not_preferred() {
        let rows: [&[u32]; 6] = [&[0, 1, 2], &[4], &[], &[], &[], &[5]];
        let nonzeros =
            |range: &Range<usize>| rows[range.clone()].iter().map(|r| r.len() as u64).sum();
        let expected = [(0..1, vec![]), (1..6, vec![1])];
        assert_eq!(parts_by(&rows, 2, 1, nonzeros), expected);
    }

    #[test]
    fn rows_that_need_one_rank_are_a_part() {
        let found = parts(&[&[4], &[0, 5], &[5, 9], &[0], &[9], &[10, 1]], 3, 1);
        assert_eq!(found, [(0..2, vec![1]), (2..3, vec![1, 2]), (3..6, vec![2])]);
        // Rows that need nothing go with those before them.
        let found = parts(&[&[4], &[0], &[9], &[9]], 3, 2);
        assert_eq!(found, [(0..2, vec![1]), (2..4, vec![2])]);
    }

    #[test]
    fn one_part_at_most_needs_nothing() {
        let rows: [&[u32]; 8] = [&[4, 9], &[0], &[1], &[4, 9], &[2], &[3], &[0], &[4, 9]];
        let several = vec![1, 2];
        let expected = [(0..4, several.clone()), (4..7, vec![]), (7..8, several)];
        assert_eq!(parts(&rows, 3, 1), expected);
    }

    #[test]
    fn little_work_is_not_worth_a_part() {
        let rows: [&[u32]; 6] = [&[0, 4, 9], &[4, 9], &[1], &[2], &[3], &[7, 9]];
        assert_eq!(parts(&rows, 3, 4), [(0..6, vec![1, 2])]);
        // One of nine is less than a quarter.
        let rows: [&[u32]; 9] =
            [&[4, 9], &[5, 9], &[6, 9], &[7, 9], &[0], &[7, 9], &[4, 9], &[4, 9], &[4, 9]];
        assert_eq!(parts(&rows, 3, 1), [(0..9, vec![1, 2])]);
    }

    #[test]
    fn without_messages_there_is_one_part() {
        assert_eq!(parts(&[&[0], &[1], &[2]], 2, 1), [(0..3, vec![])]);
        assert_eq!(parts(&[], 2, 1), [(0..0, vec![])]);
    }
}
