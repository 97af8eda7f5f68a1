//! Maximum or minimum of the products of a row in place of their sum, and the winners: the nonzeros
//! that attain it.
//!
//! Rows are taken whole, in parts of about the same work (`row-split`); where few rows have most of
//! the work, the columns are divided as well. Registers hold a row of C and for every element the
//! position of its winner, as a number of the type of sums. A row is processed in chunks that are
//! short enough for this type to count their nonzeros exactly.

use std::ops::Range;

use gustav_core::parallel::Shared;
use gustav_core::{Arith, Extremum, Index, IndexSlice, Ops, Scalar, Semiring, WinnersMut};

use super::kernel::{Panel, Panels, for_each_panel};
use super::operands::Operands;
use super::row_split;
use crate::Threads;
use crate::arch::Isa;
use crate::arch::vector::{Vector, Work, beats};
use crate::static_partition::StaticPartition;
use crate::types::CpuScalar;

// Nonzeros of a chunk: every type of sums represents positions in it exactly.
const CHUNK: usize = 1 << 12;
// Columns of a strip, where columns are divided.
const STRIP: usize = 64;
// Vectors of 64 bytes have 32 registers, smaller ones 16.
const WIDE: usize = 64;
// Rows for which one panel of columns is computed before the next: their part of A stays in L1.
const ROWS: usize = 16;
// Most lanes of a vector.
const LANES: usize = 16;

/// Rows in parts, and strips of columns.
pub(super) struct Split {
    parts: Vec<Range<usize>>,
    /// Columns of a strip.
    strip: usize,
    strips: usize,
    assignment: StaticPartition,
}

/// Outputs of an execution beside the extrema.
pub(super) struct Output<'w, A> {
    /// Value of C in empty rows.
    pub empty: A,
    /// Where winners go.
    pub winners: Option<WinnersMut<'w>>,
}

impl Split {
    pub(super) fn new<O: Index>(offsets: &[O], columns: usize, threads: usize) -> Self {
        let parts = row_split::parts(offsets, columns, threads);
        let nonzeros =
            |rows: &Range<usize>| offsets[rows.end].to_usize() - offsets[rows.start].to_usize();
        let (nnz, most) = (nonzeros(&(0..offsets.len() - 1)), parts.iter().map(nonzeros).max());
        // Uneven: one part exceeds a quarter of what a thread should compute.
        let uneven = most.unwrap_or(0).saturating_mul(4 * threads) > nnz + 4 * threads * CHUNK;
        let strip = if uneven && threads > 1 { STRIP } else { columns.max(1) };
        let strips = columns.div_ceil(strip);
        let assignment = StaticPartition::new(parts.len() * strips, threads);
        Split { parts, strip, strips, assignment }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.parts[..]) + self.assignment.bytes()
    }

    /// Computes the extrema of the columns of `op`: columns `first..` of the `columns` of `output`.
    pub(super) fn execute<T: CpuScalar, I: Index>(
        &mut self,
        threads: &Threads,
        isa: Isa,
        (op, extremum): (&Operands<'_, T, I>, Extremum),
        output: &mut Output<'_, T::Accum>,
        (first, columns): (usize, usize),
        permutation: Option<IndexSlice<'_>>,
    ) {
        let winners = output.winners.as_mut().map(|winners| {
            let to = match winners {
                WinnersMut::U32(winners) => To::U32(Shared::new(winners)),
                WinnersMut::U64(winners) => To::U64(Shared::new(winners)),
            };
            Winners { to, columns, permutation }
        });
        let Split { parts, strip, strips, assignment } = self;
        let (parts, winners, empty) = (&parts[..], winners.as_ref(), output.empty);
        assignment.run(threads, |_, task| {
            let (rows, start) = (parts[task / *strips].clone(), task % *strips * *strip);
            // A panel of a column-major C may have fewer columns than were planned.
            let Some(left) = op.columns.checked_sub(start) else { return };
            // SAFETY: the strip begins within the rows of B and C.
            let (b, c) = unsafe { (op.b.add(start), op.c.add(start)) };
            let op = &Operands { b, c, columns: left.min(*strip), ..*op };
            let first = first + start;
            // SAFETY: the plan checked that the instruction set is there; parts and strips are
            // disjoint.
            unsafe {
                match extremum {
                    Extremum::Max => {
                        let rows = Rows::<T, I, true> { op, rows, empty, first, winners };
                        T::vectorize(isa, Semiring::PlusTimes, rows)
                    }
                    Extremum::Min => {
                        let rows = Rows::<T, I, false> { op, rows, empty, first, winners };
                        T::vectorize(isa, Semiring::PlusTimes, rows)
                    }
                }
            }
        });
    }
}

/// Output of winners, `columns` in a row; their positions are mapped by the permutation.
struct Winners<'a> {
    to: To<'a>,
    columns: usize,
    permutation: Option<IndexSlice<'a>>,
}

/// Winners of either type.
enum To<'a> {
    U32(Shared<'a, u32>),
    U64(Shared<'a, u64>),
}

impl Winners<'_> {
    /// Writes position `winner` of op(A), or the mark for none, for an element of C.
    ///
    /// # Safety
    /// No other thread writes the element; it is in bounds, and so is the winner.
    #[inline(always)]
    unsafe fn put(&self, row: usize, column: usize, winner: Option<usize>) {
        let at = row * self.columns + column;
        let winner = match (winner, self.permutation) {
            (Some(winner), Some(permutation)) => permutation.get(winner),
            (Some(winner), None) => winner,
            // The mark for none: the largest number, also when truncated to 32 bits.
            (None, _) => usize::MAX,
        };
        // SAFETY: promised by the caller.
        unsafe {
            match self.to {
                To::U32(to) => to.put(at, winner as u32),
                To::U64(to) => to.put(at, winner as u64),
            }
        }
    }
}

/// Whole rows of C, one after another.
struct Rows<'a, T: Scalar, I, const MAX: bool> {
    op: &'a Operands<'a, T, I>,
    rows: Range<usize>,
    empty: T::Accum,
    /// Column of the winners that corresponds to the first column of C.
    first: usize,
    winners: Option<&'a Winners<'a>>,
}

impl<T: Scalar, I: Index, const MAX: bool> Rows<'_, T, I, MAX> {
    /// The extrema of the nonzeros in `chunk`, and their winners as positions in the chunk.
    ///
    /// # Safety
    /// The nonzeros exist, their indices lie within B; the instruction set is available.
    #[inline(always)]
    unsafe fn chunk<V: Vector<T>, const W: usize, const TAIL: bool>(
        &self,
        panel: &Panel<T, V, W, TAIL>,
        chunk: Range<usize>,
    ) -> ([V::V; W], [V::V; W]) {
        let (op, times) = (self.op, V::S::of(Semiring::PlusTimes));
        let worst = if MAX { T::Accum::NEG_INFINITY } else { T::Accum::INFINITY };
        // SAFETY: promised by the caller.
        unsafe {
            // If no product beats the initial value, the first nonzero is the winner.
            let (mut best, mut winner) = ([V::splat(worst); W], [V::splat(T::Accum::zero()); W]);
            for (k, p) in chunk.enumerate() {
                if op.prefetch_distance > 0 {
                    panel.prefetch(op, p.saturating_add(op.prefetch_distance));
                }
                let a = V::splat(op.values.get_unchecked(p).to_accum());
                let at = V::splat(T::Accum::from_i64(k as i64));
                let row = op.b.add(op.indices.get_unchecked(p).to_usize() * op.ldb);
                for w in 0..W {
                    let product = V::scale(times, a, panel.load(row, w));
                    (best[w], winner[w]) = V::win::<MAX>(product, at, best[w], winner[w]);
                }
            }
            (best, winner)
        }
    }
}

impl<T: Scalar, I: Index, const MAX: bool> Panels<T> for Rows<'_, T, I, MAX> {
    #[inline(always)]
    unsafe fn panel<V: Vector<T>, const W: usize, const U: usize, const TAIL: bool>(
        &self,
        panel: &Panel<T, V, W, TAIL>,
    ) {
        let Rows { op, empty, first, winners, .. } = *self;
        let times = V::S::of(Semiring::PlusTimes);
        let lanes = (op.columns - panel.start).min(W * V::LANES);
        for row in self.rows.clone() {
            let range = op.offsets.row(row);
            // SAFETY: rows and nonzeros are those of a checked matrix, and the rows of C this
            // thread's.
            unsafe {
                let c = op.c.add(row * op.ldc);
                if range.is_empty() {
                    panel.write(op, c, &[V::splat(empty); W]);
                    if let Some(to) = winners {
                        (0..lanes).for_each(|k| to.put(row, first + panel.start + k, None));
                    }
                    continue;
                }
                let end = range.end.min(range.start + CHUNK);
                let (mut best, winner) = self.chunk(panel, range.start..end);
                if range.len() > CHUNK || winners.is_some() {
                    let mut positions = [[range.start; LANES]; W];
                    add::<T, V, W>(&mut positions, &winner);
                    for start in (end..range.end).step_by(CHUNK) {
                        let end = range.end.min(start + CHUNK);
                        let (products, at) = self.chunk(panel, start..end);
                        merge::<T, V, W, MAX>((&mut best, &mut positions), (&products, &at), start);
                    }
                    if let Some(to) = winners {
                        for k in 0..lanes {
                            let winner = Some(positions[k / V::LANES][k % V::LANES]);
                            to.put(row, first + panel.start + k, winner);
                        }
                    }
                }
                if !op.plain {
                    for w in 0..W {
                        best[w] = V::scale(times, V::splat(op.alpha), best[w]);
                    }
                }
                panel.write(op, c, &best);
            }
        }
    }
}

/// Most vectors of a panel, which take two registers each.
const fn width<T: Scalar, V: Vector<T>>() -> usize {
    let most = if V::LANES * size_of::<T::Accum>() >= WIDE { 8 } else { 4 };
    if V::WIDTH < most { V::WIDTH } else { most }
}

/// Adds positions that are held in the type of sums.
///
/// # Safety
/// The instruction set is available.
#[inline(always)]
unsafe fn add<T: Scalar, V: Vector<T>, const W: usize>(
    positions: &mut [[usize; LANES]; W],
    at: &[V::V; W],
) {
    for w in 0..W {
        // SAFETY: promised by the caller.
        let at = unsafe { lanes::<T, V>(at[w]) };
        for k in 0..V::LANES {
            positions[w][k] += at[k].to_i64() as usize;
        }
    }
}

/// Lets the winners of the chunk from `start` on replace those of the chunks before.
///
/// # Safety
/// The instruction set is available.
#[inline(always)]
unsafe fn merge<T: Scalar, V: Vector<T>, const W: usize, const MAX: bool>(
    (best, positions): (&mut [V::V; W], &mut [[usize; LANES]; W]),
    (products, at): (&[V::V; W], &[V::V; W]),
    start: usize,
) {
    for w in 0..W {
        // SAFETY: promised by the caller; an array has a vector's lanes at least.
        unsafe {
            let (product, at) = (lanes::<T, V>(products[w]), lanes::<T, V>(at[w]));
            let mut all = lanes::<T, V>(best[w]);
            for k in 0..V::LANES {
                if beats::<T::Accum, MAX>(product[k], all[k]) {
                    all[k] = product[k];
                    positions[w][k] = start + at[k].to_i64() as usize;
                }
            }
            best[w] = V::load_sums(all.as_ptr());
        }
    }
}

/// The lanes of a vector, padded with zeros.
///
/// # Safety
/// The instruction set is available.
#[inline(always)]
unsafe fn lanes<T: Scalar, V: Vector<T>>(v: V::V) -> [T::Accum; LANES] {
    const { assert!(V::LANES <= LANES) };
    let mut lanes = [T::Accum::zero(); LANES];
    // SAFETY: promised by the caller; the array has at least as many lanes.
    unsafe { V::store_sums(lanes.as_mut_ptr(), v) };
    lanes
}

impl<T: Scalar, I: Index, const MAX: bool> Work<T> for Rows<'_, T, I, MAX> {
    #[inline(always)]
    unsafe fn run<V: Vector<T>>(self) {
        let columns = self.op.columns;
        let step = if columns <= V::LANES * const { width::<T, V>() } {
            self.rows.len().max(1)
        } else {
            ROWS
        };
        for start in self.rows.clone().step_by(step) {
            let rows = start..self.rows.end.min(start + step);
            let Rows { op, empty, first, winners, .. } = self;
            let block = Rows::<T, I, MAX> { op, rows, empty, first, winners };
            // SAFETY: promised by the caller.
            unsafe { for_each_panel!(T, I, V, columns, width::<T, V>(), block) }
        }
    }
}
