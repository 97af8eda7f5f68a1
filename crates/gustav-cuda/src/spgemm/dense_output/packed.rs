//! The packed B for full rows of C, see `kernels/spgemm/packed.cuh`.

use gustav_core::Result;

use super::{Config, PAIR, pair};
use crate::device::{Device, DeviceBuffer};
use crate::product::sparse_operands::Operands;
use crate::spgemm::binned::Arguments;

// Alignment of all arrays in bytes.
const ALIGNED: usize = 128;

parameter_block! {
    /// The parameter of the kernels.
    pub(super) struct Packed {
        pub arguments: Arguments,
        pairs: *mut Pair,
        /// If B is packed for later values: for every value of a pair the entry of B, counted from
        /// the first one of its row in the tile, or NO_SOURCE.
        sources: *mut u16,
        /// The entries of row k of B in tile t begin at bounds[t * rows_b + k] (there is one more
        /// tile for the end); its pairs begin at segments[t * rows_b + k] >> 6 of the tile, and the
        /// low 6 bits are their number.
        bounds: *mut u32,
        segments: *mut u32,
        /// The first chunk of tile t, numbered over all tiles.
        chunks: *mut u32,
        /// Host memory that is set if rows assumed to be full are not; null if they are known to be
        /// full.
        pub wrong: *mut u32,
        pub tiles: u64,
        /// CTAs of the kernel that sums rows.
        pub ctas: u32,
    }
}

/// The packed B: the positions of its rows, and memory for its entries.
pub(super) struct PackedB {
    memory: DeviceBuffer<u64>,
    pub parameter: Packed,
}

impl PackedB {
    /// Memory for B of `o` in tiles for sums of `sum` bytes; `refillable` for later values too.
    /// `ctas` are those of the kernel that sums rows.
    pub(super) fn new(
        device: &Device,
        o: &Operands,
        (config, sum, ctas): (Config, usize, u32),
        mut arguments: Arguments,
        refillable: bool,
    ) -> Result<Self> {
        arguments.set_operands(o);
        let tiles = arguments.columns.div_ceil(u64::from(config.columns(sum)));
        let of_tiles = tiles as usize;
        let segments = of_tiles.saturating_mul(o.b.rows);
        // A row of a tile fills all its pairs but the last, and takes at least as many as are read
        // together.
        let filled = segments.min(o.b.nnz).saturating_mul(config.pairs_in_flight() as usize);
        let pairs = (o.b.nnz / PAIR)
            .saturating_add(filled)
            .saturating_add(config.chunk(sum) as usize * of_tiles);
        let mut bytes = 0usize;
        let mut place = |len: usize, each: usize| {
            let at = bytes;
            bytes = bytes.saturating_add(len.saturating_mul(each).saturating_add(ALIGNED - 1));
            bytes -= bytes % ALIGNED;
            at as u64
        };
        let at_pairs = place(pairs, pair(sum));
        let at_sources = refillable.then(|| place(pairs, 2 * PAIR));
        let at_bounds = place(segments.saturating_add(o.b.rows), 4);
        let at_segments = place(segments, 4);
        let at_chunks = place(of_tiles + 1, 4);
        let memory = DeviceBuffer::queued(device, bytes / 8, "packed B")?;
        let begin = memory.address();
        let parameter = Packed {
            arguments,
            pairs: begin + at_pairs,
            sources: at_sources.map_or(0, |at| begin + at),
            bounds: begin + at_bounds,
            segments: begin + at_segments,
            chunks: begin + at_chunks,
            wrong: 0,
            tiles,
            ctas,
        };
        Ok(PackedB { memory, parameter })
    }

    /// Bytes on the device.
    pub(super) fn bytes(&self) -> usize {
        self.memory.bytes()
    }
}
