//! The counts behind the features, from one pass over the rows.

use std::ops::Range;

use gustav_core::buffer::try_vec;
use gustav_core::{Index, PatternView, Result, parallel};

use super::marks::{Marks, Requested, counted};
use super::tally::Tally;
use super::{Features, Summary};
use crate::facts::cache_lines::Line;
use crate::orders::WarpShape;

// Fewest nonzeros of a thread.
const LEAST: usize = 1 << 14;
// Rows whose requests are summed together.
const BATCH: usize = 256;
const ROWS: &str = "rows whose features are counted, twice";

/// Row lengths, and the warp loads of whole warps.
pub(super) struct Lengths {
    rows: Tally,
    /// Warp load of each warp.
    loads: Vec<u64>,
    lanes: Line,
}

impl Lengths {
    fn none(shape: WarpShape) -> Result<Self> {
        Ok(Lengths {
            rows: Tally::NONE,
            loads: zeros(shape.warps)?,
            lanes: Line::new(shape.lanes)?,
        })
    }

    /// Counts all rows of `a`, from the row offsets alone.
    pub fn new<I: Index, O: Index>(a: &PatternView<'_, I, O>, shape: WarpShape) -> Result<Self> {
        let rows = a.nrows();
        let parts = (rows / LEAST).clamp(1, parallel::threads());
        let cut = |k: usize| (rows as u128 * k as u128 / parts as u128) as usize;
        let counted = parallel::map(parts, |k| {
            let mut lengths = Self::none(shape)?;
            lengths.count(a, cut(k)..cut(k + 1));
            Ok(lengths)
        });
        let mut all = Self::none(shape)?;
        for part in counted {
            let part: Result<Self> = part;
            all.add(&part?);
        }
        Ok(all)
    }

    fn count<I: Index, O: Index>(&mut self, a: &PatternView<'_, I, O>, rows: Range<usize>) {
        let ends = &a.offsets()[rows.start..=rows.end];
        let lengths = || ends.windows(2).map(|ends| ends[1].to_usize() - ends[0].to_usize());
        let lanes = self.lanes;
        self.rows = self.rows.with(Tally::of(lengths().map(|length| length as u64)));
        add_by_warp(
            &mut self.loads,
            rows.start,
            lengths().map(|length| lanes.count(length) as u64),
        );
    }

    fn add(&mut self, other: &Self) {
        self.rows = self.rows.with(other.rows);
        sum(&mut self.loads, &other.loads);
    }

    /// The summaries across rows, and across warps.
    pub fn summaries(&self) -> (Summary, Summary) {
        let loads = Tally::of(self.loads.iter().copied());
        (self.rows.summary(1.0), loads.summary(1.0))
    }
}

/// Counts over some rows.
pub(super) struct Counts {
    pub rows: usize,
    pub lengths: Lengths,
    marks: Marks,
    /// Lines of a row, and lines that only one of two neighbouring rows requests.
    lines: Tally,
    adjacent: Tally,
    /// Requests of each warp.
    per_warp: Vec<u64>,
    /// Marks and counts of blocks of Nw columns, if Nw is not the width of a line.
    blocks: Option<(Marks, Tally)>,
}

/// Lines that only one of two neighbouring rows requests.
fn apart(before: Requested, row: Requested) -> u32 {
    before.lines + row.lines - 2 * row.both
}

fn zeros(len: usize) -> Result<Vec<u64>> {
    let mut zeros = try_vec(len, "counts of features")?;
    zeros.resize(len, 0);
    Ok(zeros)
}

/// Adds one value of each row from `first` on to its warp's sum.
fn add_by_warp(sums: &mut [u64], first: usize, mut values: impl ExactSizeIterator<Item = u64>) {
    let mut warp = first % sums.len();
    while values.len() > 0 {
        for (sum, value) in sums[warp..].iter_mut().zip(&mut values) {
            *sum += value;
        }
        warp = 0;
    }
}

fn sum(all: &mut [u64], part: &[u64]) {
    all.iter_mut().zip(part).for_each(|(all, part)| *all += part);
}

impl Counts {
    fn none(columns: usize, shape: WarpShape) -> Result<Self> {
        let blocks = match shape.warps == shape.line {
            true => None,
            false => Some((Marks::new(columns, shape.warps, 1)?, Tally::NONE)),
        };
        Ok(Counts {
            rows: 0,
            lengths: Lengths::none(shape)?,
            marks: Marks::new(columns, shape.line, shape.warps)?,
            lines: Tally::NONE,
            adjacent: Tally::NONE,
            per_warp: zeros(shape.warps)?,
            blocks,
        })
    }

    /// Counts over all rows.
    ///
    /// # Errors
    /// [`gustav_core::Error::Overflow`] for 2³¹ rows or lines, [`gustav_core::Error::OutOfMemory`].
    pub fn new<I: Index, O: Index>(a: &PatternView<'_, I, O>, shape: WarpShape) -> Result<Self> {
        let parts = Self::parts(a, shape, a.nnz());
        // Parts of equal numbers of rows plus nonzeros.
        let work = |row: usize| a.offsets()[row].to_usize() as u128 + row as u128;
        let cut = |k: usize| {
            let (mut low, mut high) = (0, a.nrows());
            while low < high {
                let middle = low + (high - low) / 2;
                match work(middle) * (parts as u128) < work(a.nrows()) * k as u128 {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            low
        };
        counted(ROWS, a.nrows() + 2 * parts)?;
        Self::over(a, shape, parts, |k| std::iter::once(cut(k)..cut(k + 1)))
    }

    /// Counts over `groups` groups of Nw rows, `group(0)`, …, in ascending order.
    ///
    /// # Errors
    /// As [`Counts::new`].
    pub fn of_groups<I: Index, O: Index>(
        a: &PatternView<'_, I, O>,
        shape: WarpShape,
        groups: usize,
        group: impl Fn(usize) -> Range<usize> + Sync,
    ) -> Result<Self> {
        counted(ROWS, groups.saturating_mul(shape.warps + 2))?;
        let share = groups as f64 * shape.warps as f64 / a.nrows() as f64;
        let parts = Self::parts(a, shape, (share * a.nnz() as f64) as usize).min(groups);
        let cut = |k: usize| (groups as u128 * k as u128 / parts as u128) as usize;
        Self::over(a, shape, parts, |k| (cut(k)..cut(k + 1)).map(&group))
    }

    /// Number of parallel parts. Every part has marks of its own, which are added up afterwards;
    /// this number minimises the time of both steps.
    fn parts<I: Index, O: Index>(
        a: &PatternView<'_, I, O>,
        shape: WarpShape,
        nonzeros: usize,
    ) -> usize {
        let lines = a.ncols() / shape.line.min(shape.warps) + 1;
        let least = (2 * nonzeros / lines).isqrt();
        least.min(nonzeros / LEAST).clamp(1, parallel::threads())
    }

    fn over<I: Index, O: Index, R: Iterator<Item = Range<usize>>>(
        a: &PatternView<'_, I, O>,
        shape: WarpShape,
        parts: usize,
        ranges: impl Fn(usize) -> R + Sync,
    ) -> Result<Self> {
        let counted = parallel::map(parts, |k| {
            let mut counts = Self::none(a.ncols(), shape)?;
            ranges(k).for_each(|rows| counts.walk(a, rows));
            Ok(counts)
        });
        let mut counted = counted.into_iter().collect::<Result<Vec<Self>>>()?;
        let mut all = counted.swap_remove(0);
        all.add(&counted);
        Ok(all)
    }

    /// Counts `rows`, which do not follow the rows counted last.
    fn walk<I: Index, O: Index>(&mut self, a: &PatternView<'_, I, O>, rows: Range<usize>) {
        self.rows += rows.len();
        self.marks.skip();
        // The previous row, then those of this batch.
        let mut found = [Requested::default(); 1 + BATCH];
        for start in rows.clone().step_by(BATCH) {
            let end = rows.end.min(start + BATCH);
            let batch = &mut found[..=end - start];
            self.marks.request(a, start..end, &mut batch[1..]);
            let pairs = &batch[usize::from(start == rows.start)..];
            self.adjacent.add_all(pairs.windows(2).map(|pair| apart(pair[0], pair[1])));
            self.lines.add_all(batch[1..].iter().map(|row| row.lines));
            self.lengths.count(a, start..end);
            let lines = batch[1..].iter().map(|found| u64::from(found.lines));
            add_by_warp(&mut self.per_warp, start, lines);
            batch[0] = batch[end - start];
            if let Some((marks, tally)) = &mut self.blocks {
                let blocks = (start..end).map(|row| marks.pass(a.row(row)).lines);
                blocks.for_each(|blocks| tally.add(u64::from(blocks)));
            }
        }
        if !rows.is_empty() && rows.end < a.nrows() {
            let next = self.marks.pass(a.row(rows.end));
            self.adjacent.add(u64::from(apart(found[0], next)));
        }
    }

    /// Adds the counts of other rows.
    pub fn add(&mut self, others: &[Counts]) {
        for other in others {
            self.rows += other.rows;
            self.lengths.add(&other.lengths);
            self.lines = self.lines.with(other.lines);
            self.adjacent = self.adjacent.with(other.adjacent);
            sum(&mut self.per_warp, &other.per_warp);
            if let (Some((_, all)), Some((_, part))) = (&mut self.blocks, &other.blocks) {
                *all = all.with(*part);
            }
        }
        let marks: Vec<&Marks> = others.iter().map(|other| &other.marks).collect();
        self.marks.add(&marks);
    }

    /// The features, if these rows are a sample of `scale` times as many; features of row lengths
    /// and warp loads come from `lengths`.
    pub fn features<I: Index, O: Index>(
        &self,
        a: &PatternView<'_, I, O>,
        scale: f64,
        lengths: &Lengths,
    ) -> Features {
        let (nrow, ncol) = (a.nrows() as f64, a.ncols() as f64);
        let cells = nrow * ncol;
        let (nnz_per_row, warp_load) = lengths.summaries();
        let blocks = self.blocks.as_ref().map_or(self.lines, |(_, tally)| *tally);
        Features {
            nrow,
            ncol,
            density: if cells > 0.0 { a.nnz() as f64 / cells } else { 0.0 },
            nnz_per_row,
            nnz_blocks_per_row: blocks.summary(1.0),
            warp_load,
            same_cache_lines: self.marks.requests().summary(scale),
            distinct_cache_lines_per_warp: self.marks.lines_of_warps().summary(1.0),
            total_cache_lines_per_warp: Tally::of(self.per_warp.iter().copied()).summary(scale),
            adjacent_vector_distance: self.adjacent.summary(1.0),
        }
    }

    /// Number of lines.
    pub fn cache_lines(&self) -> usize {
        self.marks.lines()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_neighbours_are_counted_up_to_the_limit() {
        // The largest possible number of lines, in rows with and without lines.
        let most = i32::MAX as u32;
        let row = |lines, both| Requested { lines, both };
        let half = most / 2;
        assert_eq!(apart(row(most, 0), row(most, most)), 0);
        assert_eq!(apart(row(most, 0), row(0, 0)), most);
        assert_eq!(apart(row(half, 0), row(most - half, 0)), most);
        assert!(counted(ROWS, most as usize).is_ok() && counted(ROWS, 1 << 31).is_err());
    }
}
