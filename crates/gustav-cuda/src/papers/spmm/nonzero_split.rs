//! `nonzero-split`: equal nonzeros per CTA, as Yang, Buluç and Owens (2018, §4.2) describe it under
//! the name merge-based. See `kernels/papers/spmm/nonzero_split.cu`.

use std::ffi::CStr;

use gustav_core::{Problem, Result};
use gustav_plan::Algorithm;

use super::flattened::{self, Partitions};
use crate::papers;

pub use super::flattened::Config;
pub(crate) use super::flattened::{ANY_LAYOUT, choose, configs};

pub(crate) type Prepared = flattened::Prepared<NonzeroSplit>;

/// Partitions of equal nonzeros.
pub(crate) struct NonzeroSplit;

impl Partitions for NonzeroSplit {
    const SOURCE: (&'static str, &'static str) = (
        "papers/spmm/nonzero_split.cu",
        include_str!("../../../kernels/papers/spmm/nonzero_split.cu"),
    );
    const KERNELS: [&'static CStr; 3] =
        [c"nonzero_split_boundaries", c"nonzero_split", c"nonzero_split_fix_up"];

    fn work(_rows: u64, nonzeros: u64) -> u64 {
        nonzeros
    }
}

/// What the paper defines.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    papers::spmm(problem, Algorithm::NonzeroSplit, papers::ROW_MAJOR)
}
