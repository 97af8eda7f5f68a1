//! Chooses the SDDMM algorithm on a GPU, and its tuning.
//!
//! Gathering a row of Y for every nonzero is compared with computing every position of dense tiles,
//! in picoseconds on a full device; blocks of rows and tiles of Y pay if they save enough of the
//! gathers. The parameters were fitted to the real matrices of the suites `corpus` and `corpus-fit`
//! on an H200, in f32 and f16.

use gustav_core::{Problem, Result};

use super::cuda_spmm::inspects;
use crate::{Algorithm, DeviceProfile, RowLengths, RowSimilarity, TileReuse};

/// Fixed cost of a nonzero and cost of a byte of its row of Y, gathered.
const GATHER: Line = Line { fixed: 1.0, of_byte: 0.08 };
/// The same in 16 bits.
const GATHER_16_BIT: Line = Line { fixed: 3.0, of_byte: 0.084 };
/// Fixed cost of a position of a dense tile and cost of a byte of its row of Y, by scalar products.
const DENSE: Line = Line { fixed: 1.0, of_byte: 0.0155 };
/// The same on tensor cores.
const DENSE_TENSOR: Line = Line { fixed: 0.75, of_byte: 0.006 };
/// Positions of a dense tile.
const TILE: f64 = 64.0 * 64.0;
/// Least estimated speedup for which dense tiles are chosen.
const GAIN: f64 = 1.25;
/// Bytes up to which a row of Y is short, and above which it is long: two vectors per lane.
const SHORT: f64 = 256.0;
const LONG: f64 = 512.0;
/// Distinct columns per nonzero up to which blocks of rows pay: for short rows of Y and 16-bit values, ...
const SHARED_SHORT: f64 = 0.5;
/// ... for longer rows of Y, ...
const SHARED: f64 = 0.75;
/// ... and for long ones.
const SHARED_LONG: f64 = 0.88;
/// Blocks of rows need: at most this fraction of a multiprocessor's nonzeros in the longest row, or its block would
/// finish last; ...
const TAIL: f64 = 1.0 / 8.0;
/// ... a longest row that, in its parts, takes a group no longer than the device takes for all nonzeros without blocks,
/// where a group takes these picoseconds for an entry, whatever the length of rows of Y: it waits for those of four
/// entries at once; ...
const ENTRY: f64 = 150_000.0;
/// ... and at least this mean row length.
const BLOCKS_MEAN: f64 = 12.4;
/// Threads of a multiprocessor with which blocks fill it, ...
const THREADS: f64 = 768.0;
/// ... and with long rows of Y.
const THREADS_LONG: f64 = 384.0;
/// Largest ratio of the longest row to the mean with which row lengths are similar.
const ALIKE: f64 = 5.3;
/// Most parts of a block.
const MOST_PARTS: f64 = 8.0;
/// Nonzeros of a multiprocessor from which tiles of Y in its L1 cache pay, for long rows of Y, ...
const RESIDENT_NONZEROS: f64 = 1500.0;
/// ... if the pattern has this density, ...
const RESIDENT_DENSITY: f64 = 0.02;
/// ... or if a row has this many nonzeros in a tile on average.
const RESIDENT_SEGMENT: f64 = 2.0;

/// Limit of rows × distinct columns per nonzero, in f32: above it too many of the computed sums are not needed; ...
const LOOSE_F32: f64 = 2.1;
/// ... and for other types.
const LOOSE: f64 = 1.6;
/// By how much another row of a block must reduce the distinct columns per nonzero.
const PER_ROW: f64 = 0.053;

/// A cost that grows with the bytes of a row.
struct Line {
    fixed: f64,
    of_byte: f64,
}

impl Line {
    fn at(&self, bytes: f64) -> f64 {
        self.fixed + self.of_byte * bytes
    }
}

/// A tuning configuration of one algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// `nonzero-split`, `row-block`, `b-stationary` or `dense-tiles`.
    pub algorithm: Algorithm,
    /// Rows of a block, for `row-block`, ...
    pub height: u32,
    /// ... and parts of it.
    pub parts: u32,
    /// Why, in one sentence.
    pub reason: String,
}

impl Tuning {
    fn of(algorithm: Algorithm, reason: String) -> Self {
        Tuning { algorithm, height: 1, parts: 1, reason }
    }
}

/// The tuning for `problem` on a device with `profile`.
///
/// # Errors
/// Those of `rows`, `similarity` and `reuse`, which are called only where sharing loads could pay.
pub fn choose<'r>(
    problem: &Problem,
    profile: &DeviceProfile,
    has_tensor_cores: bool,
    rows: impl FnOnce() -> Result<&'r RowLengths>,
    similarity: impl FnOnce() -> Result<RowSimilarity>,
    reuse: impl FnOnce() -> Result<TileReuse>,
) -> Result<Tuning> {
    if !inspects(problem, profile) {
        let reason =
            format!("equal numbers of nonzeros, not inspected for {} calls", problem.calls);
        return Ok(Tuning::of(Algorithm::NonzeroSplit, reason));
    }
    let density = problem.nnz as f64 / positions(problem);
    if dense_pays(problem, profile, has_tensor_cores) {
        let reason = format!(
            "{:.0} % of all positions are nonzeros: whole tiles cost less than gathering rows of Y",
            100.0 * density
        );
        return Ok(Tuning::of(Algorithm::DenseTiles, reason));
    }
    let rows = rows()?;
    let (mean, longest) = (rows.mean_filled(), rows.max());
    let of_unit = problem.nnz as f64 / profile.units as f64;
    if mean >= BLOCKS_MEAN && longest as f64 <= TAIL * of_unit {
        let similarity = similarity()?;
        let tuning = row_block(problem, profile, &similarity);
        let last = longest as f64 / f64::from(tuning.parts) * ENTRY;
        let in_time = last <= problem.nnz as f64 * gather(problem).at(bytes(problem));
        if distinct(&similarity, tuning.height) <= shared(problem) && in_time {
            return Ok(tuning);
        }
    }
    let resident =
        problem.dtype.bytes() > 2 && bytes(problem) > LONG && of_unit >= RESIDENT_NONZEROS;
    if resident && mean >= RESIDENT_SEGMENT {
        let TileReuse { per_segment, tiles } = reuse()?;
        if density >= RESIDENT_DENSITY || per_segment >= RESIDENT_SEGMENT && !alike(rows) {
            let reason = format!(
                "{tiles} tiles of Y, {per_segment:.1} nonzeros of a row in each on average: tiles stay in L1"
            );
            return Ok(Tuning::of(Algorithm::BStationary, reason));
        }
    }
    let reason = format!(
        "rows of {mean:.1} nonzeros on average but for empty ones, {longest} at most, sharing few rows of Y: equal \
         numbers of nonzeros"
    );
    Ok(Tuning::of(Algorithm::NonzeroSplit, reason))
}

/// The height of blocks that share most, for values of `bytes` bytes.
fn height(similarity: &RowSimilarity, bytes: usize) -> u32 {
    let cost = |h: u32| distinct(similarity, h) + PER_ROW * f64::from(h);
    // Registers hold four rows only for f32.
    let (loose, most) = if bytes == 4 { (LOOSE_F32, 4) } else { (LOOSE, 3) };
    let fits = |h: &u32| *h <= most && distinct(similarity, *h) * f64::from(*h) <= loose;
    let heights = [2, 3, 4].into_iter().filter(fits);
    heights.min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(2)
}

/// The tuning of `row-block`: the height that shares most loads, in as many parts as fill the
/// device.
pub fn row_block(problem: &Problem, profile: &DeviceProfile, similarity: &RowSimilarity) -> Tuning {
    let height = height(similarity, problem.dtype.bytes());
    let lanes = (bytes(problem) / 16.0).clamp(1.0, 32.0);
    let threads = problem.rows as f64 / f64::from(height) * lanes;
    let full = if bytes(problem) > LONG { THREADS_LONG } else { THREADS };
    let wanted = profile.units as f64 * full / threads.max(1.0);
    let reason = format!(
        "{height} neighbouring rows have {:.2} distinct columns per nonzero: they share loads of Y",
        distinct(similarity, height)
    );
    let parts = wanted.round().clamp(1.0, MOST_PARTS) as u32;
    Tuning { height, parts, ..Tuning::of(Algorithm::RowBlock, reason) }
}

/// The cost of a nonzero whose row of Y is gathered.
fn gather(problem: &Problem) -> &'static Line {
    if problem.dtype.bytes() == 2 { &GATHER_16_BIT } else { &GATHER }
}

/// Whether computing all positions costs less than gathering a row of Y for every nonzero.
fn dense_pays(problem: &Problem, profile: &DeviceProfile, has_tensor_cores: bool) -> bool {
    if problem.dtype.is_integer() {
        return false;
    }
    let dense = if has_tensor_cores { DENSE_TENSOR } else { DENSE };
    // Fewer tiles than multiprocessors leave some of them idle.
    let idle = (profile.units as f64 * TILE / positions(problem)).max(1.0);
    let (gathers, tiles) = (gather(problem).at(bytes(problem)), dense.at(bytes(problem)) * idle);
    problem.nnz as f64 * gathers > GAIN * positions(problem) * tiles
}

/// Distinct columns per nonzero up to which blocks of rows pay.
fn shared(problem: &Problem) -> f64 {
    match bytes(problem) {
        bytes if problem.dtype.bytes() == 2 || bytes <= SHORT => SHARED_SHORT,
        bytes if bytes <= LONG => SHARED,
        _ => SHARED_LONG,
    }
}

/// Whether rows have similar lengths, like those of meshes, whose neighbouring rows have neighbouring columns.
fn alike(rows: &RowLengths) -> bool {
    rows.max() as f64 <= ALIKE * rows.mean_filled()
}

/// Bytes of a row of Y.
fn bytes(problem: &Problem) -> f64 {
    (problem.columns * problem.dtype.bytes()) as f64
}

fn distinct(similarity: &RowSimilarity, height: u32) -> f64 {
    similarity.distinct[height as usize - 2]
}

fn positions(problem: &Problem) -> f64 {
    (problem.rows as f64 * problem.cols as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use gustav_core::{DType, Operation};

    use super::*;
    use crate::facts::row_lengths::COUNTS;

    const H200: DeviceProfile = DeviceProfile {
        name: String::new(),
        units: 132,
        lanes: 32,
        l2_bytes: 50 << 20,
        llc_bytes: 50 << 20,
    };

    /// The choice for rows of `length` nonzeros, one of them with `longest`, and this similarity and tile reuse.
    fn chosen(
        (rows, cols): (usize, usize),
        (length, longest): (usize, usize),
        (distinct, per_segment): (f64, f64),
        (dtype, depth): (DType, usize),
    ) -> Algorithm {
        let nnz = rows * length;
        let problem =
            Problem::of_pattern(Operation::Sddmm, rows, cols, nnz).columns(depth).calls(1000);
        let problem = Problem { dtype, ..problem };
        let mut counts = vec![0; COUNTS];
        counts[RowLengths::bin(length as u64)] = rows as u64;
        counts[COUNTS - 1] = longest as u64;
        let lengths = RowLengths::new(rows, nnz, counts).expect("the right number of counts");
        let tensor = matches!(dtype, DType::F16 | DType::Bf16);
        let similarity = || Ok(RowSimilarity { distinct: [distinct; 4] });
        let reuse = || Ok(TileReuse { per_segment, tiles: 20 });
        choose(&problem, &H200, tensor, || Ok(&lengths), similarity, reuse)
            .expect("a choice")
            .algorithm
    }

    #[test]
    fn patterns_of_each_class_have_their_algorithm() {
        use Algorithm::{BStationary, DenseTiles, NonzeroSplit, RowBlock};
        let (alone, f32s, f16s) = ((1.0, 1.0), (DType::F32, 128), (DType::F16, 128));
        let pruned = |part: usize, of| chosen((2048, 1024), (1024 / part, 1024 / part), alone, of);
        assert_eq!(pruned(2, f32s), DenseTiles);
        assert_eq!((pruned(5, f32s), pruned(5, f16s)), (NonzeroSplit, DenseTiles));
        assert_eq!((pruned(20, f32s), pruned(20, f16s)), (NonzeroSplit, NonzeroSplit));
        assert_eq!(pruned(2, (DType::I32, 128)), NonzeroSplit);
        assert_eq!(pruned(5, (DType::F32, 256)), BStationary);
        let mesh = |distinct, of| chosen((50_000, 50_000), (27, 30), (distinct, 1.0), of);
        assert_eq!((mesh(0.35, f32s), mesh(0.35, f16s)), (RowBlock, RowBlock));
        assert_eq!((mesh(0.7, f32s), mesh(0.7, f16s)), (RowBlock, NonzeroSplit));
        assert_eq!(mesh(0.95, (DType::F32, 256)), NonzeroSplit);
        // One group would take longer for the longest row than all groups for the rest.
        let terms = |longest| chosen((70_000, 45_000), (40, longest), (0.6, 1.0), f32s);
        assert_eq!((terms(500), terms(2300)), (RowBlock, NonzeroSplit));
        let skewed = |per_segment, depth| {
            chosen((10_000, 10_000), (65, 4000), (0.95, per_segment), (DType::F32, depth))
        };
        assert_eq!((skewed(3.0, 256), skewed(1.2, 256)), (BStationary, NonzeroSplit));
        assert_eq!(skewed(3.0, 128), NonzeroSplit);
    }
}
