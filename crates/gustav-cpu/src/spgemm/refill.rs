//! New values under a known pattern of C: sums are added up in the accumulator and collected at
//! C's own columns. No flags, no lists, no memory taken.

use std::sync::atomic::{AtomicBool, Ordering};

use gustav_core::parallel::Shared;
use gustav_core::{Csr, Index, Result, Scalar, Semiring};

use super::accumulator::Needs;
use super::assemble::pattern_digest;
use super::gustavson::{Entries, Product, Workers, unknown_pattern};
use super::row::Job;
use crate::Threads;

/// Overwrites the values of `c`, whose pattern must have the given digests, one per unit.
///
/// # Errors
/// [`gustav_core::Error::Pattern`] when `c` has another pattern; some of its values may have been
/// overwritten by then.
pub(super) fn refill<S: Semiring<T::Accum>, T: Scalar, I: Index, J: Index, O: Index>(
    product: Product<'_, T, I, J, O>,
    digests: &[u64],
    c: &mut Csr<T, I, O>,
    workers: &Workers<T::Accum>,
    threads: &Threads,
) -> Result<()> {
    let Product { job, entries, units, ncols, .. } = product;
    let found = format!("{} x {} with {} nonzeros", c.nrows(), c.ncols(), c.nnz());
    if (c.nrows(), c.ncols()) != (job.a.nrows(), ncols) {
        return Err(unknown_pattern(found));
    }
    let (offsets, indices, values) = c.arrays_mut();
    let values = Shared::new(values);
    let strange = AtomicBool::new(false);
    workers.each_unit(threads, S::zero(), Needs::REFILL, units.len(), |worker, unit| {
        let rows = units[unit].rows.clone();
        let range = offsets[rows.start].to_usize()..offsets[rows.end].to_usize();
        let ends = &offsets[rows.start + 1..rows.end + 1];
        if pattern_digest(ends, &indices[range]) != digests[unit] {
            strange.store(true, Ordering::Relaxed);
            return Ok(());
        }
        for row in rows {
            let range = offsets[row].to_usize()..offsets[row + 1].to_usize();
            // SAFETY: rows of C are disjoint, and each belongs to one unit.
            let values = unsafe { values.slice(range.clone()) };
            let sums = &mut worker.accumulator.sums;
            refill_row::<S, _, _, _, _>(&job, &entries, row, sums, &indices[range], values);
        }
        Ok(())
    })?;
    if strange.into_inner() {
        return Err(unknown_pattern(found));
    }
    Ok(())
}

fn refill_row<S: Semiring<T::Accum>, T: Scalar, I: Index, J: Index, O: Index>(
    job: &Job<'_, T, I, J, O>,
    entries: &Entries<'_, T::Accum, I>,
    row: usize,
    sums: &mut [T::Accum],
    columns: &[I],
    to: &mut [T],
) {
    let stored = |sum| T::from_accum(S::scale(entries.alpha, sum));
    let facts = job.facts(row);
    if job.is_copy(&facts) {
        let (a, _, b) = job.factor(facts.position);
        for (to, b) in to.iter_mut().zip(b) {
            *to = stored(S::mul(a, b.to_accum()));
        }
        return;
    }
    for position in job.a.row_range(row) {
        let (a, columns, values) = job.factor(position);
        for (j, b) in columns.iter().zip(values) {
            let sum = &mut sums[j.to_usize()];
            *sum = S::mul_add(a, b.to_accum(), *sum);
        }
    }
    for (to, j) in to.iter_mut().zip(columns) {
        let label = match entries.columns {
            None => j.to_usize(),
            Some(names) => names.partition_point(|name| name < j),
        };
        *to = stored(std::mem::replace(&mut sums[label], S::zero()));
    }
}
