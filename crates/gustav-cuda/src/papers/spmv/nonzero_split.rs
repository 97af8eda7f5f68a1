//! `nonzero-split`: equal nonzeros per CTA, as Yang, Buluç and Owens (2018, §4) describe it for
//! vectors. See `kernels/papers/spmv/nonzero_split.cu`.

use std::ffi::CStr;

use gustav_core::{Operation, Problem, Result};
use gustav_plan::Algorithm;

use super::flattened;
use crate::papers;
use crate::papers::spmm::flattened::Partitions;

pub use super::flattened::Config;
pub(crate) use super::flattened::{ANY_LAYOUT, choose, configs};

pub(crate) type Prepared = flattened::Prepared<NonzeroSplit>;

/// Partitions of equal nonzeros.
pub(crate) struct NonzeroSplit;

impl Partitions for NonzeroSplit {
    const SOURCE: (&'static str, &'static str) = (
        "papers/spmv/nonzero_split.cu",
        include_str!("../../../kernels/papers/spmv/nonzero_split.cu"),
    );
    const KERNELS: [&'static CStr; 3] =
        [c"nonzero_split_boundaries", c"nonzero_split", c"nonzero_split_fix_up"];

    fn work(_rows: u64, nonzeros: u64) -> u64 {
        nonzeros
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
