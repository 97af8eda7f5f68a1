//! `merge-path`: equal nonzeros and row ends per CTA, after Merrill and Garland (2016). See `kernels/spmv/merge_path.cu`.

use std::ffi::CStr;

use gustav_core::{Operation, Problem, Result};
use gustav_plan::Algorithm;

use super::flattened;
use crate::spmm::flattened::Partitions;
use crate::spmm::papers;

pub use super::flattened::Config;
pub(super) use super::flattened::{ANY_LAYOUT, choose, configs};

pub(super) type Prepared = flattened::Prepared<MergePath>;

/// Partitions of equal nonzeros and row ends together.
pub(crate) struct MergePath;

impl Partitions for MergePath {
    const SOURCE: (&'static str, &'static str) =
        ("spmv/merge_path.cu", include_str!("../../kernels/spmv/merge_path.cu"));
    const KERNELS: [&'static CStr; 3] =
        [c"merge_path_boundaries", c"merge_path", c"merge_path_fix_up"];

    fn work(rows: u64, nonzeros: u64) -> u64 {
        rows + nonzeros
    }
}

/// What the paper defines.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    papers::supports(
        problem,
        Algorithm::MergePath,
        Operation::Spmv,
        papers::VECTOR,
        Algorithm::RowSplit,
    )
}
