//! `stored`: rows as they are, what other orders are compared with.

use gustav_core::{Index, Result, Scalar};

use super::row_order::Arrangement;
use super::view::{RowView, sorted_by};

pub(super) fn arrange<T: Scalar, I: Index, O: Index>(
    view: &RowView<'_, '_, T, I, O>,
) -> Result<Arrangement> {
    Ok(Arrangement::striped(sorted_by(view.a.nrows(), |row| row)?))
}
