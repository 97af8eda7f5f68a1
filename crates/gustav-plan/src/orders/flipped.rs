//! `flipped`: plain, distributed to the warps back and forth, so that the first warp does not
//! always have the largest row of its group.

use gustav_core::{Index, Result};

use super::plain::by_load;
use super::row_order::Arrangement;
use super::view::RowView;

pub(super) fn arrange<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    let mut rows = by_load(&view.loads()?)?;
    flip(&mut rows, view.shape.warps);
    Ok(Arrangement::striped(rows))
}

/// Reverses every second group of `warps` rows.
pub(super) fn flip(rows: &mut [u32], warps: usize) {
    rows.chunks_mut(warps).skip(1).step_by(2).for_each(<[u32]>::reverse);
}
