//! Greedy chains of rows: each next row is the one most similar to an earlier one.

use gustav_core::buffer::try_vec;
use gustav_core::{Index, Result};

use super::nearest::{self, Ranking};
use super::row_order::{Arrangement, Rows};
use super::view::{RowView, sorted_by};

/// The tie-breaker among equally similar rows; remaining ties go by the stored order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tie {
    /// The stored order alone.
    Stored,
    /// The smaller warp load.
    Load,
    /// The smaller distance to the row before in the same warp.
    Warp,
}

/// Begins with the `step` rows of the lowest warp load; every other position takes the remaining
/// row with the smallest distance to the row `step` positions earlier.
pub(super) fn chain<I: Index, O: Index>(
    view: &RowView<'_, '_, I, O>,
    step: usize,
    tie: Tie,
) -> Result<Arrangement> {
    let (rows, warps) = (view.a.nrows(), view.shape.warps);
    let (loads, lines) = (view.loads()?, view.lines()?);
    let ranking = Ranking { lines: &lines, loads: (tie == Tie::Load).then_some(&loads) };
    let mut all = try_vec(rows, "rows to order")?;
    all.extend(0..rows as u32);
    let (mut left, bound) = nearest::among(ranking, all, view.search)?;
    let mut sequence: Vec<u32> = try_vec(rows, "an order of rows")?;
    let first = sorted_by(rows, |row| loads[row as usize])?;
    for row in first.into_iter().take(step) {
        left.remove(row);
        sequence.push(row);
    }
    while sequence.len() < rows {
        let position = sequence.len();
        let also = (tie == Tie::Warp && position >= warps).then(|| sequence[position - warps]);
        let Some(next) = left.nearest(sequence[position - step], also) else { break };
        left.remove(next);
        sequence.push(next);
    }
    Ok(Arrangement { rows: Rows::Striped(sequence), bound })
}
