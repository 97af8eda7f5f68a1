//! `row-split` (Yang, Buluç, Owens 2018, §4.1): whole rows in parts of about the same work. No
//! row is cut, so every element is summed in one fixed order.
//!
//! On the matrix of a grid stencil, whose rows have columns one plane (or line) before and after, a
//! part is a strip through all planes: the rows of B that three neighbouring planes share then stay
//! in L2, which whole planes would not.

use std::ops::Range;

use gustav_core::{Index, PatternView};
use gustav_plan::Bands;

use super::kernel::Rows;
use super::operands::Operands;
use crate::arch::Isa;
use crate::static_partition::StaticPartition;
use crate::types::CpuScalar;
use crate::{Threads, schedule};

// Most parts per thread: enough to balance skewed rows and a busy core.
const PARTS: usize = 32;
// Multiplications in a part that make the cost of distributing it negligible.
const PART_WORK: usize = 1 << 17;
// Multiplications that one thread finishes before a second one would start.
const SERIAL: usize = 1 << 15;
// Writing a row of C costs as much as this many nonzeros.
const ROW_WEIGHT: usize = 2;

/// Divides rows into parts of about the same work on `columns` columns, for `threads` threads.
pub(super) fn parts<O: Index>(offsets: &[O], columns: usize, threads: usize) -> Vec<Range<usize>> {
    let rows = offsets.len() - 1;
    let work = (offsets[rows].to_usize() + ROW_WEIGHT * rows).saturating_mul(columns);
    let threads = if work <= SERIAL { 1 } else { threads };
    let each = if threads == 1 { 1 } else { (work / threads / PART_WORK).clamp(1, PARTS) };
    let parts = (threads * each).min(rows.max(1));
    let partitions = schedule::balanced_rows(offsets, parts, ROW_WEIGHT);
    partitions.into_iter().map(|s| s.rows).collect()
}

/// `rows`, and the rows `distance`, 2 · `distance`, … after them, `count` times in all.
struct Part {
    rows: Range<usize>,
    distance: usize,
    count: usize,
}

pub(super) struct RowSplit {
    parts: Vec<Part>,
    assignment: StaticPartition,
}

impl RowSplit {
    /// `columns`: those of B, of `row_bytes` bytes a row; `l2_bytes`: the cache that B should
    /// stay in.
    pub(super) fn new<I: Index, O: Index>(
        a: &PatternView<'_, I, O>,
        (columns, row_bytes): (usize, usize),
        l2_bytes: usize,
        threads: usize,
    ) -> Self {
        let whole = || {
            let parts = parts(a.offsets(), columns, threads);
            parts.into_iter().map(|rows| Part { rows, distance: 0, count: 1 }).collect()
        };
        let parts = strips(a, row_bytes, l2_bytes, threads).unwrap_or_else(whole);
        let assignment = StaticPartition::new(parts.len(), threads);
        RowSplit { parts, assignment }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.parts[..]) + self.assignment.bytes()
    }

    pub(super) fn execute<T: CpuScalar, I: Index>(
        &mut self,
        threads: &Threads,
        isa: Isa,
        op: &Operands<'_, T, I>,
    ) {
        let parts = &self.parts;
        self.assignment.run(threads, |_, p| {
            let part = &parts[p];
            for k in 0..part.count {
                let start = part.rows.start + k * part.distance;
                let rows = start..op.rows.min(start + part.rows.len());
                // SAFETY: the plan checked that the instruction set is there; parts are disjoint.
                unsafe { T::vectorize(isa, op.semiring, Rows { op, rows }) }
            }
        });
    }
}

/// Strips through the planes of a grid, if `a` has planes and three of them overflow L2.
fn strips<I: Index, O: Index>(
    a: &PatternView<'_, I, O>,
    row_bytes: usize,
    l2_bytes: usize,
    threads: usize,
) -> Option<Vec<Part>> {
    let fit = l2_bytes / 2 / row_bytes.max(1);
    let Bands { count, distance, width } = Bands::new(a)?;
    if count * distance <= fit + fit / 2 {
        return None;
    }
    let strip = (fit / count).saturating_sub(width).min(distance);
    // Narrower strips would reload their margins more often than whole planes are reloaded without
    // strips.
    if strip < width || strip < 16 {
        return None;
    }
    let strips = distance.div_ceil(strip);
    let planes = a.nrows().div_ceil(distance);
    // Strips are divided if there are too few of them for all threads.
    let per_strip = (threads * 4).div_ceil(strips).min(planes).max(1);
    let mut parts = Vec::with_capacity(strips * per_strip);
    for s in 0..strips {
        let rows = distance * s / strips..distance * (s + 1) / strips;
        for p in 0..per_strip {
            let (first, last) = (planes * p / per_strip, planes * (p + 1) / per_strip);
            let begin = first * distance;
            let rows = begin + rows.start..begin + rows.end;
            parts.push(Part { rows, distance, count: last - first });
        }
    }
    Some(parts)
}
