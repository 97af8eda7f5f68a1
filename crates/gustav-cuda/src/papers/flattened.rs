//! The common part of `nonzero-split` and `merge-path`, for SpMM and SpMV: partitions of equal
//! work, one for each CTA, and their carry-outs.

use std::ffi::CStr;

use gustav_core::{Error, Problem, Result};

use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;

/// An algorithm's way to partition a matrix, and its kernels.
pub(crate) trait Partitioning: Send {
    /// Its three kernels: boundaries, sums, fix-up.
    const KERNELS: [&'static CStr; 3];
    /// Whether row ends count as work, beside nonzeros.
    const ROW_ENDS: bool;

    /// The source of the kernels of SpMM.
    fn spmm() -> Request;

    /// The source of the kernels of SpMV.
    fn spmv() -> Request;
}

/// Partitions of equal nonzeros.
pub(crate) struct NonzeroSplit;

impl Partitioning for NonzeroSplit {
    const KERNELS: [&'static CStr; 3] =
        [c"nonzero_split_boundaries", c"nonzero_split", c"nonzero_split_fix_up"];
    const ROW_ENDS: bool = false;

    fn spmm() -> Request {
        request!("papers/spmm/nonzero_split.cu")
    }

    fn spmv() -> Request {
        request!("papers/spmv/nonzero_split.cu")
    }
}

/// Partitions of equal nonzeros and row ends together.
pub(crate) struct MergePath;

impl Partitioning for MergePath {
    const KERNELS: [&'static CStr; 3] =
        [c"merge_path_boundaries", c"merge_path", c"merge_path_fix_up"];
    const ROW_ENDS: bool = true;

    fn spmm() -> Request {
        request!("papers/spmm/merge_path.cu")
    }

    fn spmv() -> Request {
        request!("papers/spmv/merge_path.cu")
    }
}

/// Checks that there are kernels for a CTA of `threads` threads with `items` items each; `more` is
/// the result of further checks.
pub(crate) fn check_cta(threads: u32, items: u32, more: bool) -> Result<()> {
    let fits = (32..=1024).contains(&threads)
        && threads.is_multiple_of(32)
        && (1..=16).contains(&items)
        && threads * items <= 2048;
    if fits && more {
        return Ok(());
    }
    Err(Error::Argument {
        name: "config of equal partitions",
        found: format!("{items} items for each of {threads} threads"),
        expected:
            "whole warps of at most 1024 threads, 1 to 16 items a thread, at most 2048 a CTA, \
                   and of SpMM 4, 8, 16 or 32 columns"
                .into(),
    })
}

/// The partitions of a pattern: their boundaries, and memory for their carry-outs.
pub(crate) struct Partitions {
    pub count: u64,
    boundaries: DeviceBuffer<u64>,
    carry_rows: DeviceBuffer<u32>,
    carries: DeviceBuffer<u64>,
}

/// Addresses of [`Partitions`].
pub(crate) struct Addresses {
    pub boundaries: u64,
    pub carry_rows: u64,
    pub carries: u64,
}

impl Partitions {
    /// Partitions of `size` items each, with a carry-out of `width` values.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub(crate) fn new<P: Partitioning>(
        device: &Device,
        problem: &Problem,
        size: u32,
        width: usize,
    ) -> Result<Self> {
        let row_ends = if P::ROW_ENDS { problem.output_rows() } else { 0 };
        let count = (row_ends + problem.nnz).div_ceil(size as usize).max(1);
        let bytes = count.saturating_mul(width).saturating_mul(problem.dtype.bytes());
        Ok(Partitions {
            count: count as u64,
            boundaries: DeviceBuffer::uninit(device, count + 1, "boundaries of partitions")?,
            carry_rows: DeviceBuffer::uninit(device, count, "rows that are carried out")?,
            carries: DeviceBuffer::uninit(device, bytes.div_ceil(8), "sums carried out")?,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.boundaries.bytes() + self.carry_rows.bytes() + self.carries.bytes()
    }

    /// The addresses, for work on `stream`.
    pub(crate) fn used_on(&self, stream: &Stream) -> Addresses {
        self.boundaries.used_on(stream);
        self.carry_rows.used_on(stream);
        self.carries.used_on(stream);
        self.addresses()
    }

    /// The addresses, for work that is done before the plan is used.
    pub(crate) fn addresses(&self) -> Addresses {
        Addresses {
            boundaries: self.boundaries.address(),
            carry_rows: self.carry_rows.address(),
            carries: self.carries.address(),
        }
    }
}
