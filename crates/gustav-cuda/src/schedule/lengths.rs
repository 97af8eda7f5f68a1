//! Facts about a pattern, counted on the device.

use gustav_core::{Error, IndexType, Result};
use gustav_plan::facts::row_lengths::{
    BINS, COUNTS, CUTS, EXACT_BITS, FIRST_CUT_BITS, OCTAVE_BITS,
};
use gustav_plan::{RowLengths, RowSimilarity, TileReuse};

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

/// Counts the rows of each length.
pub(crate) fn row_lengths(p: &Pattern<'_>) -> Result<RowLengths> {
    let device = p.device();
    let mut counts = DeviceBuffer::<u64>::queued(device, COUNTS, "row lengths")?;
    counts.fill(0, device.stream())?;
    let kernel = device.module(&lengths_request(p.offset_type))?.kernel(c"row_lengths")?;
    let rows = p.rows as u64;
    let arguments = Lengths { offsets: p.offsets, counts: counts.address(), rows };
    let most = CTAS * device.profile().multiprocessors as u64;
    let grid = (rows.div_ceil(u64::from(BLOCK)).min(most), 1);
    // SAFETY: the buffers outlive the read below.
    unsafe { kernel.launch(device.stream(), grid, BLOCK, &arguments)? };
    let mut found = vec![0; COUNTS];
    counts.read(&mut found)?;
    RowLengths::new(p.rows, p.nnz, found).ok_or(Error::Length {
        what: "row lengths",
        expected: COUNTS,
        found: 0,
    })
}

/// Samples blocks of rows and counts their distinct columns.
pub(crate) fn row_similarity(p: &Pattern<'_>) -> Result<RowSimilarity> {
    let device = p.device();
    let mut counts = DeviceBuffer::<u64>::queued(device, 8, "row similarity")?;
    counts.fill(0, device.stream())?;
    let request = similarity_request(p.index_type, p.offset_type);
    let kernel = device.module(&request)?.kernel(c"row_similarity")?;
    let samples = SAMPLES.min(p.rows as u64);
    let arguments = Similarity {
        offsets: p.offsets,
        indices: p.indices,
        counts: counts.address(),
        rows: p.rows as u64,
        samples,
    };
    let grid = (samples.div_ceil(u64::from(SAMPLE_BLOCK)), 4);
    // SAFETY: the buffers outlive the read below.
    unsafe { kernel.launch(device.stream(), grid, SAMPLE_BLOCK, &arguments)? };
    let mut c = [0; 8];
    counts.read(&mut c)?;
    Ok(RowSimilarity::new([(c[0], c[1]), (c[2], c[3]), (c[4], c[5]), (c[6], c[7])]))
}

/// Samples rows and divides them by tiles of `tile` of the `inner` rows of B.
pub(crate) fn tile_reuse(p: &Pattern<'_>, inner: usize, tile: u64) -> Result<TileReuse> {
    let device = p.device();
    let mut counts = DeviceBuffer::<u64>::queued(device, 2, "tile reuse")?;
    counts.fill(0, device.stream())?;
    let request = reuse_request(p.index_type, p.offset_type);
    let kernel = device.module(&request)?.kernel(c"tile_reuse")?;
    let samples = REUSE_SAMPLES.min(p.rows as u64);
    let (tile, rows) = (tile.max(1), p.rows as u64);
    let counted = counts.address();
    let (offsets, indices) = (p.offsets, p.indices);
    let arguments = Reuse { offsets, indices, counts: counted, rows, samples, tile };
    let grid = ((samples * 32).div_ceil(u64::from(BLOCK)), 1);
    // SAFETY: the buffers outlive the read below.
    unsafe { kernel.launch(device.stream(), grid, BLOCK, &arguments)? };
    let mut found = [0; 2];
    counts.read(&mut found)?;
    let per_segment = found[0] as f64 / found[1].max(1) as f64;
    Ok(TileReuse { per_segment, tiles: (inner as u64).div_ceil(tile) })
}
