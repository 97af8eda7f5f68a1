//! Rows of A that are so long that several CTAs compute them, one chunk each, see
//! `kernels/spgemm/split_rows.cuh`.

use std::ops::Range;

use gustav_core::Result;

use super::arguments::Arguments;
use super::bins::Counters;
use super::request::Limits;
use crate::device::{Device, DeviceBuffer};
use crate::launch::GRID_Y;

// CTAs per multiprocessor.
const CTAS: usize = 6;
// Fewest products of a chunk of the largest row.
const LEAST: usize = 2048;
// Bytes of sums with which that many CTAs fit on a multiprocessor, and number of copies with which
// every thread of a warp has its own: more would leave less L1 for rows of B.
const SUM_BYTES: usize = 32 << 10;
const COPIES: usize = 32;

/// The chunks of rows, and the memory for their bitmasks and sums.
pub(super) struct SplitRows {
    chunks_of_a_row: usize,
    words: usize,
    /// Columns of a row with a sum.
    columns: usize,
    copies: usize,
    sum: usize,
    rows: usize,
    found: DeviceBuffer<u64>,
}

impl SplitRows {
    /// The chunks for the rows of bin `bin`, with CTAs of `threads` threads and a C of `columns`
    /// columns. `None` if they need more than `most` bytes, if a CTA's sums exceed its shared
    /// memory, or if a grid is too small for the rows. The memory is not cleared.
    pub(super) fn new(
        device: &Device,
        symbolic: &Counters,
        bin: usize,
        threads: usize,
        limits: Limits,
        columns: usize,
        most: Option<usize>,
    ) -> Result<Option<Self>> {
        let (rows, words) = (symbolic.rows(bin) as usize, symbolic.widest(bin).div_ceil(32));
        let ctas = CTAS * device.profile().multiprocessors;
        let useful = symbolic.largest(bin).div_ceil(LEAST);
        let chunks_of_a_row = ctas.div_ceil(rows).min(useful).max(1);
        let copies = (SUM_BYTES / (32 * words.max(1) * limits.sum)).clamp(1, threads.min(COPIES));
        let copies = 1 << copies.ilog2();
        let (columns, sum) = (columns.min(32 * words), limits.sum);
        let found = DeviceBuffer::queued(device, 0, "")?;
        let mut split_rows =
            SplitRows { chunks_of_a_row, words, columns, copies, sum, rows, found };
        let words = split_rows.sums_at() + (rows * columns * sum).div_ceil(8);
        let fits = most.is_none_or(|most| 8 * words <= most);
        if !fits || split_rows.bytes_of_sums() > limits.shared || rows as u64 > GRID_Y {
            return Ok(None);
        }
        split_rows.found = DeviceBuffer::queued(device, words, "sums of rows in chunks")?;
        Ok(Some(split_rows))
    }

    // Words of 8 bytes before the bitmasks, and before the sums: two words of 4 bytes per row come
    // first.
    fn bits_at(&self) -> usize {
        self.rows
    }

    fn sums_at(&self) -> usize {
        self.bits_at() + (self.rows * self.words).div_ceil(2)
    }

    /// Threads that clear the bitmasks and the sums: as many as the larger of them has elements.
    pub(super) fn to_clear(&self) -> usize {
        self.rows * self.columns.max(self.words)
    }

    /// Chunks of a row.
    pub(super) fn chunks_of_a_row(&self) -> usize {
        self.chunks_of_a_row
    }

    /// The memory.
    pub(super) fn found(&self) -> &DeviceBuffer<u64> {
        &self.found
    }

    /// The bytes of the memory that the symbolic phase writes and later phases read.
    pub(super) fn written(&self) -> [Range<usize>; 2] {
        let (bits, sums) = (8 * self.bits_at(), 8 * self.sums_at());
        [0..bits + 4 * self.rows * self.words, sums..sums + self.rows * self.columns * self.sum]
    }

    /// Replaces the memory.
    pub(super) fn set_found(&mut self, found: DeviceBuffer<u64>) {
        self.found = found;
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.found.bytes()
    }

    /// Bytes of shared memory for a bitmask.
    pub(super) fn mask_bytes(&self) -> usize {
        4 * self.words
    }

    /// Bytes of shared memory for a bitmask with ranks and all copies of the sums.
    pub(super) fn bytes_of_sums(&self) -> usize {
        self.words * (8 + 32 * self.copies * self.sum)
    }

    /// Sets the addresses and sizes in a parameter block.
    pub(super) fn describe(&self, arguments: &mut Arguments) {
        let at = |words: usize| self.found.address() + 8 * words as u64;
        arguments.slots = self.rows as u32;
        arguments.slot_rows = at(0);
        arguments.ended = at(0) + 4 * self.rows as u64;
        arguments.found_bits = at(self.bits_at());
        arguments.found_sums = at(self.sums_at());
        arguments.words = self.words as u32;
        arguments.entries = self.copies as u32;
    }
}
