//! `lpt`: longest processing time first, to the warp with the least load so far; the load of the
//! busiest warp is at most 4/3 of the minimum.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gustav_core::{Index, Result};

use super::plain::by_load;
use super::row_order::{Arrangement, Rows};
use super::view::RowView;

pub(super) fn arrange<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    let loads = view.loads()?;
    let rows = Rows::PerWarp(distribute(&by_load(&loads)?, &loads, view.shape.warps));
    Ok(Arrangement { rows, bound: None })
}

/// Assigns each of `rows`, in their order, to the warp with the least load so far, the first in a
/// tie. Rows without nonzeros change no load and go to the warps with the fewest rows; otherwise
/// one warp would get all of them.
pub(super) fn distribute(rows: &[u32], loads: &[u64], warps: usize) -> Vec<Vec<u32>> {
    let mut lists = vec![Vec::new(); warps];
    let (filled, empty) = rows.split_at(rows.partition_point(|r| loads[*r as usize] > 0));
    let mut least: BinaryHeap<_> = (0..warps).map(|warp| Reverse((0, warp))).collect();
    for row in filled {
        if let Some(mut top) = least.peek_mut() {
            let Reverse((load, warp)) = *top;
            lists[warp].push(*row);
            *top = Reverse((load + loads[*row as usize], warp));
        }
    }
    let mut fewest: BinaryHeap<_> =
        lists.iter().enumerate().map(|(warp, list)| Reverse((list.len(), warp))).collect();
    for row in empty {
        if let Some(mut top) = fewest.peek_mut() {
            let Reverse((count, warp)) = *top;
            lists[warp].push(*row);
            *top = Reverse((count + 1, warp));
        }
    }
    lists
}
