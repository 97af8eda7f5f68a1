//! `warp-aware`: each row of a warp follows a row that reads the same cache lines, for reuse inside
//! a warp.

use gustav_core::{Index, Result};

use super::chain::{Tie, chain};
use super::row_order::Arrangement;
use super::view::RowView;

pub(super) fn arrange<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    chain(view, view.shape.warps, Tie::Stored)
}
