//! The tile and schedule of `segmented`, and how they are chosen.

use gustav_core::{DType, Problem, Result};

use crate::Profile;
use crate::schedule::{MAX_LENGTH, RowLengths};

/// How the parts of a cut row meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// Each part writes its sums aside; a second kernel adds them in order. The same bits in
    /// every run, any type and semiring.
    FixUp,
    /// Each part adds its sums to C by atomic reductions: four values at once from compute
    /// capability 9.0 on. Plus-times in f32 and f64 only; not deterministic, and sums in f32 lose
    /// what is subnormal, as such reductions do.
    Atomic,
}

/// Tile and schedule of `segmented`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Values that a lane loads at once; 16 bytes at most.
    pub vector: u32,
    /// Lanes that share a row of B.
    pub lanes: u32,
    /// Vectors of a row of B per lane.
    pub tiles: u32,
    /// Sub-groups of lanes that share a segment.
    pub share: u32,
    /// Nonzeros of A loaded at once.
    pub chunk: u32,
    /// Whether the next chunk of A is loaded before this one is used.
    pub prefetch: bool,
    /// Rows with more nonzeros are cut; `None` takes whole rows, in their order, without a list.
    pub longest: Option<u32>,
    /// Whether long segments come first.
    pub sorted: bool,
    /// How the parts of a cut row meet.
    pub reduction: Reduction,
    /// Threads of a CTA.
    pub block: u32,
}

const LANES: [u32; 6] = [32, 16, 8, 4, 2, 1];
// Rows are short when A, not B, is most of what a group reads.
const SHORT: f64 = 7.0;
// Bytes per second that one multiprocessor gathers from L2, roughly; only ratios to it matter.
const GATHERED: f64 = 53e9;
// Nonzeros that one group gets through in a microsecond, roughly.
const NONZEROS_PER_MICROSECOND: f64 = 12.0;

impl Config {
    /// Lanes and tiles for `columns`: as few idle lanes as possible, then as near to `preferred`
    /// tiles as possible.
    fn tile(dtype: DType, vector: u32, columns: usize, preferred: u32) -> (u32, u32) {
        let vectors = (columns as u64).div_ceil(u64::from(vector)).max(1);
        let most = if vector == 1 { 8 } else { 4 };
        let panels = |lanes: u32, tiles: u32| vectors.div_ceil(u64::from(lanes * tiles));
        let cost = |lanes, tiles| panels(lanes, tiles) * u64::from(lanes * tiles);
        // Neighbouring lanes read whole sectors of 32 bytes when a row of B has them.
        let sector = (32 / (vector as u64 * dtype.bytes() as u64)).min(vectors.next_power_of_two());
        LANES
            .iter()
            .flat_map(|l| (1..=most).map(move |t| (*l, t)))
            .filter(|(lanes, _)| u64::from(*lanes) >= sector)
            .min_by_key(|&(l, t)| (panels(l, t), cost(l, t), t.abs_diff(preferred), t))
            .unwrap_or((32, 1))
    }

    /// Those that are worth timing for `problem`.
    pub(in crate::spmm) fn candidates(problem: &Problem) -> Vec<Self> {
        let vector = widest(problem.dtype, problem.columns as u64);
        let mut candidates = Vec::new();
        for preferred in [1, 2, 4] {
            let (lanes, tiles) = Self::tile(problem.dtype, vector, problem.columns, preferred);
            for share in [1, 4].into_iter().filter(|share| lanes * share <= 32) {
                for longest in [None, Some(64), Some(256), Some(1024)] {
                    candidates.push(Config {
                        vector,
                        lanes,
                        tiles,
                        share,
                        chunk: 4,
                        prefetch: true,
                        longest,
                        sorted: longest.is_some(),
                        reduction: Reduction::FixUp,
                        block: 64,
                    });
                }
            }
        }
        candidates.dedup();
        candidates
    }

    /// The default for a matrix with such rows on such a device.
    ///
    /// The rules were fitted to sweeps over configurations; docs/algorithms/segmented.md has them
    /// in words.
    pub(in crate::spmm) fn choose(problem: &Problem, rows: &RowLengths, device: &Profile) -> Self {
        let vector = widest(problem.dtype, problem.columns as u64);
        let short = rows.mean_filled < SHORT;
        let (lanes, tiles) =
            Self::tile(problem.dtype, vector, problem.columns, if short { 4 } else { 2 });
        // Groups of one warp wait for the longest of them: sort unless rows are alike.
        let alike = if rows.mean < 16.0 { 0.5 } else { 0.05 };
        let listed =
            rows.deviation > alike * rows.mean || rows.max as f64 > 4.0 * rows.mean.max(8.0);
        let resident = (device.multiprocessors * device.threads_per_multiprocessor) as f64;
        let threads = problem.output_rows() as f64 * f64::from(lanes);
        // Too few rows to fill the chip: let sub-groups share them.
        let mut share = 1;
        while lanes * share < 32
            && threads * f64::from(share) < 0.55 * resident
            && rows.mean >= f64::from(16 * share)
        {
            share *= 2;
        }
        let longest = Self::longest(problem, rows, device, share, threads < 0.2 * resident);
        Config {
            vector,
            lanes,
            tiles,
            share,
            chunk: if short && !listed { 2 } else { 4 },
            prefetch: true,
            longest: listed.then_some(longest),
            sorted: listed,
            reduction: Reduction::FixUp,
            block: 64,
        }
    }

    /// Where to cut: a segment should take a third of the whole product's time at most, but rows
    /// of ordinary length stay whole unless there are too `few` of them.
    fn longest(p: &Problem, rows: &RowLengths, device: &Profile, share: u32, few: bool) -> u32 {
        let bytes = p.nnz as f64 * (p.columns * p.dtype.bytes()) as f64;
        let microseconds = bytes / (device.multiprocessors as f64 * GATHERED) * 1e6;
        let nonzeros = microseconds / 3.0 * NONZEROS_PER_MICROSECOND * f64::from(share);
        let ordinary = if few { 0 } else { (1.5 * rows.mean_filled) as u32 };
        let nearest = (nonzeros.clamp(1.0, 1e6) * std::f64::consts::SQRT_2 / 2.0) as u32;
        nearest.max(1).next_power_of_two().max(ordinary.next_power_of_two()).clamp(32, 1024)
    }

    /// The same schedule over narrower vectors, for operands that are not aligned.
    pub(super) fn narrowed(self, dtype: DType, vector: u32, columns: usize) -> Self {
        if vector >= self.vector {
            return self;
        }
        let (lanes, tiles) = Self::tile(dtype, vector, columns, self.tiles);
        Config { vector, lanes, tiles, share: self.share.min(32 / lanes), ..self }
    }

    pub(super) fn group(&self) -> u32 {
        self.lanes * self.share
    }

    pub(super) fn panel(&self) -> u64 {
        u64::from(self.lanes * self.tiles * self.vector)
    }

    pub(super) fn check(&self, problem: &Problem) -> Result<()> {
        let powers = [self.vector, self.lanes, self.share, self.chunk];
        let fits = powers.iter().all(|p| p.is_power_of_two())
            && self.vector as usize * problem.dtype.bytes() <= 16
            && self.group() <= 32
            && (1..=8).contains(&self.tiles)
            && self.chunk <= 8
            && (32..=1024).contains(&self.block)
            && self.block.is_multiple_of(32)
            && self
                .longest
                .is_none_or(|l| l >= self.chunk && l as usize <= MAX_LENGTH && l % self.chunk == 0);
        if fits {
            return Ok(());
        }
        Err(gustav_core::Error::Argument {
            name: "config of segmented",
            found: format!("{self:?}"),
            expected: "powers of two with lanes * share <= 32, vectors of at most 16 bytes, at \
                       most 8 tiles, a chunk of at most 8 that divides the longest segment, and \
                       whole warps of at most 1024 threads"
                .into(),
        })
    }
}

/// The most values of 16 bytes or less that divide `number`.
pub(super) fn widest(dtype: DType, number: u64) -> u32 {
    let most = 16 / dtype.bytes() as u64;
    (most.min(number & number.wrapping_neg())).max(1) as u32
}
