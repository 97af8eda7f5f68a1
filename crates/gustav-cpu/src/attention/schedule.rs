//! Parts of about the same number of nonzeros. Rows of more are cut; where, only the pattern says,
//! so that results do not depend on the number of threads.

use std::ops::Range;

use gustav_core::parallel;

use crate::Threads;
use crate::offsets::Offsets;
use crate::static_partition::StaticPartition;

// Nonzeros of a part: many beside what a part costs itself, few beside a thread's share.
const PART: usize = 1024;
// What an empty row costs, in nonzeros.
const ROW: usize = 2;
/// Most nonzeros of a part.
pub(crate) const LARGEST_PART: usize = PART;

/// Whole rows, or some of the nonzeros of one.
pub struct Part {
    pub rows: Range<usize>,
    pub nonzeros: Range<usize>,
    /// Of a cut row: where its sums are put aside.
    pub cut: Option<Cut>,
}

#[derive(Clone, Copy)]
pub struct Cut {
    pub slot: usize,
    /// The slot of the row's first part.
    pub start: usize,
}

/// A row of several parts.
pub struct CutRow {
    pub row: usize,
    pub slots: Range<usize>,
}

/// What is done next.
#[derive(Clone, Copy)]
pub enum Step<'a> {
    /// The rows of a part, or sums of a part of a row.
    Part(&'a Part),
    /// The result of a cut row, whose parts are done.
    Merge(&'a CutRow),
}

pub(crate) struct Schedule {
    parts: Vec<Part>,
    cut_rows: Vec<CutRow>,
    slots: usize,
    heads: usize,
    partition: StaticPartition,
    /// Of parts with all their heads.
    whole: StaticPartition,
}

impl Schedule {
    pub(crate) fn new(rows: usize, offsets: Offsets<'_>, heads: usize, threads: usize) -> Self {
        let (mut parts, mut cut_rows, mut slots) = (Vec::new(), Vec::new(), 0);
        let mut first = 0;
        let whole = |rows: Range<usize>| Part {
            nonzeros: offsets.at(rows.start)..offsets.at(rows.end),
            rows,
            cut: None,
        };
        for row in 0..rows {
            let nonzeros = offsets.row(row);
            let before = nonzeros.start - offsets.at(first) + ROW * (row - first);
            let cut = nonzeros.len() > PART;
            if first < row && (cut || before + nonzeros.len() > PART) {
                parts.push(whole(first..row));
                first = row;
            }
            if !cut {
                continue;
            }
            let count = nonzeros.len().div_ceil(PART);
            let at = |k: usize| {
                nonzeros.start + (nonzeros.len() as u128 * k as u128 / count as u128) as usize
            };
            for k in 0..count {
                let cut = Some(Cut { slot: slots + k, start: slots });
                parts.push(Part { rows: row..row + 1, nonzeros: at(k)..at(k + 1), cut });
            }
            cut_rows.push(CutRow { row, slots: slots..slots + count });
            slots += count;
            first = row + 1;
        }
        if first < rows {
            parts.push(whole(first..rows));
        }
        let partition = StaticPartition::new(parts.len().saturating_mul(heads), threads);
        let whole = StaticPartition::new(parts.len(), threads);
        Schedule { parts, cut_rows, slots, heads, partition, whole }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.parts[..])
            + size_of_val(&self.cut_rows[..])
            + self.partition.bytes()
            + self.whole.bytes()
    }

    /// Sums that all heads put aside.
    pub(crate) fn slots(&self) -> usize {
        self.slots.saturating_mul(self.heads)
    }

    /// Where the sums of a slot are among those of all heads.
    pub(crate) fn slots_of_head(&self) -> usize {
        self.slots
    }

    /// Calls `work` for every head and part, then for every head and cut row.
    pub(crate) fn run(&mut self, threads: &Threads, work: impl Fn(usize, Step<'_>) + Sync) {
        let (parts, count) = (&self.parts, self.parts.len());
        self.partition.run(threads, |_, task| work(task / count, Step::Part(&parts[task % count])));
        self.merge(threads, work);
    }

    /// Calls `work(thread, part)` for every part, whose heads belong together, then `merge` for
    /// every head and cut row.
    pub(crate) fn run_whole(
        &mut self,
        threads: &Threads,
        work: impl Fn(usize, &Part) + Sync,
        merge: impl Fn(usize, Step<'_>) + Sync,
    ) {
        let parts = &self.parts;
        self.whole.run(threads, |thread, part| work(thread, &parts[part]));
        self.merge(threads, merge);
    }

    fn merge(&self, threads: &Threads, work: impl Fn(usize, Step<'_>) + Sync) {
        let (rows, count) = (&self.cut_rows, self.cut_rows.len());
        threads.run(|| {
            parallel::each(count * self.heads, |k| work(k / count, Step::Merge(&rows[k % count])));
        });
    }

    /// Calls `work` for every head and every part of a cut row.
    pub(crate) fn run_cut(&self, threads: &Threads, work: impl Fn(usize, &Part) + Sync) {
        if self.cut_rows.is_empty() {
            return;
        }
        let (parts, count) = (&self.parts, self.parts.len());
        threads.run(|| {
            parallel::each(count * self.heads, |task| {
                let part = &parts[task % count];
                if part.cut.is_some() {
                    work(task / count, part);
                }
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_every_nonzero_once_and_cut_long_rows_alone() {
        let cases: [&[usize]; 6] = [
            &[],
            &[0, 0, 0],
            &[1, 5000, 0, 3],
            &[PART, PART + 1, PART],
            &[10; 1000],
            &[0, 2 * PART, 2 * PART],
        ];
        for lengths in cases {
            let mut offsets = vec![0u32];
            for length in lengths {
                offsets.push(offsets[offsets.len() - 1] + *length as u32);
            }
            let schedule = Schedule::new(lengths.len(), Offsets::new(&offsets), 2, 3);
            let nonzeros = schedule.parts.iter().flat_map(|p| p.nonzeros.clone());
            assert!(nonzeros.eq(0..offsets[lengths.len()] as usize), "{lengths:?}");
            let whole = schedule.parts.iter().filter(|p| p.cut.is_none());
            let cut = schedule.cut_rows.iter().map(|c| c.row);
            let mut rows: Vec<_> = whole.flat_map(|p| p.rows.clone()).chain(cut).collect();
            rows.sort_unstable();
            assert!(rows.iter().copied().eq(0..lengths.len()), "{lengths:?}");
            assert!(schedule.parts.iter().all(|p| p.nonzeros.len() <= LARGEST_PART));
            for cut in &schedule.cut_rows {
                assert!(lengths[cut.row] > PART && cut.slots.len() > 1);
            }
            let slots = schedule.parts.iter().filter_map(|p| p.cut).map(|c| c.slot);
            assert!(slots.eq(0..schedule.slots_of_head()));
            assert_eq!(schedule.slots(), 2 * schedule.slots_of_head());
        }
    }
}
