//! New values for a known pattern of C: products are summed in the dense accumulator, and the sums
//! are read at the columns of C. Needs no flags and no lists, and allocates nothing.

use gustav_core::parallel::Shared;
use gustav_core::{AnyPattern, Arith, IndexSlice, Ops, Result, Scalar};

use super::accumulator::Needs;
use super::gustavson::{Task, Workers};
use super::operands::{Indices, Rows, with_indices};

/// Writes the values of C, whose pattern is `pattern`, to `values`.
///
/// # Safety
/// An earlier product of the same patterns had this pattern, and `values` holds its nonzeros; they
/// need not be initialised, and are when this returns without an error.
///
/// # Errors
/// [`gustav_core::Error::OutOfMemory`] for the accumulators.
pub(super) unsafe fn refill<S: Ops<A>, A: Arith, X: Indices, U: Scalar<Accum = A>>(
    s: S,
    task: &Task<'_, A, X>,
    pattern: &AnyPattern<'_>,
    values: Shared<'_, U>,
    workers: &Workers<A>,
) -> Result<()> {
    let c = Rows::new(pattern);
    workers.each_unit(task.threads, s.zero(), Needs::REFILL, task.units.len(), &|worker, unit| {
        for row in task.units[unit].rows.clone() {
            // SAFETY: rows of C are disjoint, and each belongs to one unit.
            unsafe { refill_row(s, task, &c, row, &mut worker.accumulator.sums, values) };
        }
        Ok(())
    })
}

/// # Safety
/// As [`refill`]; the row belongs to this thread.
unsafe fn refill_row<S: Ops<A>, A: Arith, X: Indices, U: Scalar<Accum = A>>(
    s: S,
    task: &Task<'_, A, X>,
    c: &Rows<IndexSlice<'_>>,
    row: usize,
    sums: &mut [A],
    values: Shared<'_, U>,
) {
    let (job, entries) = (&task.job, &task.entries);
    // SAFETY: promised by the caller.
    let store = |at, sum| unsafe {
        values.put(at, U::from_accum(s.scale(entries.alpha, sum)));
    };
    let range = c.range(row);
    let facts = job.facts(row);
    if job.is_copy(&facts) {
        let (a, _, b) = job.factor(facts.position);
        range.zip(b).for_each(|(at, b)| store(at, s.mul(a, *b)));
        return;
    }
    for position in job.a.range(row) {
        let (a, columns, b) = job.factor(position);
        for (j, b) in columns.iter().zip(b) {
            let sum = &mut sums[*j as usize];
            *sum = s.mul_add(a, *b, *sum);
        }
    }
    for at in range {
        let column = c.column(at);
        let label = entries.names.map_or(column, |names| label(names, column));
        store(at, std::mem::replace(&mut sums[label], s.zero()));
    }
}

/// The label of a column.
fn label(names: IndexSlice<'_>, column: usize) -> usize {
    with_indices!(names, |names| names.partition_point(|name| (*name as usize) < column))
}
