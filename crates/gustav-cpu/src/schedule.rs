//! The three schedules of Yang, Buluç, Owens 2018 as partitions for CPU threads.
//!
//! A schedule knows row offsets only, nothing of arithmetic. It cuts the nonzeros into
//! [`Partition`]s. The worker of a partition finishes the rows that end in it. The nonzeros after
//! them form the carry-out: a partial sum of a row that a later partition finishes.

use std::ops::Range;

use gustav_core::Index;

/// One worker's part of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The rows that end in this partition. Row `rows.start` may have begun in an earlier
    /// partition.
    pub rows: Range<usize>,
    /// The nonzeros of this partition. Those from `offsets[rows.end]` on are the carry-out: they
    /// belong to row `rows.end`, which ends in a later partition.
    pub nonzeros: Range<usize>,
}

impl Partition {
    /// The nonzeros of row `row` (one of `rows`) that lie in this partition.
    #[inline(always)]
    pub fn of_row<O: Index>(&self, offsets: &[O], row: usize) -> Range<usize> {
        offsets[row].to_usize().max(self.nonzeros.start)..offsets[row + 1].to_usize()
    }

    /// Whether row `rows.start` (or, with no row ending here, the carry-out's row) began in an
    /// earlier partition.
    #[inline(always)]
    pub fn begins_inside<O: Index>(&self, offsets: &[O]) -> bool {
        offsets[self.rows.start].to_usize() < self.nonzeros.start
    }

    /// The rows that lie in this partition as a whole.
    pub fn whole_rows<O: Index>(&self, offsets: &[O]) -> Range<usize> {
        let cut = usize::from(self.begins_inside(offsets) && !self.rows.is_empty());
        self.rows.start + cut..self.rows.end
    }

    /// The nonzeros of the carry-out, of row `rows.end`; empty when the partition ends with a row.
    #[inline(always)]
    pub fn carry_out<O: Index>(&self, offsets: &[O]) -> Range<usize> {
        offsets[self.rows.end].to_usize().max(self.nonzeros.start)..self.nonzeros.end
    }
}

/// `row-split` (Yang, Buluç, Owens 2018, §4.1): the same number of rows each.
pub fn row_split<O: Index>(offsets: &[O], parts: usize) -> Vec<Partition> {
    let rows = offsets.len() - 1;
    partitions(offsets, parts, |p| {
        let row = cut(rows, p, parts);
        (row, offsets[row].to_usize())
    })
}

/// Whole rows, cut where the work comes closest to the same for each: a unit for every nonzero
/// and `row_weight` for every row.
pub fn balanced_rows<O: Index>(offsets: &[O], parts: usize, row_weight: usize) -> Vec<Partition> {
    let rows = offsets.len() - 1;
    let work = |row: usize| offsets[row].to_usize() as u128 + row as u128 * row_weight as u128;
    partitions(offsets, parts, |p| {
        let target = work(rows) * p as u128 / parts as u128;
        let (mut low, mut high) = (0, rows);
        while p > 0 && low < high {
            let middle = low + (high - low) / 2;
            if work(middle) < target {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let row = if p == parts { rows } else { low };
        (row, offsets[row].to_usize())
    })
}

/// `nonzero-split` (Yang, Buluç, Owens 2018, §4.2): the same number of nonzeros each, by binary
/// search in the row offsets; rows may be cut.
pub fn nonzero_split<O: Index>(offsets: &[O], parts: usize) -> Vec<Partition> {
    let rows = offsets.len() - 1;
    let nnz = offsets[rows].to_usize();
    partitions(offsets, parts, |p| {
        if p == parts {
            return (rows, nnz);
        }
        let at = cut(nnz, p, parts);
        // Rows that end at or before the cut; none for p = 0, so that empty leading rows belong to
        // the first partition.
        let row = if p == 0 { 0 } else { offsets[1..].partition_point(|o| o.to_usize() <= at) };
        (row, at)
    })
}

/// `merge-path` (Merrill, Garland 2016; Yang, Buluç, Owens 2018, §4): the same number of nonzeros
/// plus rows each, by search along the diagonals of the merge of row ends and nonzeros.
pub fn merge_path<O: Index>(offsets: &[O], parts: usize) -> Vec<Partition> {
    let rows = offsets.len() - 1;
    let nnz = offsets[rows].to_usize();
    partitions(offsets, parts, |p| {
        let diagonal = cut(rows + nnz, p, parts);
        // The first row r with offsets[r + 1] + r >= diagonal: r row ends lie before the cut.
        let (mut low, mut high) = (diagonal.saturating_sub(nnz), diagonal.min(rows));
        while low < high {
            let middle = low + (high - low) / 2;
            if offsets[middle + 1].to_usize() + middle < diagonal {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low, diagonal - low)
    })
}

/// `total * p / parts` without overflow.
fn cut(total: usize, p: usize, parts: usize) -> usize {
    (total as u128 * p as u128 / parts as u128) as usize
}

fn partitions<O: Index>(
    offsets: &[O],
    parts: usize,
    at: impl Fn(usize) -> (usize, usize),
) -> Vec<Partition> {
    debug_assert!(!offsets.is_empty() && parts > 0);
    let cuts: Vec<_> = (0..=parts).map(at).collect();
    cuts.windows(2).map(|w| Partition { rows: w[0].0..w[1].0, nonzeros: w[0].1..w[1].1 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every nonzero and every row end is visited exactly once, by the row it belongs to.
    fn covers(schedule: fn(&[u32], usize) -> Vec<Partition>, lengths: &[u32], parts: usize) {
        let mut offsets = vec![0u32];
        for l in lengths {
            offsets.push(offsets[offsets.len() - 1] + l);
        }
        let mut visits = vec![None; offsets[lengths.len()] as usize];
        let mut ended = vec![0; lengths.len()];
        let mut visit = |row: usize, range: Range<usize>| {
            for k in range {
                assert_eq!(visits[k].replace(row), None, "nonzero {k} visited twice");
            }
        };
        for partition in schedule(&offsets, parts) {
            for row in partition.rows.clone() {
                ended[row] += 1;
                visit(row, partition.of_row(&offsets, row));
            }
            let carry = partition.carry_out(&offsets);
            visit(partition.rows.end, carry);
        }
        assert!(ended.iter().all(|&n| n == 1), "row ends {ended:?}");
        for (k, row) in visits.iter().enumerate() {
            let row = row.expect("nonzero not visited");
            assert!((offsets[row] as usize..offsets[row + 1] as usize).contains(&k));
        }
    }

    #[test]
    fn schedules_visit_every_nonzero_once() {
        let patterns: &[&[u32]] = &[
            &[],
            &[0],
            &[0, 0, 0],
            &[5],
            &[1, 1, 1, 1],
            &[0, 0, 100, 0, 0],
            &[31, 32, 33, 0, 1000, 1, 0, 2],
            &[0, 3, 0, 0, 7, 0, 0, 0, 0],
        ];
        for lengths in patterns {
            for parts in [1, 2, 3, 7, 64] {
                covers(row_split, lengths, parts);
                covers(|o, p| balanced_rows(o, p, 0), lengths, parts);
                covers(|o, p| balanced_rows(o, p, 3), lengths, parts);
                covers(nonzero_split, lengths, parts);
                covers(merge_path, lengths, parts);
            }
        }
    }
}
