//! `hybrid-2-1`: cta-aware, equally similar rows by warp load.

use gustav_core::{Index, Result};

use super::chain::{Tie, chain};
use super::row_order::Arrangement;
use super::view::RowView;

pub(super) fn arrange<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    chain(view, 1, Tie::Load)
}
