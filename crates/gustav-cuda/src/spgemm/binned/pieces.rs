//! Rows of A with so many nonzeros that several CTAs share them, see `kernels/spgemm/pieces.cuh`.

use gustav_core::Result;

use super::arguments::Arguments;
use super::bins::Counters;
use super::request::Limits;
use crate::{Device, DeviceBuffer};

// CTAs for every multiprocessor.
const CTAS: usize = 6;
// Fewest products of a piece of the largest row.
const LEAST: usize = 2048;
// Bytes of sums with which as many CTAs fit on a multiprocessor.
const ROOM: usize = 32 << 10;

/// How rows are cut, and the memory for what the pieces find.
pub(super) struct Pieces {
    of_a_row: usize,
    words: usize,
    copies: usize,
    sum: usize,
    rows: usize,
    found: DeviceBuffer<u64>,
}

impl Pieces {
    /// For the rows of bin `bin` and CTAs of `threads`; in `most` bytes of memory, if a piece for
    /// every row takes no more.
    pub(super) fn new(
        device: &Device,
        symbolic: &Counters,
        bin: usize,
        threads: usize,
        limits: Limits,
        most: Option<usize>,
    ) -> Result<Self> {
        let (rows, words) = (symbolic.rows(bin) as usize, symbolic.widest(bin).div_ceil(32));
        let ctas = CTAS * device.profile().multiprocessors;
        let useful = symbolic.largest(bin).div_ceil(LEAST);
        let each = rows * words * (4 + 32 * limits.sum);
        let room = most.map_or(usize::MAX, |most| most / each.max(1));
        let of_a_row = ctas.div_ceil(rows).min(useful).min(room).max(1);
        let copies = (ROOM / (32 * words.max(1) * limits.sum)).clamp(1, threads);
        let copies = 1 << copies.ilog2();
        let mut pieces = Pieces {
            of_a_row,
            words,
            copies,
            sum: limits.sum,
            rows,
            found: DeviceBuffer::queued(device, 0, "")?,
        };
        let words = pieces.sums_at() + (rows * of_a_row * words * 32 * limits.sum).div_ceil(8);
        pieces.found = DeviceBuffer::queued(device, words, "sums of pieces of rows")?;
        // Pieces that have ended are counted from zero.
        pieces.found.fill(0, device.stream())?;
        Ok(pieces)
    }

    // Words of 8 bytes before the bits, and before the sums.
    fn bits_at(&self) -> usize {
        self.rows.div_ceil(2)
    }

    fn sums_at(&self) -> usize {
        self.bits_at() + (self.rows * self.of_a_row * self.words).div_ceil(2)
    }

    /// Pieces of a row.
    pub(super) fn of_a_row(&self) -> usize {
        self.of_a_row
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.found.bytes()
    }

    /// Bytes of shared memory for a mask.
    pub(super) fn mask_bytes(&self) -> usize {
        4 * self.words
    }

    /// Bytes of shared memory for a mask with ranks and all copies of the sums.
    pub(super) fn bytes_of_sums(&self) -> usize {
        self.words * (8 + 32 * self.copies * self.sum)
    }

    /// Tells kernels of the pieces.
    pub(super) fn describe(&self, arguments: &mut Arguments) {
        let at = |words: usize| self.found.address() + 8 * words as u64;
        arguments.ended = at(0);
        arguments.found_bits = at(self.bits_at());
        arguments.found_sums = at(self.sums_at());
        arguments.words = self.words as u32;
        arguments.entries = self.copies as u32;
    }
}
