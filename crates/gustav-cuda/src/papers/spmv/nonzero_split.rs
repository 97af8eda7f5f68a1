//! `nonzero-split`: equal nonzeros per CTA, as Yang, Buluç and Owens (2018, §4) describe it for
//! vectors. See `kernels/papers/spmv/nonzero_split.cu`.

use std::ffi::CStr;

use gustav_core::{Operation, Problem, Result};
use gustav_plan::Algorithm;

use super::flattened;
use crate::jit::Request;
use crate::papers;
use crate::papers::flattened::Partitioning;

pub use super::flattened::Config;
pub(crate) use super::flattened::{ANY_LAYOUT, choose, configs};

pub(crate) type Prepared = flattened::Prepared<NonzeroSplit>;

/// Partitions of equal nonzeros.
pub(crate) struct NonzeroSplit;

impl Partitioning for NonzeroSplit {
    const KERNELS: [&'static CStr; 3] =
        [c"nonzero_split_boundaries", c"nonzero_split", c"nonzero_split_fix_up"];
    const ROW_ENDS: bool = false;

    fn source() -> Request {
        request!("papers/spmv/nonzero_split.cu")
    }
}

/// What the paper defines.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    papers::supports(
        problem,
        Algorithm::NonzeroSplit,
        Operation::Spmv,
        papers::VECTOR,
        Algorithm::RowSplit,
    )
}
