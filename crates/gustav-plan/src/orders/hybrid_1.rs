//! `hybrid-1-plain`, `hybrid-1-flipped`, `hybrid-1-lpt`: an order by warp load in which each row of
//! equal load follows the one that is most similar to it. The study does not name the base order,
//! so there is one order for each.

use gustav_core::buffer::try_vec;
use gustav_core::{Index, Result};

use super::flipped::flip;
use super::nearest::{self, Ranking};
use super::plain::by_load;
use super::row_order::{Arrangement, Rows};
use super::view::RowView;

pub(super) fn plain<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    let (rows, bound) = alike(view, &view.loads()?)?;
    Ok(Arrangement { rows: Rows::Striped(rows), bound })
}

pub(super) fn flipped<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    let (mut rows, bound) = alike(view, &view.loads()?)?;
    flip(&mut rows, view.shape.warps);
    Ok(Arrangement { rows: Rows::Striped(rows), bound })
}

pub(super) fn lpt<I: Index, O: Index>(view: &RowView<'_, '_, I, O>) -> Result<Arrangement> {
    let loads = view.loads()?;
    let (rows, bound) = alike(view, &loads)?;
    Ok(Arrangement {
        rows: Rows::PerWarp(super::lpt::distribute(&rows, &loads, view.shape.warps)),
        bound,
    })
}

/// Rows from the largest load to the smallest; among rows of equal load, each the nearest to the
/// one before it. The first row is the first stored one.
fn alike<I: Index, O: Index>(
    view: &RowView<'_, '_, I, O>,
    loads: &[u64],
) -> Result<(Vec<u32>, Option<usize>)> {
    let (lines, sorted) = (view.lines()?, by_load(loads)?);
    let mut sequence: Vec<u32> = try_vec(sorted.len(), "an order of rows")?;
    let mut bound = None;
    for class in sorted.chunk_by(|a, b| loads[*a as usize] == loads[*b as usize]) {
        let mut members = try_vec(class.len(), "rows of equal load")?;
        members.extend_from_slice(class);
        let ranking = Ranking { lines: &lines, loads: None };
        let (mut left, bounded) = nearest::among(ranking, members, view.search)?;
        bound = bound.max(bounded);
        for _ in class {
            let next = match sequence.last() {
                Some(last) => left.nearest(*last, None),
                None => class.first().copied(),
            };
            let Some(next) = next else { break };
            left.remove(next);
            sequence.push(next);
        }
    }
    Ok((sequence, bound))
}
