//! Rows of C to their final place while they are being computed. A unit's rows wait in a
//! cache-sized chunk until the units before it are counted, then move to C once: memory for C is
//! touched exactly as far as C reaches, although room was taken for an upper bound.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use gustav_core::buffer::{UninitBuffer, try_vec};
use gustav_core::parallel::Shared;
use gustav_core::{Arith, Buffer, Csr, Index, Result, Scalar};

use super::accumulator::BLOCK;
use super::units::Unit;
use crate::fingerprint;

/// Columns and sums of a unit on their way to C.
pub(super) struct Chunk<A> {
    pub columns: UninitBuffer<u32>,
    pub sums: UninitBuffer<A>,
    pub len: usize,
}

impl<A: Arith> Chunk<A> {
    /// Room for `bound` entries, and the block more that vectors may write.
    pub fn new(bound: usize) -> Result<Self> {
        let room = bound + BLOCK;
        Ok(Chunk {
            columns: Buffer::uninit(room, "rows of C")?,
            sums: Buffer::uninit(room, "rows of C")?,
            len: 0,
        })
    }

    pub fn holds(&self, bound: usize) -> bool {
        self.columns.capacity() >= bound + BLOCK
    }
}

const UNKNOWN: u64 = u64::MAX;

/// C under construction.
pub(super) struct Assembly<'a, T: Scalar, I: Index, O: Index> {
    units: &'a [Unit],
    nrows: usize,
    offsets: UninitBuffer<O>,
    indices: UninitBuffer<I>,
    values: UninitBuffer<T>,
    counts: Vec<AtomicU64>,
    starts: Vec<AtomicU64>,
    /// The first unit that is not counted yet.
    frontier: Mutex<usize>,
    /// How many units were moved to their place.
    placed: AtomicUsize,
}

/// The arrays of C, for threads that write disjoint rows.
#[derive(Clone, Copy)]
pub(super) struct Target<'a, T, I, O> {
    pub offsets: Shared<'a, O>,
    pub indices: Shared<'a, I>,
    pub values: Shared<'a, T>,
}

fn unknown(len: usize) -> Result<Vec<AtomicU64>> {
    let mut v = try_vec(len, "units")?;
    v.resize_with(len, || AtomicU64::new(UNKNOWN));
    Ok(v)
}

impl<'a, T: Scalar, I: Index, O: Index> Assembly<'a, T, I, O> {
    /// Room for `capacity` entries.
    pub fn new(nrows: usize, units: &'a [Unit], capacity: usize) -> Result<Self> {
        let starts = unknown(units.len() + 1)?;
        starts[0].store(0, Ordering::Relaxed);
        Ok(Assembly {
            units,
            nrows,
            offsets: Buffer::uninit(nrows.saturating_add(1), "row offsets of C")?,
            indices: Buffer::uninit(capacity, "column indices of C")?,
            values: Buffer::uninit(capacity, "values of C")?,
            counts: unknown(units.len())?,
            starts,
            frontier: Mutex::new(0),
            placed: AtomicUsize::new(0),
        })
    }

    pub fn target(&mut self) -> Target<'a, T, I, O> {
        // SAFETY: the buffers live as long as the assembly, which outlives the threads that
        // write; nothing else uses them until `finish`.
        unsafe {
            Target {
                offsets: Shared::from_raw(self.offsets.as_mut_ptr(), self.offsets.capacity()),
                indices: Shared::from_raw(self.indices.as_mut_ptr(), self.indices.capacity()),
                values: Shared::from_raw(self.values.as_mut_ptr(), self.values.capacity()),
            }
        }
    }

    /// Says that unit `unit` has `count` entries.
    pub fn counted(&self, unit: usize, count: usize) {
        self.counts[unit].store(count as u64, Ordering::Release);
        let mut frontier = self.frontier.lock().unwrap_or_else(|e| e.into_inner());
        while *frontier < self.units.len() {
            let count = self.counts[*frontier].load(Ordering::Acquire);
            if count == UNKNOWN {
                break;
            }
            let start = self.starts[*frontier].load(Ordering::Relaxed);
            self.starts[*frontier + 1].store(start + count, Ordering::Release);
            *frontier += 1;
        }
    }

    /// Says that a unit was moved to its place.
    pub fn placed(&self) {
        self.placed.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether every unit was moved to its place.
    pub fn complete(&self) -> bool {
        self.placed.load(Ordering::Relaxed) == self.units.len()
    }

    /// Where unit `unit` starts in C, once all units before it are counted.
    pub fn start(&self, unit: usize) -> Option<usize> {
        match self.starts[unit].load(Ordering::Acquire) {
            UNKNOWN => None,
            start => Some(start as usize),
        }
    }

    /// C, after every unit was counted and moved.
    ///
    /// # Safety
    /// Every unit was moved to its start.
    pub unsafe fn finish(mut self, ncols: usize) -> Csr<T, I, O> {
        let nnz = self.start(self.units.len()).unwrap_or(0);
        // SAFETY: units cover all rows, and their entries are contiguous from 0 to nnz.
        unsafe {
            self.offsets.as_mut_ptr().write(O::default());
            Csr::new_unchecked(
                self.nrows,
                ncols,
                self.offsets.assume_init(self.nrows + 1),
                self.indices.assume_init(nnz),
                self.values.assume_init(nnz),
            )
        }
    }
}

impl<T: Scalar, I: Index, O: Index> Target<'_, T, I, O> {
    /// Moves a unit's chunk to `start`: row ends become offsets, `columns` and `values` write the
    /// stored entries. Returns a digest of the pattern when asked for.
    ///
    /// # Safety
    /// The unit belongs to this thread, its row ends and chunk are written, and its entries fit
    /// at `start`.
    #[inline(always)]
    pub unsafe fn place(
        &self,
        unit: &Unit,
        chunk: &mut Chunk<T::Accum>,
        start: usize,
        columns: impl Fn(&mut [I], &[u32]),
        values: impl Fn(&mut [T], &[T::Accum]),
        digest: bool,
    ) -> u64 {
        let len = chunk.len;
        // SAFETY: promised by the caller.
        unsafe {
            let ends = self.offsets.slice(unit.rows.start + 1..unit.rows.end + 1);
            for end in ends.iter_mut() {
                *end = O::truncate(end.to_usize() + start);
            }
            let indices = self.indices.slice(start..start + len);
            columns(indices, std::slice::from_raw_parts(chunk.columns.as_mut_ptr(), len));
            let sums = std::slice::from_raw_parts(chunk.sums.as_mut_ptr(), len);
            values(self.values.slice(start..start + len), sums);
            if digest { pattern_digest(ends, indices) } else { 0 }
        }
    }
}

/// Digest of a unit's row ends and columns.
pub(super) fn pattern_digest<I: Index, O: Index>(ends: &[O], indices: &[I]) -> u64 {
    fingerprint::of_slice(ends).rotate_left(1) ^ fingerprint::of_slice(indices)
}
