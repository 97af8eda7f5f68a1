//! Copies finished rows to C while others are being computed. The rows of a unit stay in a
//! cache-sized chunk until all earlier units are counted, and are then copied once. Memory for an
//! upper bound of C is allocated, but only the pages that C fills are touched.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytemuck::{cast_slice, cast_slice_mut};
use gustav_core::buffer::{UninitBuffer, try_vec};
use gustav_core::parallel::Shared;
use gustav_core::{Arith, Buffer, IndexSlice, IndexType, Result, Scalar};

use super::accumulator::BLOCK;
use super::operands::{Indices, Product, SharedIndices, UninitIndices};
use super::units::Unit;
use crate::arch::stream;

/// Columns and sums of a unit before they are copied to C.
pub(super) struct Chunk<A> {
    pub columns: UninitBuffer<u32>,
    pub sums: UninitBuffer<A>,
    pub len: usize,
}

impl<A: Arith> Chunk<A> {
    /// For `bound` entries, and one block more, which vector stores may write.
    pub fn new(bound: usize) -> Result<Self> {
        let capacity = bound + BLOCK;
        Ok(Chunk {
            columns: Buffer::uninit(capacity, "rows of C")?,
            sums: Buffer::uninit(capacity, "rows of C")?,
            len: 0,
        })
    }

    pub fn holds(&self, bound: usize) -> bool {
        self.columns.capacity() >= bound + BLOCK
    }
}

const UNKNOWN: u64 = u64::MAX;

/// C under construction.
pub(super) struct Assembly<'a, U> {
    units: &'a [Unit],
    nrows: usize,
    offsets: UninitIndices,
    columns: UninitIndices,
    values: UninitBuffer<U>,
    counts: Vec<AtomicU64>,
    starts: Vec<AtomicU64>,
    /// The first unit that is not counted yet.
    frontier: Mutex<usize>,
    /// How many units were copied to C.
    placed: AtomicUsize,
}

/// The arrays of C, for threads that write disjoint rows.
#[derive(Clone, Copy)]
pub(super) struct Target<'a, U> {
    pub offsets: SharedIndices<'a>,
    columns: SharedIndices<'a>,
    values: Shared<'a, U>,
}

fn unknown(len: usize) -> Result<Vec<AtomicU64>> {
    let mut v = try_vec(len, "units")?;
    v.resize_with(len, || AtomicU64::new(UNKNOWN));
    Ok(v)
}

impl<'a, U: Scalar> Assembly<'a, U> {
    /// For `capacity` entries, with column indices and row offsets of these types.
    pub fn new(
        nrows: usize,
        units: &'a [Unit],
        capacity: usize,
        (column, offset): (IndexType, IndexType),
    ) -> Result<Self> {
        let starts = unknown(units.len() + 1)?;
        starts[0].store(0, Ordering::Relaxed);
        Ok(Assembly {
            units,
            nrows,
            offsets: UninitIndices::new(offset, nrows.saturating_add(1), "row offsets of C")?,
            columns: UninitIndices::new(column, capacity, "column indices of C")?,
            values: Buffer::uninit(capacity, "values of C")?,
            counts: unknown(units.len())?,
            starts,
            frontier: Mutex::new(0),
            placed: AtomicUsize::new(0),
        })
    }

    pub fn target(&mut self) -> Target<'a, U> {
        // SAFETY: the buffers live as long as the assembly, which outlives the threads that
        // write; nothing else uses them until `finish`.
        unsafe {
            Target {
                offsets: self.offsets.shared(),
                columns: self.columns.shared(),
                values: Shared::from_raw(self.values.as_mut_ptr(), self.values.capacity()),
            }
        }
    }

    /// Records that unit `unit` has `count` entries.
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

    /// Records that a unit was copied to C.
    pub fn placed(&self) {
        self.placed.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether every unit was copied to C.
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

    /// C, after every unit was counted and copied.
    ///
    /// # Safety
    /// Every unit was copied to its start.
    pub unsafe fn finish(mut self, ncols: usize) -> Product<U> {
        let nnz = self.start(self.units.len()).unwrap_or(0);
        // SAFETY: units cover all rows, and their entries are contiguous from 0 to nnz.
        unsafe {
            self.offsets.shared().put(0, 0);
            let pattern = self.offsets.into_pattern(self.columns, self.nrows, ncols, nnz);
            Product { pattern, values: self.values.assume_init(nnz) }
        }
    }
}

impl<U: Scalar> Target<'_, U> {
    /// Copies a unit's chunk to `start`: row ends become offsets, labels become columns by `names`,
    /// and sums become values by `store`, or are copied without it. `streaming` copies with
    /// streaming stores.
    ///
    /// # Safety
    /// The unit belongs to this thread, its row ends and chunk are written, and its entries fit
    /// at `start`.
    pub unsafe fn place(
        &self,
        unit: &Unit,
        chunk: &mut Chunk<U::Accum>,
        start: usize,
        names: Option<IndexSlice<'_>>,
        store: Option<impl Fn(U::Accum) -> U>,
        streaming: bool,
    ) {
        let len = chunk.len;
        // SAFETY: promised by the caller; values are copied only where they have the type of sums.
        unsafe {
            self.offsets.shift(unit.rows.start + 1..unit.rows.end + 1, start);
            let columns = std::slice::from_raw_parts(chunk.columns.as_mut_ptr(), len);
            place_columns(self.columns, start, columns, names, streaming);
            let sums = std::slice::from_raw_parts(chunk.sums.as_mut_ptr(), len);
            let values = self.values.slice(start..start + len);
            match store {
                None => copy(cast_slice_mut(values), cast_slice(sums), streaming),
                Some(store) => {
                    values.iter_mut().zip(sums).for_each(|(value, sum)| *value = store(*sum));
                }
            }
        }
        if streaming {
            stream::fence();
        }
    }
}

/// # Safety
/// The columns fit at `start`, where this thread writes.
unsafe fn place_columns(
    to: SharedIndices<'_>,
    start: usize,
    columns: &[u32],
    names: Option<IndexSlice<'_>>,
    streaming: bool,
) {
    let range = start..start + columns.len();
    // SAFETY: promised by the caller.
    unsafe {
        match (to, names) {
            (SharedIndices::U32(to), None) => {
                copy(cast_slice_mut(to.slice(range)), cast_slice(columns), streaming);
            }
            (SharedIndices::U64(to), None) => {
                let to = to.slice(range).iter_mut();
                to.zip(columns).for_each(|(to, label)| *to = u64::from(*label));
            }
            (to, Some(names)) => {
                for (at, label) in range.zip(columns) {
                    to.put(at, names.at(*label as usize));
                }
            }
        }
    }
}

fn copy(to: &mut [u8], from: &[u8], streaming: bool) {
    if streaming {
        stream::copy(to, from);
    } else {
        to.copy_from_slice(from);
    }
}
