//! `gustavson`: row-wise products (Gustavson 1978) in one pass. Work is divided by intermediate
//! products; every row chooses its accumulator; rows are copied to C as soon as their position is
//! known. Where an upper bound of C does not fit in memory, entries are counted first.

use std::any::TypeId;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gustav_core::buffer::available_memory;
use gustav_core::{Arith, Error, IndexSlice, IndexType, Ops, Result, Scalar};

use super::accumulator::{Accumulator, Needs};
use super::assemble::{Assembly, Chunk};
use super::operands::{Indices, Product, SharedIndices, most};
use super::row::{Job, LONG, SHORT};
use super::units::Unit;
use super::vector::{self, Vector};
use crate::Threads;
use crate::arch::Isa;

/// The memory of one thread.
pub(super) struct Worker<A> {
    pub accumulator: Accumulator<A>,
    free: Vec<Chunk<A>>,
    pending: Vec<(usize, Chunk<A>)>,
}

/// The threads' accumulators and chunks.
pub(super) struct Workers<A> {
    workers: Vec<Mutex<Worker<A>>>,
    columns: usize,
}

impl<A: Arith> Workers<A> {
    pub fn new(threads: usize, columns: usize) -> Result<Self> {
        let worker = |_| {
            let accumulator = Accumulator::new(columns)?;
            Ok(Mutex::new(Worker { accumulator, free: Vec::new(), pending: Vec::new() }))
        };
        Ok(Workers { workers: (0..threads).map(worker).collect::<Result<_>>()?, columns })
    }

    /// Bytes of the accumulators for such a product.
    pub fn bytes(&self, needs: Needs) -> usize {
        self.workers.len() * needs.bytes(self.columns, size_of::<A>())
    }

    /// Runs `work(worker, unit)` for every unit, each on one thread, in roughly ascending order;
    /// stops at the first error.
    pub fn each_unit(
        &self,
        threads: &Threads,
        zero: A,
        needs: Needs,
        units: usize,
        work: &(dyn Fn(&mut Worker<A>, usize) -> Result<()> + Sync),
    ) -> Result<()> {
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let failure = Mutex::new(None);
        threads.each(self.workers.len(), |k| {
            let mut worker = self.workers[k].lock().unwrap_or_else(|e| e.into_inner());
            // A failed product may have left chunks here.
            let Worker { accumulator, free, pending } = &mut *worker;
            free.extend(pending.drain(..).map(|(_, chunk)| chunk));
            let mut done = accumulator.prepare(zero, needs);
            while done.is_ok() && !failed.load(Ordering::Relaxed) {
                let unit = next.fetch_add(1, Ordering::Relaxed);
                if unit >= units {
                    break;
                }
                done = work(&mut worker, unit);
            }
            if let Err(error) = done {
                failed.store(true, Ordering::Relaxed);
                *failure.lock().unwrap_or_else(|e| e.into_inner()) = Some(error);
            }
        });
        failure.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(Ok(()), Err)
    }
}

/// How sums become entries of C.
#[derive(Clone, Copy)]
pub(super) struct Entries<'a, A> {
    pub alpha: A,
    /// Whether entries of exactly zero are left out.
    pub drop_zeros: bool,
    /// The columns of C that the accumulator's columns stand for, where these are labels.
    pub names: Option<IndexSlice<'a>>,
    /// Whether C is written with streaming stores, where entries are stored unchanged.
    pub streaming: bool,
}

/// A product to compute.
pub(super) struct Task<'a, A, X> {
    pub job: Job<'a, A, X>,
    pub needs: Needs,
    pub entries: Entries<'a, A>,
    pub units: &'a [Unit],
    /// Columns of C.
    pub ncols: usize,
    /// Upper bound of the entries of C.
    pub bound: u128,
    /// Types of the column indices and the row offsets of C.
    pub types: (IndexType, IndexType),
    pub threads: &'a Threads,
    pub isa: Isa,
}

impl<'a, A> Task<'a, A, IndexSlice<'a>> {
    /// The same, if the indices of A and the row offsets of B are 32 bits wide.
    pub fn narrow(&self) -> Option<Task<'a, A, &'a [u32]>>
    where
        A: Copy,
    {
        let Job { a, a_values, b, b_values, canonical, ranges, sorted, clustered } = self.job;
        let job = Job {
            a: a.narrow()?,
            b: b.narrow()?,
            a_values,
            b_values,
            canonical,
            ranges,
            sorted,
            clustered,
        };
        let Task { needs, entries, units, ncols, bound, types, threads, isa, .. } = *self;
        Some(Task { job, needs, entries, units, ncols, bound, types, threads, isa })
    }
}

// Below this many bytes an upper bound is allocated without a query of the free memory.
const SMALL: u128 = 256 << 20;

/// Computes C, with values of type `U`.
///
/// # Errors
/// [`Error::Overflow`] when the entries of C outnumber the offset type, [`Error::OutOfMemory`].
pub(super) fn multiply<S: Ops<A>, A: Arith, X: Indices, U: Scalar<Accum = A>>(
    s: S,
    task: &Task<'_, A, X>,
    workers: &Workers<A>,
) -> Result<Product<U>> {
    let Task { job, needs, entries, units, threads, .. } = task;
    let mut assembly = match for_bound(task)? {
        Some(assembly) => assembly,
        None => Assembly::<U>::new(job.a.nrows, units, count(task, workers)?, task.types)?,
    };
    let target = assembly.target();
    let Entries { alpha, names, .. } = *entries;
    let as_they_are = alpha == s.one() && TypeId::of::<U>() == TypeId::of::<A>();
    let place = |unit: usize, chunk: &mut Chunk<A>, start: usize| {
        let store = (!as_they_are).then_some(|sum| {
            U::from_accum(if alpha == s.one() { sum } else { s.scale(alpha, sum) })
        });
        // SAFETY: the caller owns the unit, computed it, and `start` is where it begins; C holds
        // all units.
        unsafe { target.place(&units[unit], chunk, start, names, store, entries.streaming) };
        assembly.placed();
    };
    workers.each_unit(threads, s.zero(), *needs, units.len(), &|worker, unit| {
        let bound = units[unit].bound;
        let mut chunk = match worker.free.iter().rposition(|c| c.holds(bound)) {
            Some(at) => worker.free.swap_remove(at),
            None => Chunk::new(bound)?,
        };
        // SAFETY: the counter gives the unit to this thread; the chunk and accumulator hold it,
        // and the instruction set was found on this machine.
        unsafe {
            let Worker { accumulator, .. } = worker;
            compute_unit(s, task, &units[unit], accumulator, &mut chunk, target.offsets);
        }
        assembly.counted(unit, chunk.len);
        worker.pending.push((unit, chunk));
        place_pending(worker, &|unit| assembly.start(unit), &place);
        Ok(())
    })?;
    // Some chunks may have been finished before an earlier unit and not been copied yet.
    let left = if assembly.complete() { 0 } else { workers.workers.len() };
    threads.each(left, |k| {
        let mut worker = workers.workers[k].lock().unwrap_or_else(|e| e.into_inner());
        place_pending(&mut worker, &|unit| assembly.start(unit), &place);
    });
    // SAFETY: every unit was computed and placed.
    Ok(unsafe { assembly.finish(task.ncols) })
}

fn place_pending<A: Arith>(
    worker: &mut Worker<A>,
    start: &dyn Fn(usize) -> Option<usize>,
    place: &dyn Fn(usize, &mut Chunk<A>, usize),
) {
    let Worker { free, pending, .. } = worker;
    let mut at = 0;
    while at < pending.len() {
        let Some(start) = start(pending[at].0) else {
            at += 1;
            continue;
        };
        let (unit, mut chunk) = pending.swap_remove(at);
        place(unit, &mut chunk, start);
        free.push(chunk);
    }
}

/// Memory for the upper bound of C's entries; none where there is too little.
fn for_bound<'a, A, X, U: Scalar>(task: &Task<'a, A, X>) -> Result<Option<Assembly<'a, U>>> {
    let (column, offset) = task.types;
    let bytes = task.bound * (column.bytes() + size_of::<U>()) as u128;
    // An eighth is left for other uses of memory in the meantime.
    let fits =
        bytes <= SMALL || available_memory().is_none_or(|all| bytes <= u128::from(all - all / 8));
    if !fits || task.bound > u128::from(most(offset)) {
        return Ok(None);
    }
    match Assembly::new(task.job.a.nrows, task.units, task.bound as usize, task.types) {
        // The memory was taken since the query.
        Err(Error::OutOfMemory { .. }) => Ok(None),
        assembly => assembly.map(Some),
    }
}

/// The number of entries of C.
pub(super) fn count<A: Arith, X: Indices>(
    task: &Task<'_, A, X>,
    workers: &Workers<A>,
) -> Result<usize> {
    let Task { job, units, threads, types: (_, offset), .. } = task;
    let total = AtomicUsize::new(0);
    workers.each_unit(threads, A::zero(), Needs::COUNT, units.len(), &|worker, unit| {
        let rows = units[unit].rows.clone();
        let count: usize = rows.map(|row| job.count(row, &mut worker.accumulator)).sum();
        total.fetch_add(count, Ordering::Relaxed);
        Ok(())
    })?;
    let total = total.into_inner();
    if total as u64 > most(*offset) {
        let what = "row offset of C";
        return Err(Error::Overflow { what, need: total as u128, index_type: *offset });
    }
    Ok(total)
}

/// Computes the rows of a unit into its chunk; row ends count from the unit's start.
///
/// # Safety
/// The machine has the instruction set; the unit belongs to this thread, and its chunk and the
/// accumulator hold it.
unsafe fn compute_unit<S: Ops<A>, A: Arith, X: Indices>(
    s: S,
    task: &Task<'_, A, X>,
    unit: &Unit,
    accumulator: &mut Accumulator<A>,
    chunk: &mut Chunk<A>,
    ends: SharedIndices<'_>,
) {
    // AVX2 has no scatter, so it runs the portable code.
    #[cfg(target_arch = "x86_64")]
    if task.isa == Isa::Avx512 {
        // SAFETY: the machine has the instruction set; the rest as promised.
        return unsafe { unit_avx512(s, task, unit, accumulator, chunk, ends) };
    }
    // SAFETY: promised by the caller.
    unsafe { unit_body::<S, vector::Scalar, _, _>(s, task, unit, accumulator, chunk, ends) }
}

/// # Safety
/// As [`compute_unit`], on a machine with AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn unit_avx512<S: Ops<A>, A: Arith, X: Indices>(
    s: S,
    task: &Task<'_, A, X>,
    unit: &Unit,
    accumulator: &mut Accumulator<A>,
    chunk: &mut Chunk<A>,
    ends: SharedIndices<'_>,
) {
    // SAFETY: promised by the caller.
    unsafe {
        unit_body::<S, super::avx512::Avx512, _, _>(s, task, unit, accumulator, chunk, ends);
    }
}

/// # Safety
/// As [`compute_unit`].
#[inline(always)]
unsafe fn unit_body<S: Ops<A>, V: Vector, A: Arith, X: Indices>(
    s: S,
    task: &Task<'_, A, X>,
    unit: &Unit,
    accumulator: &mut Accumulator<A>,
    chunk: &mut Chunk<A>,
    ends: SharedIndices<'_>,
) {
    let Task { job, entries, .. } = task;
    let (columns, sums) = (chunk.columns.as_mut_ptr(), chunk.sums.as_mut_ptr());
    // SAFETY: row ends are this thread's.
    let end = unsafe { ends.ends() };
    if !unit.merges && !entries.drop_zeros {
        // SAFETY: the chunk holds the unit's bound.
        chunk.len = unsafe { job.scale(s, unit.rows.clone(), columns, sums, end) };
        return;
    }
    accumulator.slots.reserve(unit.bound);
    if !job.sorted && unit.longest < LONG && !entries.drop_zeros {
        // SAFETY: the chunk holds the unit's bound.
        chunk.len =
            unsafe { job.merge(s, unit.rows.clone(), &mut accumulator.slots, columns, sums, end) };
        accumulator.slots.note(chunk.len, unit.products);
        return;
    }
    // Rows with one row of B are copied, and need no slots.
    let short = unit.merges && job.sorted && unit.longest < SHORT;
    let mut len = 0;
    for row in unit.rows.clone() {
        if job.a.range(row).is_empty() {
            end(row, len);
            continue;
        }
        // SAFETY: the chunk holds the unit's bound.
        unsafe {
            let (columns, sums) = (columns.add(len), sums.add(len));
            let mut n = if short {
                job.merge_sorted::<S, V>(s, row, accumulator, columns, sums)
            } else {
                job.compute::<S, V>(s, row, accumulator, columns, sums)
            };
            if entries.drop_zeros {
                n = drop_zeros(s, entries.alpha, columns, sums, n);
            }
            len += n;
        }
        end(row, len);
    }
    accumulator.slots.note(len, unit.products);
    chunk.len = len;
}

/// Closes the gaps of entries whose scaled sum is the semiring's zero.
///
/// # Safety
/// Both arrays hold `n` elements.
unsafe fn drop_zeros<S: Ops<A>, A: Arith>(
    s: S,
    alpha: A,
    columns: *mut u32,
    sums: *mut A,
    n: usize,
) -> usize {
    let mut left = 0;
    for at in 0..n {
        // SAFETY: `left <= at < n`.
        unsafe {
            let sum = *sums.add(at);
            *columns.add(left) = *columns.add(at);
            *sums.add(left) = sum;
            left += usize::from(s.scale(alpha, sum) != s.zero());
        }
    }
    left
}
