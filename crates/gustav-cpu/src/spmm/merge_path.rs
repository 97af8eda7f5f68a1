//! `merge-path` (Merrill, Garland 2016; Yang, Buluç, Owens 2018, §4): the same number of nonzeros
//! plus rows each, so that neither many empty rows nor a few long ones unbalance the parts.

use gustav_core::{Index, Result};

use super::carry::Cuts;
use crate::schedule;

pub(super) fn new<A: gustav_core::Arith, O: Index>(
    offsets: &[O],
    parts: usize,
    columns: usize,
) -> Result<Cuts<A>> {
    Cuts::new(offsets, schedule::merge_path(offsets, parts), columns)
}
