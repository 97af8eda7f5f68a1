//! `plain`: rows by warp load, so that the warps of a CTA have rows of similar load at any time.

use std::cmp::Reverse;

use gustav_core::{Index, Result};

use super::row_order::Arrangement;
use super::view::{RowView, sorted_by};

pub(super) fn arrange<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    Ok(Arrangement::striped(by_load(&view.loads()?)?))
}

/// Rows from the largest load to the smallest; rows of equal load as stored.
pub(super) fn by_load(loads: &[u64]) -> Result<Vec<u32>> {
    sorted_by(loads.len(), |row| Reverse(loads[row as usize]))
}
