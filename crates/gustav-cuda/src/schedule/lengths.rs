//! Facts about a pattern, counted on the device.

use gustav_core::{IndexType, Result};
use gustav_plan::facts::row_lengths::{
    BINS, COUNTS, CUTS, EXACT_BITS, FIRST_CUT_BITS, OCTAVE_BITS,
};
use gustav_plan::{RowLengths, RowSimilarity};

use super::pattern::Pattern;
use crate::device::DeviceBuffer;
use crate::jit::Request;

const BLOCK: u32 = 256;
// CTAs per multiprocessor that count lengths.
const CTAS: u64 = 4;
// For row similarity: samples, threads of a CTA, and most columns merged of a sample.
const SAMPLES: u64 = 2048;
const SAMPLE_BLOCK: u32 = 64;
const MOST: u32 = 96;
// For tile reuse: samples, and most nonzeros read of a sample.
const REUSE_SAMPLES: u64 = 1024;
const REUSE_MOST: u32 = 1024;

parameter_block! {
    struct Lengths {
        offsets: *const Offset,
        counts: *mut u64,
        rows: u64,
    }
}

parameter_block! {
    struct Similarity {
        offsets: *const Offset,
        indices: *const Index,
        counts: *mut u64,
        rows: u64,
        samples: u64,
    }
}

parameter_block! {
    struct Reuse {
        offsets: *const Offset,
        indices: *const Index,
        counts: *mut u64,
        rows: u64,
        samples: u64,
        /// Rows of B in a tile.
        tile: u64,
    }
}

/// `request` with the bins of `kernels/schedule/lengths.cuh`.
pub(super) fn with_bins(request: Request) -> Request {
    request.with("EXACT_BITS", EXACT_BITS).with("OCTAVE_BITS", OCTAVE_BITS).with("BINS", BINS)
}

/// The source of `row_lengths` with its parameters.
pub(crate) fn lengths_request(offset: IndexType) -> Request {
    with_bins(request!("schedule/row_lengths.cu").with_block::<Lengths>())
        .with("OFFSET", offset)
        .with("BLOCK", BLOCK)
        .with("FIRST_CUT_BITS", FIRST_CUT_BITS)
        .with("CUTS", CUTS)
}

/// The source of `row_similarity` with its parameters.
pub(crate) fn similarity_request(index: IndexType, offset: IndexType) -> Request {
    request!("schedule/row_similarity.cu")
        .with_block::<Similarity>()
        .with("INDEX", index)
        .with("OFFSET", offset)
        .with("BLOCK", SAMPLE_BLOCK)
        .with("MOST", MOST)
}

/// The source of `tile_reuse` with its parameters.
pub(crate) fn reuse_request(index: IndexType, offset: IndexType) -> Request {
    request!("schedule/tile_reuse.cu")
        .with_block::<Reuse>()
        .with("INDEX", index)
        .with("OFFSET", offset)
        .with("BLOCK", BLOCK)
        .with("MOST", REUSE_MOST)
}

/// What to count of a pattern.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted<'a> {
    /// The rows of each length.
    pub lengths: bool,
    /// The columns that neighbouring rows have in common.
    pub similarity: bool,
    /// How tiles of so many rows of B divide the rows.
    pub tiles: &'a [u64],
}

/// What was counted.
#[derive(Debug)]
pub(super) struct Counted {
    /// `None` unless they were wanted, as the others.
    pub lengths: Option<RowLengths>,
    pub similarity: Option<RowSimilarity>,
    /// Mean nonzeros of a segment, for each of the tiles.
    pub per_segment: Vec<f64>,
}

// Counters of a sampled similarity, and of a tile.
const OF_SIMILARITY: usize = 8;
const OF_TILE: usize = 2;

/// Counts what is wanted of `p`. The host waits once, whatever is wanted.
///
/// # Errors
/// [`gustav_core::Error::OutOfMemory`], [`gustav_core::Error::Device`], those of compiling kernels.
pub(super) fn count(p: &Pattern<'_>, wanted: Wanted<'_>) -> Result<Counted> {
    let device = p.device();
    let of_lengths = if wanted.lengths { COUNTS } else { 0 };
    let of_similarity = if wanted.similarity { OF_SIMILARITY } else { 0 };
    let counters = of_lengths + of_similarity + OF_TILE * wanted.tiles.len();
    let mut counts = DeviceBuffer::<u64>::queued(device, counters, "facts of a pattern")?;
    counts.fill(0, device.stream())?;
    let at = |counter: usize| counts.address() + (counter * size_of::<u64>()) as u64;
    // SAFETY: each kernel adds to the counters from its address on, which the buffer has; it outlives the read below.
    unsafe {
        if wanted.lengths {
            launch_lengths(p, at(0))?;
        }
        if wanted.similarity {
            launch_similarity(p, at(of_lengths))?;
        }
        for (number, tile) in wanted.tiles.iter().enumerate() {
            launch_reuse(p, *tile, at(of_lengths + of_similarity + OF_TILE * number))?;
        }
    }
    let mut found = vec![0; counters];
    counts.read(&mut found)?;
    let (lengths, samples) = found.split_at(of_lengths);
    let (similar, tiles) = samples.split_at(of_similarity);
    let of_blocks = |c: &[u64]| RowSimilarity::new([0, 2, 4, 6].map(|i| (c[i], c[i + 1])));
    let per_segment = |c: &[u64]| c[0] as f64 / c[1].max(1) as f64;
    Ok(Counted {
        lengths: RowLengths::new(p.rows, p.nnz, lengths.to_vec()),
        similarity: wanted.similarity.then(|| of_blocks(similar)),
        per_segment: tiles.chunks_exact(OF_TILE).map(per_segment).collect(),
    })
}

/// Queues the count of rows of each length.
///
/// # Safety
/// `counts` is the address of `COUNTS` numbers that outlive the kernel.
unsafe fn launch_lengths(p: &Pattern<'_>, counts: u64) -> Result<()> {
    let device = p.device();
    let kernel = device.module(&lengths_request(p.offset_type))?.kernel(c"row_lengths")?;
    let rows = p.rows as u64;
    let arguments = Lengths { offsets: p.offsets, counts, rows };
    let most = CTAS * device.profile().multiprocessors as u64;
    let grid = (rows.div_ceil(u64::from(BLOCK)).min(most), 1);
    // SAFETY: the caller's; the pattern's arrays outlive what its device's stream has queued.
    unsafe { kernel.launch(device.stream(), grid, BLOCK, &arguments) }
}

/// Queues the count of distinct columns in sampled blocks of rows.
///
/// # Safety
/// `counts` is the address of `OF_SIMILARITY` numbers that outlive the kernel.
unsafe fn launch_similarity(p: &Pattern<'_>, counts: u64) -> Result<()> {
    let device = p.device();
    let request = similarity_request(p.index_type, p.offset_type);
    let kernel = device.module(&request)?.kernel(c"row_similarity")?;
    let rows = p.rows as u64;
    let samples = SAMPLES.min(rows);
    let (offsets, indices) = (p.offsets, p.indices);
    let arguments = Similarity { offsets, indices, counts, rows, samples };
    let grid = (samples.div_ceil(u64::from(SAMPLE_BLOCK)), 4);
    // SAFETY: as in `launch_lengths`.
    unsafe { kernel.launch(device.stream(), grid, SAMPLE_BLOCK, &arguments) }
}

/// Queues the count of segments into which tiles of `tile` rows of B divide sampled rows.
///
/// # Safety
/// `counts` is the address of `OF_TILE` numbers that outlive the kernel.
unsafe fn launch_reuse(p: &Pattern<'_>, tile: u64, counts: u64) -> Result<()> {
    let device = p.device();
    let request = reuse_request(p.index_type, p.offset_type);
    let kernel = device.module(&request)?.kernel(c"tile_reuse")?;
    let rows = p.rows as u64;
    let samples = REUSE_SAMPLES.min(rows);
    let (offsets, indices, tile) = (p.offsets, p.indices, tile.max(1));
    let arguments = Reuse { offsets, indices, counts, rows, samples, tile };
    let grid = ((samples * 32).div_ceil(u64::from(BLOCK)), 1);
    // SAFETY: as in `launch_lengths`.
    unsafe { kernel.launch(device.stream(), grid, BLOCK, &arguments) }
}
