//! What the features are counted from: whole numbers, so that parts add up in any order.

use gustav_core::buffer::try_vec;
use gustav_core::{CsrView, Index, Result, Scalar, parallel};

use super::{Features, Summary};
use crate::facts::cache_lines::{Line, distance};
use crate::orders::WarpShape;

/// Count, sum, smallest and largest.
#[derive(Clone, Copy)]
pub(super) struct Tally {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

impl Tally {
    pub const NONE: Tally = Tally { count: 0, sum: 0, min: u64::MAX, max: 0 };

    fn add(&mut self, value: u64) {
        *self = self.with(Tally { count: 1, sum: value, min: value, max: value });
    }

    fn with(self, other: Tally) -> Tally {
        Tally {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    fn of(values: &[u64]) -> Tally {
        values.iter().fold(Tally::NONE, |mut all, value| {
            all.add(*value);
            all
        })
    }

    fn summary(self, scale: f64) -> Summary {
        if self.count == 0 {
            return Summary::default();
        }
        let mean = self.sum as f64 / self.count as f64;
        Summary { min: self.min as f64 * scale, mean: mean * scale, max: self.max as f64 * scale }
    }
}

/// Counts over some rows.
pub(super) struct Counts {
    pub rows: usize,
    blocks: Tally,
    adjacent: Tally,
    /// Requests of each line.
    requests: Vec<u64>,
    /// Requests of each warp.
    per_warp: Vec<u64>,
    /// Lines that a warp requests, a bit each.
    distinct: Vec<u64>,
}

fn zeros(len: usize) -> Result<Vec<u64>> {
    let mut zeros = try_vec(len, "counts of features")?;
    zeros.resize(len, 0);
    Ok(zeros)
}

impl Counts {
    fn none(lines: usize, warps: usize) -> Result<Self> {
        Ok(Counts {
            rows: 0,
            blocks: Tally::NONE,
            adjacent: Tally::NONE,
            requests: zeros(lines)?,
            per_warp: zeros(warps)?,
            distinct: zeros(warps.saturating_mul(lines.div_ceil(64)))?,
        })
    }

    /// Counts over the rows `row(0)`, …, `row(count - 1)`, which rise.
    pub fn new<T: Scalar, I: Index, O: Index>(
        a: &CsrView<'_, T, I, O>,
        shape: WarpShape,
        count: usize,
        row: impl Fn(usize) -> usize + Sync,
    ) -> Result<Self> {
        let lines = Line::new(shape.line)?.count(a.ncols());
        // Every part has counts of its own, which are to cost less than the pass itself.
        let affordable = a.nnz() / lines.max(1);
        let parts = affordable.min(2 * parallel::threads()).clamp(1, count.max(1));
        let cut = |k: usize| (count as u128 * k as u128 / parts as u128) as usize;
        let counted =
            parallel::map(parts, |k| Self::part(a, shape, (cut(k)..cut(k + 1)).map(&row)));
        let mut all = Self::none(lines, shape.warps)?;
        for part in counted {
            all.add(&part?);
        }
        Ok(all)
    }

    fn part<T: Scalar, I: Index, O: Index>(
        a: &CsrView<'_, T, I, O>,
        shape: WarpShape,
        rows: impl Iterator<Item = usize>,
    ) -> Result<Self> {
        let (line, block) = (Line::new(shape.line)?, Line::new(shape.warps)?);
        let lines = line.count(a.ncols());
        let words = lines.div_ceil(64);
        let mut counts = Self::none(lines, shape.warps)?;
        let (mut scratch, mut own, mut next) = (Vec::new(), Vec::new(), Vec::new());
        // The row whose lines are in `next`.
        let mut known = None;
        for row in rows {
            if known != Some(row) {
                collect(line, a.row(row).0, &mut scratch, &mut next);
            }
            std::mem::swap(&mut own, &mut next);
            let warp = row % shape.warps;
            let mask = &mut counts.distinct[warp * words..(warp + 1) * words];
            for line in &own {
                counts.requests[*line] += 1;
                mask[line / 64] |= 1 << (line % 64);
            }
            counts.per_warp[warp] += own.len() as u64;
            let mut blocks = own.len() as u64;
            if shape.warps != shape.line {
                blocks = 0;
                block.each(a.row(row).0, &mut scratch, |_| blocks += 1);
            }
            counts.blocks.add(blocks);
            if row + 1 < a.nrows() {
                collect(line, a.row(row + 1).0, &mut scratch, &mut next);
                known = Some(row + 1);
                counts.adjacent.add(distance(&own, &next) as u64);
            }
            counts.rows += 1;
        }
        Ok(counts)
    }

    /// Adds what another part has counted.
    pub fn add(&mut self, other: &Counts) {
        self.rows += other.rows;
        self.blocks = self.blocks.with(other.blocks);
        self.adjacent = self.adjacent.with(other.adjacent);
        let sums = [(&mut self.requests, &other.requests), (&mut self.per_warp, &other.per_warp)];
        for (all, part) in sums {
            all.iter_mut().zip(part).for_each(|(all, part)| *all += part);
        }
        self.distinct.iter_mut().zip(&other.distinct).for_each(|(all, part)| *all |= part);
    }

    /// The features, where these rows stand for `scale` times as many.
    pub fn features<T: Scalar, I: Index, O: Index>(
        &self,
        a: &CsrView<'_, T, I, O>,
        scale: f64,
    ) -> Features {
        let (nrow, ncol) = (a.nrows() as f64, a.ncols() as f64);
        let cells = nrow * ncol;
        Features {
            nrow,
            ncol,
            density: if cells > 0.0 { a.nnz() as f64 / cells } else { 0.0 },
            nnz_blocks_per_row: self.blocks.summary(1.0),
            same_cache_lines: Tally::of(&self.requests).summary(scale),
            distinct_cache_lines_per_warp: self.distinct().summary(1.0),
            total_cache_lines_per_warp: Tally::of(&self.per_warp).summary(scale),
            adjacent_vector_distance: self.adjacent.summary(1.0),
            ..Features::default()
        }
    }

    /// Distinct lines of each warp.
    fn distinct(&self) -> Tally {
        let words = self.requests.len().div_ceil(64);
        let ones = |warp: usize| {
            let mask = &self.distinct[warp * words..(warp + 1) * words];
            mask.iter().map(|word| u64::from(word.count_ones())).sum()
        };
        (0..self.per_warp.len()).map(ones).fold(Tally::NONE, |mut all, count| {
            all.add(count);
            all
        })
    }

    /// Number of lines.
    pub fn lines(&self) -> usize {
        self.requests.len()
    }
}

fn collect<I: Index>(line: Line, cols: &[I], scratch: &mut Vec<usize>, into: &mut Vec<usize>) {
    into.clear();
    line.each(cols, scratch, |found| into.push(found));
}

/// Row lengths and warp loads, which need the row offsets alone.
pub(super) fn lengths<T: Scalar, I: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
    shape: WarpShape,
) -> Result<(Summary, Summary)> {
    let rows = a.nrows();
    let parts = (rows >> 14).clamp(1, 2 * parallel::threads());
    let cut = |k: usize| (rows as u128 * k as u128 / parts as u128) as usize;
    let counted = parallel::map(parts, |k| {
        let (mut lengths, mut loads) = (Tally::NONE, zeros(shape.warps)?);
        for row in cut(k)..cut(k + 1) {
            let length = a.row_len(row);
            lengths.add(length as u64);
            loads[row % shape.warps] += shape.load(length);
        }
        Ok((lengths, loads))
    });
    let (mut lengths, mut loads) = (Tally::NONE, zeros(shape.warps)?);
    for part in counted {
        let (l, w): (Tally, Vec<u64>) = part?;
        lengths = lengths.with(l);
        loads.iter_mut().zip(w).for_each(|(all, part)| *all += part);
    }
    Ok((lengths.summary(1.0), Tally::of(&loads).summary(1.0)))
}
