//! `dcsr`: the nonempty rows, then the empty ones, which only β changes.

use gustav_core::{Index, Result};

use super::row_order::Arrangement;
use super::view::{RowView, sorted_by};

pub(super) fn arrange<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    let empty = |row: u32| view.a.row_len(row as usize) == 0;
    Ok(Arrangement::striped(sorted_by(view.a.nrows(), empty)?))
}
