//! `merge-path`: equal nonzeros and row ends per CTA, after Merrill and Garland (2016). See
//! `kernels/papers/spmv/merge_path.cu`.

use gustav_core::{Operation, Problem, Result};
use gustav_plan::Algorithm;

use super::flattened;
use crate::papers;
use crate::papers::flattened::MergePath;

pub use super::flattened::Config;
pub(crate) use super::flattened::{ANY_LAYOUT, choose, configs};

pub(crate) type Prepared = flattened::Prepared<MergePath>;

/// Supports what the paper defines.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    papers::supports(
        problem,
        Algorithm::MergePath,
        Operation::Spmv,
        papers::VECTOR,
        Algorithm::RowSplit,
    )
}
