//! Searches for the remaining row that is most similar to a given one.

mod neighbourhoods;
mod ranked;
mod scan;
mod sharing;

use gustav_core::Result;

use super::view::Search;
use crate::facts::CacheLines;

// Steps of an exact search in about a second.
const AFFORDABLE: u128 = 1 << 30;
// Candidates on each side of each neighbourhood if an exact search would take longer.
const BOUND: usize = 8;

/// The remaining rows.
pub(super) trait Left {
    /// The remaining row with the smallest distance to row `to`; in a tie the one nearest to row
    /// `also`, then, if loads are compared, the one with the smaller warp load, then the first as
    /// stored. `None` when no row remains.
    fn nearest(&mut self, to: u32, also: Option<u32>) -> Option<u32>;

    /// Removes a remaining row.
    fn remove(&mut self, row: u32);
}

/// The criteria by which rows are compared.
#[derive(Clone, Copy)]
pub(super) struct Ranking<'a> {
    pub lines: &'a CacheLines,
    /// Warp loads, if they are the tie-breaker.
    pub loads: Option<&'a [u64]>,
}

/// Distance, tie-breaker, row: the smallest key wins.
type Key = (usize, u64, u32);

impl Ranking<'_> {
    fn lines_of(&self, row: u32) -> &[u32] {
        self.lines.row(row as usize)
    }

    /// The key of a row that shares no line with any other: number of lines, load, row.
    fn alone(&self, row: u32) -> Key {
        (self.lines_of(row).len(), self.load(row), row)
    }

    fn load(&self, row: u32) -> u64 {
        self.loads.map_or(0, |loads| loads[row as usize])
    }

    fn distance(&self, r: u32, s: u32) -> usize {
        self.lines.distance(r as usize, s as usize)
    }

    /// The key of `row` at `distance` from the given row.
    fn key(&self, distance: usize, row: u32, also: Option<u32>) -> Key {
        let tie = also.map_or_else(|| self.load(row), |other| self.distance(other, row) as u64);
        (distance, tie, row)
    }

    /// Whether the distance of rows with `a` and `b` lines can be at most `most`.
    fn may_be_near(a: usize, b: usize, most: usize) -> bool {
        a.abs_diff(b) <= most
    }
}

/// A search among the rows `members`, and its bound if it is not exact.
pub(super) fn among<'a>(
    ranking: Ranking<'a>,
    mut members: Vec<u32>,
    search: Search,
) -> Result<(Box<dyn Left + 'a>, Option<usize>)> {
    members.sort_unstable();
    let scan = scan::cost(&ranking, &members);
    let (sharing, lists) = sharing::cost(&ranking, &members)?;
    let bound = match search {
        Search::Exact => None,
        Search::Bounded(bound) => Some(bound),
        Search::Auto => (scan.min(sharing) > AFFORDABLE).then_some(BOUND),
    };
    let left: Box<dyn Left + 'a> = match bound {
        Some(bound) => Box::new(neighbourhoods::Neighbourhoods::new(ranking, members, bound)?),
        None if scan < sharing => Box::new(scan::Scan::new(ranking, members)?),
        None => Box::new(sharing::Sharing::new(ranking, members, lists)?),
    };
    Ok((left, bound))
}
