//! `hybrid-2-2`: cta-aware, equally similar rows by similarity to the row before in the same warp.

use gustav_core::{Index, Result};

use super::chain::{Tie, chain};
use super::row_order::Arrangement;
use super::view::RowView;

pub(super) fn arrange<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    chain(view, 1, Tie::Warp)
}
