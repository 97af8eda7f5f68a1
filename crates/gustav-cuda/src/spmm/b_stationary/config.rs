//! The tile and schedule of `b-stationary`, and their choice.

use gustav_core::{DType, Problem, Result};
use gustav_plan::heuristics::cuda_spmm::{Tuning, may_reduce};

use crate::product::check_config;
use crate::product::tile::{Limit, Tile, accumulator, widest};
use crate::schedule::Target;
use crate::spmm::segmented::Reduction;

/// Tile and schedule of `b-stationary`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Values per load of a lane; 16 bytes at most.
    pub vector: u32,
    /// Lanes that share a segment of a row.
    pub lanes: u32,
    /// Vectors of a row of B per lane.
    pub tiles: u32,
    /// Pipeline stages: tiles of B that a multiprocessor holds or copies.
    pub stages: u32,
    /// Most nonzeros of a segment, a power of two from 8 to 4096.
    pub longest: u32,
    /// How the parts of a cut row are combined. Atomic reductions flush subnormal sums in f32, and
    /// two executions may differ in their bits.
    pub reduction: Reduction,
    /// Threads of a CTA.
    pub block: u32,
}

// Bytes of a row of B in a panel: 32 vectors of 16 bytes, two for each lane of half a warp.
const PANEL_BYTES: usize = 512;
// Most tiles in shared memory.
const MOST_STAGES: u32 = 4;
// Allowed values of `longest`.
const LONGEST: std::ops::RangeInclusive<u32> = 8..=4096;
// Upper bounds of the static shared memory of a kernel, and of the padding that aligns the rest.
const DECLARED: usize = 512;
const ALIGNED: usize = 128;
// Vectors of a row of B that a lane has registers for.
const MOST_TILES: u32 = 10;

impl Config {
    /// The configuration of a tuning, for the columns of `problem`.
    pub(in crate::spmm) fn new(problem: &Problem, tuning: &Tuning) -> Self {
        let vector = widest(problem.dtype, problem.columns as u64);
        let Tile { lanes, tiles } = tile(problem.dtype, vector, problem.columns, PANEL_BYTES);
        let reduction = match may_reduce(problem) {
            true => Reduction::Atomic,
            false => Reduction::FixUp,
        };
        let longest = tuning.longest.unwrap_or(64);
        Config {
            vector,
            lanes,
            tiles,
            stages: tuning.stages.max(1),
            longest,
            reduction,
            block: 1024,
        }
    }

    /// The same with narrower vectors, for unaligned operands, in panels that are not wider.
    pub(super) fn narrowed(self, dtype: DType, vector: u32, columns: usize) -> Self {
        if vector >= self.vector {
            return self;
        }
        let mut bytes = self.panel() as usize * dtype.bytes();
        loop {
            let Tile { lanes, tiles } = tile(dtype, vector, columns, bytes);
            let config = Config { vector, lanes, tiles, ..self };
            if config.panel() <= self.panel() || bytes <= dtype.bytes() {
                return config;
            }
            bytes /= 2;
        }
    }

    pub(super) fn tile(&self) -> Tile {
        Tile { lanes: self.lanes, tiles: self.tiles }
    }

    pub(in crate::spmm) fn panel(&self) -> u64 {
        self.tile().panel(self.vector)
    }

    /// Nonzeros that a group loads together: one per lane, or a few.
    pub(in crate::spmm) fn batch(&self) -> u32 {
        if self.lanes >= 16 { 32 } else { 16.min(4 * self.lanes) }
    }

    /// Bytes of shared memory for batches.
    fn batch_bytes(&self, dtype: DType) -> usize {
        let entry = 2 * accumulator(dtype).bytes().max(4);
        (self.block / self.lanes) as usize * (self.batch() as usize * entry + 16)
    }

    /// Rows of B in a tile, for `shared` bytes of shared memory per CTA: the fewest tiles, of about
    /// equal size.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when not even one row fits.
    pub(in crate::spmm) fn rows(&self, problem: &Problem, shared: usize) -> Result<u64> {
        let batches = [8, 4, 2, 1].map(|vector| {
            self.narrowed(problem.dtype, vector, problem.columns).batch_bytes(problem.dtype)
        });
        let taken = DECLARED + ALIGNED + batches.into_iter().max().unwrap_or(0);
        let available = shared.saturating_sub(taken) / self.stages as usize;
        let row = self.panel() as usize * problem.dtype.bytes();
        let most = (available / row) as u64;
        if most == 0 {
            let reason = "a row of B does not fit into shared memory";
            return Err(super::unsupported(problem, "b-stationary", reason, "segmented"));
        }
        let inner = (problem.inner() as u64).max(1);
        Ok(inner.div_ceil(inner.div_ceil(most)))
    }

    /// The target that parts of a cut row name.
    pub(super) fn target(&self, problem: &Problem) -> Target {
        // Parts can be added to C directly only if C holds plain sums.
        let in_c = problem.dtype.bytes() >= 4 && problem.epilogue.is_none();
        match self.reduction {
            Reduction::FixUp => Target::Slot,
            Reduction::Atomic if in_c => Target::Row,
            Reduction::Atomic => Target::CutRow,
        }
    }

    /// The most dynamic shared memory, if a CTA can have `shared` bytes.
    pub(super) fn shared_limit(shared: usize) -> usize {
        shared.saturating_sub(DECLARED)
    }

    /// Dynamic shared memory for tiles of `rows` rows of B.
    pub(super) fn shared_bytes(&self, dtype: DType, rows: u64) -> usize {
        let tile = rows as usize * self.panel() as usize * dtype.bytes();
        (self.stages as usize * tile).next_multiple_of(128) + self.batch_bytes(dtype)
    }

    pub(in crate::spmm) fn check(&self, problem: &Problem) -> Result<()> {
        let powers = [self.vector, self.lanes, self.longest];
        let fits = powers.iter().all(|p| p.is_power_of_two())
            && self.vector <= 16 / problem.dtype.bytes() as u32
            && self.lanes <= 32
            && (1..=MOST_TILES).contains(&self.tiles)
            && (1..=MOST_STAGES).contains(&self.stages)
            && LONGEST.contains(&self.longest)
            && (32..=1024).contains(&self.block)
            && self.block.is_multiple_of(32)
            && (self.reduction == Reduction::FixUp || may_reduce(problem));
        check_config(
            "config of b-stationary",
            self,
            fits,
            "powers of two with at most 32 lanes, vectors of at most 16 bytes, at most 10 \
                       tiles, 1 to 4 stages, segments of 8 to 4096, whole warps of at most 1024 \
                       threads, and reduction by fix-up but for plus-times in floating point in no \
                       promised order",
        )
    }
}

/// The lanes for a panel of at most `bytes` of a row of B; panels have about equal widths.
fn tile(dtype: DType, vector: u32, columns: usize, bytes: usize) -> Tile {
    let most = (bytes / dtype.bytes()).max(1);
    let panels = columns.max(1).div_ceil(most);
    let width = columns.max(1).div_ceil(panels);
    if vector as usize * dtype.bytes() < 16 {
        let limit =
            Limit { lanes: 32, tiles: 2, most_tiles: 2, most_double: 5, most_single: 10, alone: 4 };
        return Tile::new(dtype, vector, width, limit);
    }
    // Eight lanes read all banks of shared memory; for 16-bit values more lanes with shorter
    // vectors are used.
    let widened = dtype.bytes() == 2;
    match (width as u64).div_ceil(vector.into()) as u32 {
        vectors @ 0..=8 => Tile { lanes: vectors.max(1).next_power_of_two(), tiles: 1 },
        vectors @ 9..=16 if widened => Tile { lanes: 16, tiles: vectors.div_ceil(16) },
        vectors @ 9..=24 => Tile { lanes: 8, tiles: vectors.div_ceil(8) },
        vectors => Tile { lanes: 16, tiles: vectors.div_ceil(16) },
    }
}
