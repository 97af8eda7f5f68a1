//! `gustavson`: row-wise products (Gustavson 1978) in one pass. Work is cut by intermediate
//! products; every row picks its accumulator; rows move to C as soon as their place is known.
//! Where an upper bound of C does not fit in memory, entries are counted first.

use std::any::TypeId;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use gustav_core::buffer::available_memory;
use gustav_core::parallel::Shared;
use gustav_core::{Arith, Csr, Error, Index, Result, Scalar, Semiring};

use super::accumulator::{Accumulator, Needs};
use super::assemble::{Assembly, Chunk, Target};
use super::row::{Job, LONG, SHORT};
use super::units::Unit;
use super::vector::{self, Vector};
use crate::Threads;
use crate::arch::{Isa, stream};

/// What one thread works with.
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

    /// Runs `work(worker, unit)` for every unit, each on one thread, in about ascending order;
    /// stops at the first error.
    pub fn each_unit(
        &self,
        threads: &Threads,
        zero: A,
        needs: Needs,
        units: usize,
        work: impl Fn(&mut Worker<A>, usize) -> Result<()> + Sync,
    ) -> Result<()> {
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let failure = Mutex::new(None);
        threads.each(self.workers.len(), |k| {
            let mut worker = self.workers[k].lock().unwrap_or_else(|e| e.into_inner());
            // What a product that failed has left.
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

/// How sums become entries.
#[derive(Clone, Copy)]
pub(super) struct Entries<'a, A, I> {
    pub alpha: A,
    /// Whether entries that come out as exactly zero are left out.
    pub drop_zeros: bool,
    /// The columns of C behind the accumulator's, where they are not the same.
    pub columns: Option<&'a [I]>,
    /// Whether C is written past the caches, where entries are stored as they are.
    pub streaming: bool,
}

/// A product to compute.
pub(super) struct Product<'a, T: Scalar, I: Index, J: Index, O: Index> {
    pub job: Job<'a, T, I, J, O>,
    pub needs: Needs,
    pub entries: Entries<'a, T::Accum, I>,
    pub units: &'a [Unit],
    /// Columns of C.
    pub ncols: usize,
    /// Entries of C at most.
    pub bound: u128,
    /// Receives a digest of every unit's pattern.
    pub digests: Option<&'a mut [u64]>,
}

// An upper bound below this many bytes is not worth asking how much memory is free.
const SMALL: u128 = 256 << 20;

/// Computes C, with values of type `U`.
///
/// # Errors
/// [`Error::Overflow`] when the entries of C outnumber the offset type, [`Error::OutOfMemory`].
pub(super) fn multiply<S, U, T, I, J, O>(
    product: Product<'_, T, I, J, O>,
    workers: &Workers<T::Accum>,
    threads: &Threads,
    isa: Isa,
) -> Result<Csr<U, I, O>>
where
    S: Semiring<T::Accum>,
    U: Scalar<Accum = T::Accum>,
    T: Scalar,
    I: Index,
    J: Index,
    O: Index,
{
    let Product { job, needs, entries, units, ncols, bound, digests } = product;
    let mut assembly = match for_bound(job.a.nrows(), units, bound)? {
        Some(assembly) => assembly,
        None => {
            let count = count::<T, I, J, O>(&job, units, workers, threads)?;
            Assembly::<U, I, O>::new(job.a.nrows(), units, count)?
        }
    };
    let target = assembly.target();
    let keep = digests.is_some();
    let mut unused = [];
    let digests = Shared::new(digests.unwrap_or(&mut unused));
    let place = |unit: usize, chunk: &mut Chunk<T::Accum>, start: usize| {
        // SAFETY: the caller owns the unit, computed it, and `start` is its place; C has room
        // for all units.
        let digest =
            unsafe { place::<S, _, _, _>(&target, &units[unit], chunk, start, entries, keep) };
        if keep {
            // SAFETY: one element per unit.
            unsafe { digests.slice(unit..unit + 1)[0] = digest };
        }
        assembly.placed();
    };
    workers.each_unit(threads, S::zero(), needs, units.len(), |worker, unit| {
        let bound = units[unit].bound;
        let mut chunk = match worker.free.iter().rposition(|c| c.holds(bound)) {
            Some(at) => worker.free.swap_remove(at),
            None => Chunk::new(bound)?,
        };
        // SAFETY: the counter gives the unit to this thread; the chunk and accumulator have
        // room, and the instruction set was found on this machine.
        unsafe {
            compute_unit::<S, _, _, _, _>(
                isa,
                &job,
                &units[unit],
                &entries,
                &mut worker.accumulator,
                &mut chunk,
                target.offsets,
            );
        }
        assembly.counted(unit, chunk.len);
        worker.pending.push((unit, chunk));
        place_pending(worker, |unit| assembly.start(unit), place);
        Ok(())
    })?;
    // Chunks that were finished before an earlier unit was.
    let left = if assembly.complete() { 0 } else { workers.workers.len() };
    threads.each(left, |k| {
        let mut worker = workers.workers[k].lock().unwrap_or_else(|e| e.into_inner());
        place_pending(&mut worker, |unit| assembly.start(unit), place);
    });
    // SAFETY: every unit was computed and placed.
    Ok(unsafe { assembly.finish(ncols) })
}

fn place_pending<A: Arith>(
    worker: &mut Worker<A>,
    start: impl Fn(usize) -> Option<usize>,
    place: impl Fn(usize, &mut Chunk<A>, usize),
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

/// Room for as many entries as C may have, where there is memory for that.
fn for_bound<T: Scalar, I: Index, O: Index>(
    nrows: usize,
    units: &[Unit],
    bound: u128,
) -> Result<Option<Assembly<'_, T, I, O>>> {
    let bytes = bound * (size_of::<I>() + size_of::<T>()) as u128;
    // An eighth is left to what else needs memory meanwhile.
    let fits =
        bytes <= SMALL || available_memory().is_none_or(|all| bytes <= u128::from(all - all / 8));
    if !fits || bound > u128::from(O::MAX) {
        return Ok(None);
    }
    match Assembly::new(nrows, units, bound as usize) {
        // Memory that was free a moment ago.
        Err(Error::OutOfMemory { .. }) => Ok(None),
        assembly => assembly.map(Some),
    }
}

/// The number of entries of C.
pub(super) fn count<T: Scalar, I: Index, J: Index, O: Index>(
    job: &Job<'_, T, I, J, O>,
    units: &[Unit],
    workers: &Workers<T::Accum>,
    threads: &Threads,
) -> Result<usize> {
    let total = AtomicUsize::new(0);
    let needs = Needs::COUNT;
    workers.each_unit(threads, T::Accum::zero(), needs, units.len(), |worker, unit| {
        let rows = units[unit].rows.clone();
        let count: usize = rows.map(|row| job.count(row, &mut worker.accumulator)).sum();
        total.fetch_add(count, Ordering::Relaxed);
        Ok(())
    })?;
    let total = total.into_inner();
    O::try_from_usize(total, "row offset of C")?;
    Ok(total)
}

/// # Safety
/// As [`Target::place`].
unsafe fn place<S: Semiring<T::Accum>, T: Scalar, I: Index, O: Index>(
    target: &Target<'_, T, I, O>,
    unit: &Unit,
    chunk: &mut Chunk<T::Accum>,
    start: usize,
    entries: Entries<'_, T::Accum, I>,
    digest: bool,
) -> u64 {
    let alpha = entries.alpha;
    let scaled = each(|sum| T::from_accum(S::scale(alpha, sum)));
    let as_they_are = TypeId::of::<(I, T)>() == TypeId::of::<(u32, T::Accum)>();
    // SAFETY: promised by the caller.
    unsafe {
        match (entries.columns, alpha == S::one()) {
            (None, true) if as_they_are && entries.streaming => {
                let digest = target.place(unit, chunk, start, past_caches, past_caches, digest);
                stream::fence();
                digest
            }
            (None, true) => {
                target.place(unit, chunk, start, each(narrow), each(T::from_accum), digest)
            }
            (None, false) => target.place(unit, chunk, start, each(narrow), scaled, digest),
            (Some(columns), _) => {
                let named = each(|j: u32| columns[j as usize]);
                target.place(unit, chunk, start, named, scaled, digest)
            }
        }
    }
}

/// Writes what `convert` makes of every element.
#[inline(always)]
fn each<A: Copy, B>(convert: impl Fn(A) -> B) -> impl Fn(&mut [B], &[A]) {
    #[inline(always)]
    move |to, from| to.iter_mut().zip(from).for_each(|(to, from)| *to = convert(*from))
}

/// Copies elements of the same type.
fn past_caches<A: Pod, B: Pod>(to: &mut [B], from: &[A]) {
    stream::copy(cast_slice_mut(to), cast_slice(from));
}

#[inline(always)]
fn narrow<I: Index>(column: u32) -> I {
    I::truncate(column as usize)
}

/// Computes the rows of a unit into its chunk; row ends count from the unit's start.
///
/// # Safety
/// The machine has `isa`; the unit belongs to this thread, and its chunk and the accumulator have
/// room.
unsafe fn compute_unit<S: Semiring<T::Accum>, T: Scalar, I: Index, J: Index, O: Index>(
    isa: Isa,
    job: &Job<'_, T, I, J, O>,
    unit: &Unit,
    entries: &Entries<'_, T::Accum, I>,
    accumulator: &mut Accumulator<T::Accum>,
    chunk: &mut Chunk<T::Accum>,
    ends: Shared<'_, O>,
) {
    // Scattered sums gain nothing from AVX2: it runs the portable code.
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx512 {
        // SAFETY: the machine has the instruction set; the rest as promised.
        return unsafe {
            unit_avx512::<S, _, _, _, _>(job, unit, entries, accumulator, chunk, ends)
        };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = isa;
    // SAFETY: promised by the caller.
    unsafe {
        unit_body::<S, vector::Scalar, _, _, _, _>(job, unit, entries, accumulator, chunk, ends)
    }
}

/// # Safety
/// As [`compute_unit`], on a machine with AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn unit_avx512<S: Semiring<T::Accum>, T: Scalar, I: Index, J: Index, O: Index>(
    job: &Job<'_, T, I, J, O>,
    unit: &Unit,
    entries: &Entries<'_, T::Accum, I>,
    accumulator: &mut Accumulator<T::Accum>,
    chunk: &mut Chunk<T::Accum>,
    ends: Shared<'_, O>,
) {
    // SAFETY: promised by the caller.
    unsafe {
        unit_body::<S, super::avx512::Avx512, _, _, _, _>(
            job,
            unit,
            entries,
            accumulator,
            chunk,
            ends,
        )
    }
}

/// # Safety
/// As [`compute_unit`].
#[inline(always)]
unsafe fn unit_body<S: Semiring<T::Accum>, V: Vector, T: Scalar, I: Index, J: Index, O: Index>(
    job: &Job<'_, T, I, J, O>,
    unit: &Unit,
    entries: &Entries<'_, T::Accum, I>,
    accumulator: &mut Accumulator<T::Accum>,
    chunk: &mut Chunk<T::Accum>,
    ends: Shared<'_, O>,
) {
    let (columns, sums) = (chunk.columns.as_mut_ptr(), chunk.sums.as_mut_ptr());
    // SAFETY: row ends are this thread's.
    let end = |row, len| unsafe { ends.slice(row + 1..row + 2)[0] = O::truncate(len) };
    if !unit.merges && !entries.drop_zeros {
        // SAFETY: the unit's bound leaves room for every row.
        chunk.len = unsafe { job.scale::<S>(unit.rows.clone(), columns, sums, end) };
        return;
    }
    accumulator.slots.reserve(unit.bound);
    if !job.sorted && unit.longest < LONG && !entries.drop_zeros {
        // SAFETY: the unit's bound leaves room for every row.
        chunk.len =
            unsafe { job.meet::<S>(unit.rows.clone(), &mut accumulator.slots, columns, sums, end) };
        accumulator.slots.note(chunk.len, unit.products);
        return;
    }
    // Rows that merge nothing are copied, and have no places.
    let short = unit.merges && job.sorted && unit.longest < SHORT;
    let mut len = 0;
    for row in unit.rows.clone() {
        if job.a.row_range(row).is_empty() {
            end(row, len);
            continue;
        }
        // SAFETY: the unit's bound leaves room for every row.
        unsafe {
            let (columns, sums) = (columns.add(len), sums.add(len));
            let mut n = if short {
                job.meet_sorted::<S, V>(row, accumulator, columns, sums)
            } else {
                job.compute::<S, V>(row, accumulator, columns, sums)
            };
            if entries.drop_zeros {
                n = drop_zeros::<S, _>(entries.alpha, columns, sums, n);
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
unsafe fn drop_zeros<S: Semiring<A>, A: Arith>(
    alpha: A,
    columns: *mut u32,
    sums: *mut A,
    n: usize,
) -> usize {
    let mut kept = 0;
    for at in 0..n {
        // SAFETY: `kept <= at < n`.
        unsafe {
            let sum = *sums.add(at);
            *columns.add(kept) = *columns.add(at);
            *sums.add(kept) = sum;
            kept += usize::from(S::scale(alpha, sum) != S::zero());
        }
    }
    kept
}

/// The error for a product that a plan was asked for before it knows the pattern of C.
pub(super) fn unknown_pattern(found: String) -> Error {
    Error::Pattern { expected: "an earlier product of this plan".into(), found }
}
