//! `nonzero-split` (Yang, Buluç, Owens 2018, §4.2): the same number of nonzeros in every partition.
//!
//! A binary search in the row offsets finds where each partition begins; a row may be cut into any
//! number of partitions. For skewed row lengths; many empty rows unbalance it (see `merge-path`).

use gustav_core::{Arith, Index, Result};

use super::partitions::Partitions;
use crate::schedule;

pub(crate) fn plan<A: Arith, O: Index>(offsets: &[O], threads: usize) -> Result<Partitions<A>> {
    Partitions::new(offsets, schedule::nonzero_split, threads)
}
