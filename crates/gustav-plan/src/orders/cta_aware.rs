//! `cta-aware`: rows that read the same cache lines run side by side in the warps of a CTA.

use gustav_core::{Index, Result};

use super::chain::{Tie, chain};
use super::row_order::Arrangement;
use super::view::RowView;

pub(super) fn arrange<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    chain(view, 1, Tie::Stored)
}
