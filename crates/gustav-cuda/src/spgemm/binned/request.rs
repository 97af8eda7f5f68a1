//! The kernel files and their parameters.

use gustav_core::DType;

use super::bins::{
    BINS, BLOCK, GIANT_GROUP, MEDIUM_ENTRIES, SMALL, SMALL_ENTRIES, TINY, TINY_GROUP,
};
use super::{Arguments, Config};
use crate::jit::{Request, source};
use crate::spgemm::types::Types;

/// Threads of a CTA: of the analysis, of the analysis of long rows, of the scan, and of the list of
/// rows; and rows per thread of the last two.
pub(super) const ANALYSIS: u32 = 256;
pub(super) const LONG_ANALYSIS: u32 = 1024;
pub(super) const SCAN: u32 = 256;
pub(super) const ITEMS: u32 = 4;
// Rows with more products than this get a range of columns.
const RANGED: u32 = 64;
// Most columns and entries of rows with a bitmask of a warp.
const NARROW: u32 = 32_768;
const NARROW_ENTRIES: u32 = 512;
// Most products of rows in hash tables of a warp and of a CTA.
const SMALL_PRODUCTS: u32 = 1024;
const MEDIUM_PRODUCTS: u32 = 8192;
// Rows that span more columns than this are sorted by a CTA rather than ranked.
const MEDIUM_WIDTH: u32 = 65_536;
// Most entries of rows of the smaller CTA.
const WIDE_ENTRIES: u32 = 4096;
const HUGE_ENTRIES: u32 = 12_288;
// Fewest products of rows with a dense accumulator, and fewest products per nonzero.
const DENSE_PRODUCTS: u32 = 4096;
const DENSE_MEAN: u32 = 128;
const VAST_MEAN: u32 = 512;
// Bytes of dense accumulators with which several CTAs fit on a multiprocessor.
const DENSE_BYTES: u32 = 64 << 10;
// Most columns of rows that are cut into chunks: their sums must fit in shared memory.
const CUT_WIDTH: u32 = 8192;

/// Limits of a device and a type of sums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of shared memory that a launch may request.
    pub shared: usize,
    /// Bytes of a sum.
    pub sum: usize,
}

/// The kernel files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Analysis,
    Symbolic,
    Offsets,
    RowList,
    Numeric,
}

/// `request` with the parameters of `kernels/spgemm/arguments.cuh`.
pub(in crate::spgemm) fn typed(request: Request, types: Types) -> Request {
    types.of_arrays(request).with("BINS", BINS).with("NARROW", NARROW).with("CUT_WIDTH", CUT_WIDTH)
}

/// A file with its parameters.
pub(crate) fn request(file: Source, types: Types, config: Config, limits: Limits) -> Request {
    let request = match file {
        Source::Analysis => request!("spgemm/analysis.cu"),
        Source::Symbolic => request!("spgemm/symbolic.cu"),
        Source::Offsets => request!("spgemm/offsets.cu"),
        Source::RowList => request!("spgemm/row_list.cu"),
        Source::Numeric => request!("spgemm/numeric.cu"),
    };
    // Only the numeric phase reads values.
    let (dtype, out) = match file {
        Source::Numeric => (types.dtype, types.out),
        _ => (DType::F32, DType::F32),
    };
    let request = typed(request.with_block::<Arguments>(), Types { dtype, out, ..types });
    let request = request.with("TINY", TINY);
    // A sum and a bit, rounded up.
    let bytes = limits.sum as u32 + 1;
    match file {
        Source::Analysis => request
            .with("BLOCK", ANALYSIS)
            .with("LONG_BLOCK", LONG_ANALYSIS)
            .with("RANGED", RANGED)
            .with("SMALL", SMALL),
        Source::RowList => request.with("BLOCK", SCAN).with("ITEMS", ITEMS),
        Source::Symbolic => request
            .with("BLOCK", BLOCK)
            .with("TINY_GROUP", TINY_GROUP)
            .with("TINY_LOG", (2 * TINY).ilog2())
            .with("SMALL_LOG", (2 * SMALL).ilog2())
            .with("WIDE_GROUP", config.wide)
            .with("HUGE_GROUP", config.huge)
            .with("GIANT_GROUP", GIANT_GROUP),
        Source::Offsets => request
            .with("BLOCK", SCAN)
            .with("ITEMS", ITEMS)
            .with("SMALL_ENTRIES", SMALL_ENTRIES)
            .with("MEDIUM_ENTRIES", MEDIUM_ENTRIES)
            .with("MEDIUM_WIDTH", MEDIUM_WIDTH)
            .with("SMALL_PRODUCTS", SMALL_PRODUCTS)
            .with("MEDIUM_PRODUCTS", MEDIUM_PRODUCTS)
            .with("NARROW_ENTRIES", NARROW_ENTRIES)
            .with("WIDE_ENTRIES", WIDE_ENTRIES)
            .with("HUGE_ENTRIES", HUGE_ENTRIES)
            .with("DENSE_PRODUCTS", DENSE_PRODUCTS)
            .with("DENSE_MEAN", DENSE_MEAN)
            .with("VAST_MEAN", VAST_MEAN)
            .with("DENSE", DENSE_BYTES / bytes)
            .with("VAST", limits.shared as u32 / bytes / 32 * 32),
        Source::Numeric => request
            .with("SEMIRING", source::semiring(types.semiring))
            .with("BLOCK", BLOCK)
            .with("TINY_GROUP", TINY_GROUP)
            .with("TINY_LOG", (2 * TINY).ilog2())
            .with("SMALL_ENTRIES", SMALL_ENTRIES)
            .with("MEDIUM_ENTRIES", MEDIUM_ENTRIES)
            .with("WIDE_GROUP", config.wide)
            .with("HUGE_GROUP", config.huge)
            .with("GIANT_GROUP", GIANT_GROUP)
            .with("DENSE_GROUP", config.dense),
    }
}
