//! `stored`: rows as they are, the baseline of the other orders.

use gustav_core::buffer::try_vec;
use gustav_core::{Index, Result};

use super::row_order::Arrangement;
use super::view::RowView;

pub(super) fn arrange<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    let mut rows = try_vec(view.a.nrows(), "an order of rows")?;
    rows.extend(0..view.a.nrows() as u32);
    Ok(Arrangement::striped(rows))
}
