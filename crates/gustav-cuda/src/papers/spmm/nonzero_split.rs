//! `nonzero-split`: equal nonzeros per CTA, as Yang, Buluç and Owens (2018, §4.2) describe it under
//! the name merge-based. See `kernels/papers/spmm/nonzero_split.cu`.

use gustav_core::{Problem, Result};
use gustav_plan::Algorithm;

use super::flattened;
use crate::papers;
use crate::papers::flattened::NonzeroSplit;

pub use super::flattened::Config;
pub(crate) use super::flattened::{ANY_LAYOUT, choose, configs};

pub(crate) type Prepared = flattened::Prepared<NonzeroSplit>;

/// Supports what the paper defines.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    papers::spmm(problem, Algorithm::NonzeroSplit, papers::ROW_MAJOR)
}
