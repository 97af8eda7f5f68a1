//! `column-panel` (ours, after the tiling of Yang, Buluç, Owens 2018, §6): tiles of B rows that
//! stay in L2.
//!
//! Rows of C are taken in chunks whose sums also stay in L2. For a chunk, the tiles of B are
//! processed one after another; every row adds the nonzeros whose columns lie in the tile. The plan
//! stores where tiles cut each row; a row with unsorted columns is summed whole in the last tile.

use std::ops::Range;

use gustav_core::{Arith, Buffer, Index, Ops, PatternView, Result, Scalar};

use super::kernel::{Panel, Panels, for_each_panel};
use super::operands::Operands;
use crate::Threads;
use crate::arch::Isa;
use crate::arch::vector::{Vector, Work};
use crate::offsets::Offsets;
use crate::static_partition::StaticPartition;
use crate::types::CpuScalar;

pub(super) struct ColumnPanel<A, O> {
    /// Rows of B in a tile.
    tile: usize,
    /// `ends[t * rows + r]`: where the nonzeros of row r in tiles up to t end.
    ends: Buffer<O>,
    tiles: usize,
    chunks: Vec<Range<usize>>,
    assignment: StaticPartition,
    /// Sums of one chunk for every thread.
    sums: Buffer<A>,
    stride: usize,
    rows_per_chunk: usize,
}

struct Shared<A>(*mut A);
// SAFETY: every thread writes its own chunk of sums.
unsafe impl<A> Sync for Shared<A> {}

impl<A: Arith, O: Index> ColumnPanel<A, O> {
    /// `tile`: rows of B in a tile; `sums_bytes`: cache for the sums of a chunk.
    pub(super) fn new<I: Index>(
        a: &PatternView<'_, I, O>,
        columns: usize,
        tile: usize,
        sums_bytes: usize,
        threads: usize,
    ) -> Result<Self> {
        let rows = a.nrows();
        let tiles = a.ncols().div_ceil(tile).max(1);
        let mut ends = Buffer::<O>::zeroed(tiles.saturating_mul(rows), "ends of tiles")?;
        for r in 0..rows {
            let range = a.row_range(r);
            let cols = a.row(r);
            let sorted = cols.is_sorted();
            let mut at = 0;
            for t in 0..tiles {
                if t + 1 == tiles {
                    at = cols.len();
                } else if sorted {
                    let bound = (t + 1) * tile;
                    at += cols[at..].partition_point(|c| c.to_usize() < bound);
                }
                ends[t * rows + r] = O::truncate(range.start + at);
            }
        }
        let stride = columns.next_multiple_of(64);
        let fit = (sums_bytes / (stride * size_of::<A>()).max(1)).max(1);
        let rows_per_chunk = fit.min(rows.div_ceil(threads * 4)).max(1);
        let chunks = (0..rows).step_by(rows_per_chunk);
        let chunks: Vec<_> = chunks.map(|r| r..rows.min(r + rows_per_chunk)).collect();
        let assignment = StaticPartition::new(chunks.len(), threads);
        let sums =
            Buffer::zeroed(assignment.threads() * rows_per_chunk * stride, "sums of chunks")?;
        Ok(ColumnPanel { tile, ends, tiles, chunks, assignment, sums, stride, rows_per_chunk })
    }

    pub(super) fn tile(&self) -> usize {
        self.tile
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.ends[..]) + size_of_val(&self.sums[..]) + size_of_val(&self.chunks[..])
    }

    pub(super) fn execute<T: CpuScalar<Accum = A>, I: Index>(
        &mut self,
        threads: &Threads,
        isa: Isa,
        op: &Operands<'_, T, I>,
    ) {
        let chunk_sums = self.rows_per_chunk * self.stride;
        let sums = Shared(self.sums.as_mut_ptr());
        let sums = &sums;
        let (chunks, stride, tiles) = (&self.chunks, self.stride, self.tiles);
        let ends = Offsets::new(&self.ends);
        self.assignment.run(threads, |thread, p| {
            // SAFETY: one chunk of sums was allocated for every thread of the assignment.
            let sums = unsafe { sums.0.add(thread * chunk_sums) };
            let work = Chunk { op, ends, tiles, rows: chunks[p].clone(), sums, stride };
            // SAFETY: the plan checked that the instruction set is there.
            unsafe { T::vectorize(isa, op.semiring, work) }
        });
    }
}

/// A chunk of rows through all tiles.
struct Chunk<'a, T: Scalar, I> {
    op: &'a Operands<'a, T, I>,
    ends: Offsets<'a>,
    tiles: usize,
    rows: Range<usize>,
    sums: *mut T::Accum,
    stride: usize,
}

impl<T: Scalar, I: Index> Panels<T> for Chunk<'_, T, I> {
    #[inline(always)]
    unsafe fn panel<V: Vector<T>, const W: usize, const U: usize, const TAIL: bool>(
        &self,
        panel: &Panel<T, V, W, TAIL>,
    ) {
        let op = self.op;
        for t in 0..self.tiles {
            for row in self.rows.clone() {
                let start = match t {
                    0 => op.offsets.at(row),
                    _ => self.ends.at((t - 1) * op.rows + row),
                };
                let range = start..self.ends.at(t * op.rows + row);
                // SAFETY: ends lie within the nonzeros; the sums hold whole vectors of every row of
                // the chunk.
                unsafe {
                    let put = self.sums.add((row - self.rows.start) * self.stride + panel.start);
                    let mut sums = panel.sum::<I, U, false>(op, range);
                    if t > 0 {
                        for w in 0..W {
                            let before = V::load_sums(put.add(w * V::LANES));
                            sums[w] = V::add(V::S::of(op.semiring), before, sums[w]);
                        }
                    }
                    if t + 1 == self.tiles {
                        panel.finish(op, row, &sums);
                    } else {
                        for w in 0..W {
                            V::store_sums(put.add(w * V::LANES), sums[w]);
                        }
                    }
                }
            }
        }
    }
}

impl<T: Scalar, I: Index> Work<T> for Chunk<'_, T, I> {
    #[inline(always)]
    unsafe fn run<V: Vector<T>>(self) {
        // SAFETY: promised by the caller.
        unsafe { for_each_panel!(T, I, V, self.op.columns, V::WIDTH, self) }
    }
}
