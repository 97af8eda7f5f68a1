//! `nonzero-split` (Yang, Buluç, Owens 2018, §4.2): the same number of nonzeros each. Rows may be
//! cut; the carry-outs are added in the order of the parts.

use gustav_core::{Index, Result};

use super::carry::Cuts;
use crate::schedule;

pub(super) fn new<A: gustav_core::Arith, O: Index>(
    offsets: &[O],
    parts: usize,
    columns: usize,
) -> Result<Cuts<A>> {
    Cuts::new(offsets, schedule::nonzero_split(offsets, parts), columns)
}
