//! `merge-path` (Merrill, Garland 2016; Yang, Buluç, Owens 2018, §4): the same number of
//! nonzeros plus rows in every partition, by search along the diagonals of their merge.
//!
//! Balanced for any row lengths, including empty rows.

use gustav_core::{Arith, Index, Result};

use super::partitions::Partitions;
use crate::schedule;

pub(crate) fn plan<A: Arith, O: Index>(offsets: &[O], threads: usize) -> Result<Partitions<A>> {
    Partitions::new(offsets, schedule::merge_path, threads)
}
