//! The row that is left and most like another one.

mod neighbourhoods;
mod ranked;
mod scan;
mod sharing;

use gustav_core::Result;

use super::view::Search;
use crate::facts::CacheLines;

// Steps of an exact search that take about a second.
const AFFORDABLE: u128 = 1 << 30;
// Candidates on each side of each neighbourhood where an exact search takes longer.
const BOUND: usize = 8;

/// Rows that are left.
pub(super) trait Left {
    /// The row that is left with the smallest distance to row `to`; of equally near ones that
    /// which is nearest to row `also`, else that of the smaller warp load where loads rank, else
    /// the first as stored. `None` when no row is left.
    fn nearest(&mut self, to: u32, also: Option<u32>) -> Option<u32>;

    /// Takes out a row that was left.
    fn remove(&mut self, row: u32);
}

/// What is compared.
#[derive(Clone, Copy)]
pub(super) struct Ranking<'a> {
    pub lines: &'a CacheLines,
    /// Warp loads, where they decide among rows that are equally near.
    pub loads: Option<&'a [u64]>,
}

/// Distance, what decides among equal ones, row: the smallest is taken.
type Key = (usize, u64, u32);

impl Ranking<'_> {
    fn lines_of(&self, row: u32) -> &[u32] {
        self.lines.row(row as usize)
    }

    /// Number of lines, load, row: the least of rows that share no line with any other.
    fn alone(&self, row: u32) -> Key {
        (self.lines_of(row).len(), self.load(row), row)
    }

    fn load(&self, row: u32) -> u64 {
        self.loads.map_or(0, |loads| loads[row as usize])
    }

    fn distance(&self, r: u32, s: u32) -> usize {
        self.lines.distance(r as usize, s as usize)
    }

    /// The key of `row` when it is `distance` away from the row that is to be followed.
    fn key(&self, distance: usize, row: u32, also: Option<u32>) -> Key {
        let tie = also.map_or_else(|| self.load(row), |other| self.distance(other, row) as u64);
        (distance, tie, row)
    }

    /// Whether rows with `a` and `b` lines may be `most` apart or nearer.
    fn may_be_near(a: usize, b: usize, most: usize) -> bool {
        a.abs_diff(b) <= most
    }
}

/// The rows `members`, all of them left, and the bound of the search where it has one.
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
