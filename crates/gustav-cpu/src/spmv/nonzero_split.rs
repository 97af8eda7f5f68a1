//! `nonzero-split` (Yang, Buluç, Owens 2018, §4.2): the same number of nonzeros in every share.
//!
//! A binary search in the row offsets finds where each share begins; a row may be cut into any
//! number of shares. For skewed row lengths; many empty rows unbalance it (see `merge-path`).

use gustav_core::{Arith, Index, Result};

use super::shares::Shares;
use crate::schedule;

pub(crate) fn plan<A: Arith, O: Index>(offsets: &[O], threads: usize) -> Result<Shares<A>> {
    Shares::new(offsets, schedule::nonzero_split, threads)
}
