//! The tile and schedule of `segmented`, and their choice.

use gustav_core::{DType, Problem, Result};
use gustav_plan::heuristics::cuda_spmm::{self, Tuning};

use crate::product::check_config;
use crate::product::tile::{Limit, Tile, widest};
use crate::schedule::Segments;

/// How the parts of a cut row are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// Each part stores its sums in the carry-out workspace; the last one adds them in a fixed
    /// order. The same bits in every execution, for any type and semiring.
    FixUp,
    /// Each part adds its sums to its row of C by atomic reductions, four values in one from
    /// compute capability 9.0 on. For plus-times in floating point; not deterministic, and flushes
    /// subnormal sums in f32.
    Atomic,
}

/// Tile and schedule of `segmented`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Values per load of a lane; 16 bytes at most.
    pub vector: u32,
    /// Lanes of a subgroup, which together hold a row of B.
    pub lanes: u32,
    /// Vectors of a row of B per lane.
    pub tiles: u32,
    /// Subgroups of lanes in a warp that share a segment.
    pub subgroups: u32,
    /// Warps of a segment: 1, or all of a CTA, which subgroups of lanes then fill.
    pub warps: u32,
    /// Nonzeros of A loaded together; with several segments per group, nonzeros of one whose rows of B are in flight.
    pub chunk: u32,
    /// Segments that a subgroup processes by itself. If more than one, subgroups share the head of the list alone, by
    /// chunks of at least two.
    pub segments_per_group: u32,
    /// Whether it processes them at the same time; otherwise one after another, with loads of A for the next in flight.
    pub at_once: bool,
    /// With several segments per group, whether the row of B of the next segment's last nonzero is prefetched to L2.
    pub prefetch_b: bool,
    /// Pipeline stages: chunks of rows of B that are copied to shared memory; 0 loads them to registers.
    pub stages: u32,
    /// Whether a segment's nonzeros of A are prefetched to L2; with several segments per group, of the head of the list.
    pub prefetch_a: bool,
    /// Nonzeros from which rows are cut, a power of two from 32 to 4096. `None` takes whole rows, in their order.
    pub longest: Option<u32>,
    /// Nonzeros from which whole rows are in the head of the list, a power of two from 32 to 256; the others are sorted
    /// by length in windows.
    pub first: u32,
    /// Rows of a window, inside which rows are sorted by length; a power of two from 32 to 1024. 1
    /// lists whole rows in their order, after the parts of cut rows.
    pub window: u32,
    /// How the parts of a cut row are combined; atomic reductions need a C in f32 or f64 without an epilogue.
    pub reduction: Reduction,
    /// Threads of a CTA.
    pub block: u32,
    /// Resident threads of a multiprocessor that a kernel's registers must allow.
    pub resident: u32,
}

// Vectors of a row of B that a lane has registers for.
const MOST_TILES: u32 = 10;
// Resident threads that leave registers for four loads of two vectors.
const RESIDENT_OF_FOUR_LOADS: u32 = 768;
// Fewest nonzeros of a long segment that are loaded together where others are taken several at a time.
const LEAST_CHUNK_OF_HEAD: u32 = 2;
// Most segments per group, ...
const MOST_SEGMENTS_PER_GROUP: u32 = 64;
// ... and at the same time, for which a lane has registers.
const MOST_AT_ONCE: u32 = 4;
// A sum of 8 bytes and the position of its winner.
const BYTES_WITH_WINNER: u32 = 16;
// Shared memory that a CTA has on all devices.
const SHARED_BYTES: u32 = 48 << 10;

impl Config {
    /// The configuration of a tuning for the columns of `problem`; one segment per group if 32 bits cannot count the
    /// list.
    pub(in crate::spmm) fn new(problem: &Problem, tuning: &Tuning) -> Self {
        let widest = widest(problem.dtype, problem.columns as u64);
        let vector = widest.min(tuning.load_bytes / problem.dtype.bytes() as u32);
        let config = Config {
            vector,
            lanes: 0,
            tiles: 0,
            subgroups: tuning.subgroups,
            warps: tuning.warps,
            chunk: tuning.chunk,
            segments_per_group: tuning.segments_per_group,
            at_once: tuning.at_once,
            prefetch_b: tuning.prefetch_b,
            stages: tuning.stages,
            prefetch_a: tuning.prefetch_a,
            longest: tuning.longest,
            first: tuning.longest.map_or(Segments::LEAST_FIRST, Segments::first_of),
            window: tuning.window,
            reduction: Reduction::FixUp,
            block: tuning.block,
            resident: tuning.threads,
        };
        let config = match vector < widest {
            true => config.halved(problem.columns),
            false => {
                config.tiled(problem.dtype, vector, problem.columns, tuning.lanes, tuning.tiles)
            }
        };
        match config.counts(problem) {
            true => config,
            false => config.one_segment(),
        }
    }

    /// The configuration for SpMV: `lanes` lanes share a segment of at most `longest` nonzeros.
    pub(crate) fn of_vector(problem: &Problem, lanes: u32, longest: u32) -> Self {
        Config {
            vector: 1,
            lanes: 1,
            tiles: 1,
            subgroups: lanes,
            warps: 1,
            chunk: if problem.dtype.bytes() == 8 && lanes == 32 { 2 } else { 4 },
            segments_per_group: 1,
            at_once: false,
            prefetch_b: false,
            stages: 0,
            prefetch_a: false,
            longest: Some(longest),
            first: Segments::first_of(longest),
            window: 1024,
            reduction: Reduction::FixUp,
            block: 128,
            resident: 1024,
        }
    }

    /// The configurations to time for `problem`: those of the cost model's tunings.
    pub(in crate::spmm) fn candidates(problem: &Problem) -> Vec<Self> {
        let mut candidates = Vec::new();
        for tuning in cuda_spmm::segmented(problem) {
            let config = Config::new(problem, &tuning);
            if !candidates.contains(&config) {
                candidates.push(config);
            }
        }
        candidates
    }

    /// This schedule with one half vector of a row of B for each lane: no tuning has more of them than a warp has lanes.
    fn halved(self, columns: usize) -> Self {
        let lanes = columns as u32 / self.vector;
        debug_assert!(lanes.is_power_of_two() && lanes <= 32 && self.warps == 1);
        Config { lanes, tiles: 1, subgroups: self.subgroups.min(32 / lanes), ..self }
    }

    /// This schedule with vectors of `vector` values and at most `lanes` lanes.
    fn tiled(self, dtype: DType, vector: u32, columns: usize, lanes: u32, tiles: u32) -> Self {
        // With copies to shared memory a lane may have more vectors than fit in registers, if no
        // lane is idle.
        let panel = (lanes * tiles * vector) as usize;
        let aligned = vector as usize * dtype.bytes() == 16;
        if self.stages > 0 && tiles > 2 && aligned && columns.is_multiple_of(panel) {
            return Config { vector, lanes, tiles, ..self };
        }
        // Several segments per group leave no registers for a third vector; otherwise there are
        // fewer vectors the more threads are resident, fewest for 16-bit values.
        // A CTA per segment has as many subgroups as lanes allow.
        let any_lanes = self.segments_per_group > 1 || self.warps > 1;
        let most = if any_lanes { 32 } else { 32 / self.subgroups };
        let most_tiles = match self.resident > 640 {
            _ if self.segments_per_group > 1 => 2,
            true if dtype.bytes() == 2 || most < 32 => 2,
            true => 3,
            false => 4,
        };
        let limit = Limit {
            lanes: most,
            tiles,
            most_tiles,
            most_double: 5,
            most_single: MOST_TILES,
            alone: 4,
        };
        let mut tile = Tile::new(dtype, vector, columns, limit);
        let is_whole = |tile: Tile| tile.whole(vector, columns) == tile.tiles;
        if self.stages > 0 && !is_whole(tile) {
            // Three vectors a lane may leave no lane idle.
            let compact = Tile::new(dtype, vector, columns, Limit { tiles: 3, ..limit });
            if is_whole(compact) {
                tile = compact;
            }
        }
        // Few lanes make narrow panels, with two vectors of 16 bytes per lane.
        if lanes < 32 {
            let lanes = lanes.min(most);
            let panel_columns = columns.min(lanes as usize * 32 / dtype.bytes());
            let limit = Limit { lanes: if aligned { lanes } else { most }, most_tiles: 2, ..limit };
            let narrow = Tile::new(dtype, vector, panel_columns, limit);
            // One panel is better than several if lanes of the last one were mostly idle.
            let idle = |tile: Tile| columns.next_multiple_of(tile.panel(vector) as usize) - columns;
            let fits = tile.panel(vector) >= columns as u64;
            if !fits || 4 * idle(narrow) < columns || idle(narrow) < idle(tile) {
                tile = narrow;
            }
        }
        // Copies to shared memory pay only with vectors of 16 bytes and without partial tiles.
        let copies = aligned && is_whole(tile);
        let Tile { lanes, tiles } = tile;
        let subgroups = if self.warps > 1 { 32 / lanes } else { self.subgroups.min(32 / lanes) };
        let config = Config { vector, lanes, tiles, subgroups, ..self };
        match self.stages > 0 && !copies {
            true => Config {
                stages: 0,
                chunk: self.chunk.max(2),
                resident: self.resident.min(1024),
                ..config
            },
            false => config,
        }
    }

    /// The same schedule with narrower vectors, for unaligned operands.
    pub(super) fn narrowed(self, dtype: DType, vector: u32, columns: usize) -> Self {
        if vector >= self.vector {
            return self;
        }
        let config = self.tiled(dtype, vector, columns, 32, 2);
        match self.at_once {
            // A lane may have more of narrower vectors.
            true => Config { resident: self.resident.min(RESIDENT_OF_FOUR_LOADS), ..config },
            false => config,
        }
    }

    /// The same with more registers, for positions beside sums; with a filter, rows of B are held in registers.
    pub(super) fn with_winners(self, filtered: bool) -> Self {
        let config = Config { resident: self.resident.min(super::WITH_WINNERS), ..self };
        match filtered {
            true => Config { stages: 0, ..config.one_segment() },
            false => config,
        }
    }

    /// The same with one segment per group.
    fn one_segment(self) -> Self {
        match self.segments_per_group {
            1 => self,
            _ => Config {
                // Subgroups would share short segments, too.
                subgroups: 1,
                chunk: 4,
                segments_per_group: 1,
                at_once: false,
                prefetch_b: false,
                resident: self.resident.min(RESIDENT_OF_FOUR_LOADS),
                ..self
            },
        }
    }

    /// Lanes of a warp that share a segment.
    fn group(&self) -> u32 {
        self.lanes * self.subgroups
    }

    /// Threads that sum a segment.
    pub(super) fn threads_of_segment(&self) -> u32 {
        self.group() * self.warps
    }

    /// Nonzeros of A that a subgroup loads together where a group has one segment.
    pub(in crate::spmm) fn chunk_of_group(&self) -> u32 {
        match self.segments_per_group {
            1 => self.chunk,
            _ => self.chunk.next_power_of_two().max(LEAST_CHUNK_OF_HEAD),
        }
    }

    pub(super) fn tile(&self) -> Tile {
        Tile { lanes: self.lanes, tiles: self.tiles }
    }

    pub(super) fn panel(&self) -> u64 {
        self.tile().panel(self.vector)
    }

    /// Whether the pipeline stages fit in shared memory, for operands of any alignment.
    fn stages(&self, problem: &Problem) -> bool {
        [8, 4, 2, 1].into_iter().all(|vector| {
            let Config { stages, chunk, tiles, vector, block, .. } =
                self.narrowed(problem.dtype, vector, problem.columns);
            stages * chunk * tiles * vector * block * problem.dtype.bytes() as u32 <= SHARED_BYTES
        })
    }

    /// Whether the loads are possible: aligned chunks, or several segments per group without stages.
    fn loads_fit(&self) -> bool {
        let chunks = self.chunk.is_power_of_two() && !self.prefetch_b;
        let several = self.stages == 0;
        let at_once = (2..=MOST_AT_ONCE).contains(&self.segments_per_group) && !self.prefetch_b;
        (1..=8).contains(&self.chunk)
            && (1..=MOST_SEGMENTS_PER_GROUP).contains(&self.segments_per_group)
            && (if self.segments_per_group == 1 { chunks } else { several })
            && (at_once || !self.at_once)
    }

    /// Whether a segment has a group, or a CTA with rows of B in registers. The sums of all its warps but one must fit
    /// in shared memory, with winners or without, for operands of any alignment. Assumes that vectors, lanes and the
    /// CTA are in bounds.
    fn warps_fit(&self, problem: &Problem) -> bool {
        let whole = self.group() == 32 && self.warps == self.block / 32;
        let direct = self.stages == 0 && self.segments_per_group == 1;
        let fit_in_shared = |vector| {
            let Config { vector, lanes, .. } =
                self.narrowed(problem.dtype, vector, problem.columns);
            (self.block / 32 - 1) * vector * lanes * BYTES_WITH_WINNER <= SHARED_BYTES
        };
        self.warps == 1 || whole && direct && [8, 4, 2, 1].into_iter().all(fit_in_shared)
    }

    /// Whether 32 bits suffice to count the entries of a list with several segments per group, as in
    /// `segments_per_group.cuh`.
    fn counts(&self, problem: &Problem) -> bool {
        // Rows in windows, and the parts of cut rows and long rows in the head of the list.
        let windows =
            problem.output_rows() as u128 + u128::from(Segments::rows_of_cta(self.window));
        let first = self.longest.map_or(0, |longest| {
            let nnz = problem.nnz as u128;
            3 * nnz / u128::from(longest) + nnz / 32
        });
        // Unused entries of the last CTAs.
        let free = u128::from(self.block * (self.segments_per_group + 2));
        self.segments_per_group == 1 || windows + first + free <= u128::from(u32::MAX)
    }

    pub(in crate::spmm) fn check(&self, problem: &Problem) -> Result<()> {
        let window = if self.window == 1 { Segments::rows_of_cta(1) } else { self.window };
        let powers = [self.vector, self.lanes, self.subgroups, window / 32];
        let bytes = problem.dtype.bytes() as u32;
        // Bounds that keep the products below from overflowing.
        let fits = powers.iter().all(|p| p.is_power_of_two() && *p <= 32)
            && self.loads_fit()
            && self.stages <= 64
            && self.vector * bytes <= 16
            && self.group() <= 32
            && (1..=MOST_TILES).contains(&self.tiles)
            && (32..=1024).contains(&self.block)
            && self.block.is_multiple_of(32)
            && self.warps_fit(problem)
            && window.is_multiple_of(32)
            && Segments::comes_first(self.first)
            && self.stages(problem)
            && self.counts(problem)
            && self.longest.is_none_or(Segments::cuts_at)
            && (self.reduction == Reduction::FixUp || may_reduce(problem));
        check_config(
            "config of segmented",
            self,
            fits,
            "powers of two with lanes * subgroups <= 32; one warp a segment, or all of a CTA with lanes * subgroups = \
             32, no stages, one segment per group and at most 48 KiB of sums of 16 bytes; vectors of at most 16 bytes, \
             at most 10 tiles, a chunk of at most 8, a power of two but for several segments per group, which are at \
             most 64 without stages, or 4 at once, fewer than 2^32 in all; prefetch_b with several, not at once, at \
             most 48 KiB of stages, cuts at 32 to 4096, whole rows of 32 to 256 nonzeros first, windows of 1 or of 32 \
             to 1024, whole warps of at most 1024 threads, and reduction by fix-up but for sums of plus-times in f32 \
             and f64 in no promised order, without an epilogue",
        )
    }
}

/// Whether partial sums of a row may be added to C in any order.
fn may_reduce(problem: &Problem) -> bool {
    let sums = problem.epilogue.is_none() && problem.extremum.is_none();
    sums && problem.dtype.bytes() > 2 && cuda_spmm::may_reduce(problem)
}

#[cfg(test)]
mod tests;
