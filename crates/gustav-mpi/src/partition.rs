//! Which rows each rank has.

use std::sync::Arc;

use gustav_core::{Error, Index, PatternView, Result};

/// Consecutive rows for each rank: rank r has rows `offsets[r]` to `offsets[r + 1]` − 1, perhaps none. A clone costs
/// a reference count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    offsets: Arc<[usize]>,
}

impl Partition {
    /// The partition with these row offsets of ranks: from 0 to the number of rows, one more than there are ranks.
    ///
    /// # Errors
    /// [`Error::Argument`] unless they begin with 0, do not decrease, and are at least two.
    pub fn new(offsets: impl Into<Arc<[usize]>>) -> Result<Self> {
        let offsets = offsets.into();
        if offsets.len() < 2 || offsets[0] != 0 || !offsets.is_sorted() {
            return Err(Error::Argument {
                name: "row offsets of ranks",
                found: format!("{offsets:?}"),
                expected: "0, then the end of every rank's rows, none before the last".into(),
            });
        }
        Ok(Partition { offsets })
    }

    /// The partition in which rank r has `rows[r]` rows.
    ///
    /// # Errors
    /// [`Error::Argument`] when there are no ranks or the sum passes `usize`.
    pub fn of_counts(rows: &[usize]) -> Result<Self> {
        let mut offsets = vec![0_usize];
        for count in rows {
            let end = offsets[offsets.len() - 1].checked_add(*count);
            offsets.push(end.ok_or_else(|| Error::Argument {
                name: "rows of ranks",
                found: format!("{rows:?}"),
                expected: "a sum below 2^64".into(),
            })?);
        }
        Self::new(offsets)
    }

    /// `rows` rows over `ranks` ranks, at least one, as evenly as possible.
    pub fn even(rows: usize, ranks: usize) -> Self {
        let ranks = ranks.max(1);
        let end = |rank: usize| (rows as u128 * rank as u128 / ranks as u128) as usize;
        Partition { offsets: (0..=ranks).map(end).collect() }
    }

    /// The rows of a whole pattern over `ranks` ranks, at least one, so that each has as nearly as possible the same
    /// number of nonzeros and row starts.
    pub fn balanced<I: Index, O: Index>(pattern: &PatternView<'_, I, O>, ranks: usize) -> Self {
        Self::of_row_offsets(pattern.offsets(), ranks)
    }

    /// The same of a pattern with these row offsets.
    pub fn of_row_offsets<O: Index>(row_offsets: &[O], ranks: usize) -> Self {
        let (ranks, rows) = (ranks.max(1), row_offsets.len().saturating_sub(1));
        let start = |row: usize| row_offsets.get(row).map_or(0, |o| o.to_usize());
        let all = start(rows) as u128 + rows as u128;
        let mut offsets = vec![0];
        for rank in 1..ranks {
            let target = all * rank as u128 / ranks as u128;
            offsets.push(first_row_past(target, 0..rows, start).max(offsets[rank - 1]));
        }
        offsets.push(rows);
        Partition { offsets: offsets.into() }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Rows in all.
    pub fn rows(&self) -> usize {
        self.offsets[self.offsets.len() - 1]
    }

    /// The rows of `rank`; none of a rank that does not exist.
    pub fn range(&self, rank: usize) -> std::ops::Range<usize> {
        match (self.offsets.get(rank), self.offsets.get(rank + 1)) {
            (Some(start), Some(end)) => *start..*end,
            _ => self.rows()..self.rows(),
        }
    }

    /// Number of rows of `rank`.
    pub fn count(&self, rank: usize) -> usize {
        self.range(rank).len()
    }

    /// Row offsets of ranks, one more than there are ranks.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The rank that has `row`, which is below [`Partition::rows`].
    pub fn owner(&self, row: usize) -> usize {
        // Ranks without rows end where they begin: the last that begins at or before the row.
        self.offsets.partition_point(|start| *start <= row).saturating_sub(1).min(self.ranks() - 1)
    }

    /// The partition in a few words, the same for equal ones and almost surely not for others.
    pub(crate) fn description(&self) -> String {
        let fold =
            |h: u64, o: &usize| (h ^ *o as u64).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        let digest = self.offsets.iter().fold(0xcbf2_9ce4_8422_2325, fold);
        format!("{} rows over {} ranks ({digest:016x})", self.rows(), self.ranks())
    }
}

/// The end among `rows` at which nonzeros and row starts before it come nearest to `target`; 0 if they pass it outside
/// of these rows. `start(row)` nonzeros are in rows before `row`.
pub(crate) fn first_row_past(
    target: u128,
    rows: std::ops::Range<usize>,
    start: impl Fn(usize) -> usize,
) -> usize {
    // A row counts as well: empty ones cost a write of C.
    let items = |row: usize| start(row) as u128 + row as u128;
    if rows.is_empty() || items(rows.start) >= target || items(rows.end) < target {
        return 0;
    }
    let (mut low, mut high) = (rows.start + 1, rows.end);
    while low < high {
        let middle = low.midpoint(high);
        if items(middle) < target { low = middle + 1 } else { high = middle }
    }
    // The row that crosses the target goes to the side that it is nearer to.
    if target - items(low - 1) < items(low) - target { low - 1 } else { low }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_one_owner() {
        let partition = Partition::of_counts(&[0, 3, 0, 0, 2, 0]).unwrap();
        let owners: Vec<_> = (0..5).map(|row| partition.owner(row)).collect();
        assert_eq!(owners, [1, 1, 1, 4, 4]);
        assert_eq!(partition.offsets(), [0, 0, 3, 3, 3, 5, 5]);
        assert_eq!(partition.range(4), 3..5);
        let even = Partition::even(5_000_000_000, 3);
        assert_eq!(even.offsets(), [0, 1_666_666_666, 3_333_333_333, 5_000_000_000]);
        assert_eq!(Partition::even(2, 5).rows(), 2);
        for wrong in [vec![], vec![0], vec![1, 2], vec![0, 3, 2]] {
            assert!(matches!(Partition::new(wrong), Err(Error::Argument { .. })));
        }
    }

    #[test]
    fn nonzeros_are_balanced() {
        // Row 2 holds nearly all nonzeros.
        let offsets: Vec<u32> = vec![0, 1, 2, 102, 103, 104, 105];
        let indices: Vec<u32> = vec![0; 105];
        let pattern = PatternView::new(6, 1, &offsets, &indices).unwrap();
        let partition = Partition::balanced(&pattern, 3);
        assert_eq!(partition.offsets(), [0, 2, 3, 6]);
        let uniform: Vec<u32> = (0..=12).map(|r| r * 4).collect();
        let indices = vec![0_u32; 48];
        let pattern = PatternView::new(12, 1, &uniform, &indices).unwrap();
        assert_eq!(Partition::balanced(&pattern, 4).offsets(), [0, 3, 6, 9, 12]);
        assert_eq!(Partition::balanced(&pattern, 20).ranks(), 20);
    }
}
