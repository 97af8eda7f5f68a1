//! Event simulation of the warps of one CTA that computes one strip of C.

use std::ops::Range;

use gustav_core::{Index, PatternView, Result};

use super::caches::{Caches, SECTOR};
use super::{CtaCosts, SlotRows};

const WARPS: usize = 32;
const LANES: usize = 32;
// Steps of a row whose loads are in flight together: the compiler unrolls the loop by this much.
const UNROLLED: usize = 4;
// Sectors of a cache line.
const LINE: usize = 4;

/// The next action of a warp.
#[derive(Clone, Copy)]
enum Phase {
    Slot,
    Offsets,
    Nonzeros,
    Gather,
}

struct Warp {
    time: f64,
    phase: Phase,
    slot: usize,
    /// Remaining nonzeros of the row, and how many of them are loaded next.
    left: Range<usize>,
    batch: usize,
}

/// First sector of each array.
struct SectorStarts {
    indices: usize,
    values: usize,
    offsets: usize,
    slots: usize,
    end: usize,
}

impl SectorStarts {
    fn new(cols: usize, nnz: usize, rows: usize, slots: usize) -> Self {
        // Each array begins at a line.
        let words = |count: usize| (count + 1).div_ceil(SECTOR * LINE) * LINE;
        let indices = words(cols);
        let values = indices + words(nnz);
        let offsets = values + words(nnz);
        let slots_at = offsets + words(rows);
        SectorStarts { indices, values, offsets, slots: slots_at, end: slots_at + words(slots) }
    }
}

/// Cycles from the launch until the last warp is done.
///
/// # Errors
/// [`gustav_core::Error::OutOfMemory`].
pub(super) fn cycles<I: Index, O: Index>(
    a: &PatternView<'_, I, O>,
    slot_rows: &SlotRows,
    costs: &CtaCosts,
) -> Result<f64> {
    let slots = slot_rows.slots();
    let starts = SectorStarts::new(a.ncols(), a.nnz(), a.nrows(), slots);
    let mut caches = Caches::new(starts.end, costs)?;
    let start = |k: usize| Warp {
        time: k as f64 * costs.warp_stagger,
        phase: Phase::Slot,
        slot: k,
        left: 0..0,
        batch: 0,
    };
    let mut warps: Vec<Warp> = (0..WARPS.min(slots)).map(start).collect();
    let (mut unit_free, mut end) = (0f64, 0f64);
    while let Some(k) = earliest(&warps) {
        let warp = &mut warps[k];
        let now = warp.time;
        match warp.phase {
            Phase::Slot => {
                if warp.slot >= slots {
                    end = end.max(now);
                    warps.swap_remove(k);
                    continue;
                }
                if slot_rows.is_listed() {
                    warp.time = caches.load(starts.slots + warp.slot / SECTOR, now);
                }
                match slot_rows.row(warp.slot) {
                    Some(_) => warp.phase = Phase::Offsets,
                    None => {
                        warp.slot += WARPS;
                        warp.time += costs.slot;
                    }
                }
            }
            Phase::Offsets => {
                let row = slot_rows.row(warp.slot).unwrap_or(0);
                let at = slot_rows.offset(warp.slot, row);
                let load = |at| caches.load(starts.offsets + at / SECTOR, now);
                warp.time = [at, at + 1].map(load).into_iter().fold(now, f64::max) + costs.slot;
                warp.left = a.row_range(row);
                warp.phase = Phase::Nonzeros;
            }
            Phase::Nonzeros if warp.left.is_empty() => {
                warp.slot += WARPS;
                warp.time += costs.row;
                warp.phase = Phase::Slot;
            }
            Phase::Nonzeros => {
                let steps = if warp.left.len() > (UNROLLED - 1) * LANES { UNROLLED } else { 1 };
                warp.batch = (steps * LANES).min(warp.left.len());
                let read = warp.left.start..warp.left.start + warp.batch;
                for sector in read.start / SECTOR..=(read.end - 1) / SECTOR {
                    for first in [starts.indices, starts.values] {
                        warp.time = warp.time.max(caches.load(first + sector, now));
                    }
                }
                warp.phase = Phase::Gather;
            }
            Phase::Gather => {
                let read = warp.left.start..warp.left.start + warp.batch;
                let (mut last, mut lines, mut answered) = (usize::MAX, 0, now);
                for column in &a.indices()[read] {
                    let sector = column.to_usize() / SECTOR;
                    if sector != last {
                        lines += usize::from(last == usize::MAX || sector / LINE != last / LINE);
                        answered = answered.max(caches.load(sector, now));
                        last = sector;
                    }
                }
                let steps = warp.batch.div_ceil(LANES);
                // The lines of indices and values pass through the load unit as well.
                unit_free = unit_free.max(now) + (lines + 2 * steps) as f64 * costs.line;
                warp.time = answered.max(unit_free + costs.l1_latency) + steps as f64 * costs.step;
                warp.left.start += warp.batch;
                warp.phase = Phase::Nonzeros;
            }
        }
    }
    Ok(end + costs.launch)
}

/// Index of the warp with the earliest time, the first of several.
fn earliest(warps: &[Warp]) -> Option<usize> {
    (0..warps.len()).min_by(|a, b| warps[*a].time.total_cmp(&warps[*b].time))
}
