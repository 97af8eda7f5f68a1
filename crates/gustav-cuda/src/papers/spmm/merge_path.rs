//! `merge-path`: equal nonzeros and row ends per CTA, after Merrill and Garland (2016) and Yang,
//! Buluç and Owens (2018, §4). See `kernels/papers/spmm/merge_path.cu`.

use std::ffi::CStr;

use gustav_core::{Problem, Result};
use gustav_plan::Algorithm;

use super::flattened;
use crate::jit::Request;
use crate::papers;
use crate::papers::flattened::Partitioning;

pub use super::flattened::Config;
pub(crate) use super::flattened::{ANY_LAYOUT, choose, configs};

pub(crate) type Prepared = flattened::Prepared<MergePath>;

/// Partitions of equal nonzeros and row ends together.
pub(crate) struct MergePath;

impl Partitioning for MergePath {
    const KERNELS: [&'static CStr; 3] =
        [c"merge_path_boundaries", c"merge_path", c"merge_path_fix_up"];
    const ROW_ENDS: bool = true;

    fn source() -> Request {
        request!("papers/spmm/merge_path.cu")
    }
}

/// What the paper defines.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    papers::spmm(problem, Algorithm::MergePath, papers::ROW_MAJOR)
}
