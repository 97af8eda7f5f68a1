//! Exact search by lists of the rows that read each line: they give the rows that share a line with
//! the given one; of all others, the one with the fewest lines is nearest. Fast if few rows read
//! each line.

use gustav_core::buffer::try_vec;
use gustav_core::{Result, parallel};

use super::ranked::Ranked;
use super::{Key, Left, Ranking};

/// The indices, among the members, of the rows that read each line.
pub(super) struct Lists {
    lines: Vec<u32>,
    starts: Vec<usize>,
    ends: Vec<usize>,
    positions: Vec<u32>,
}

/// The number of list entries read until no row remains, and the lists. `members` are ascending.
pub(super) fn cost(ranking: &Ranking<'_>, members: &[u32]) -> Result<(u128, Lists)> {
    let total = members.iter().map(|row| ranking.lines_of(*row).len()).sum();
    let mut pairs: Vec<(u32, u32)> = try_vec(total, "rows of cache lines")?;
    for (position, row) in (0..).zip(members) {
        pairs.extend(ranking.lines_of(*row).iter().map(|line| (*line, position)));
    }
    parallel::sort(&mut pairs);
    let (mut lines, mut starts, mut ends, mut cost) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for list in pairs.chunk_by(|a, b| a.0 == b.0) {
        let start = ends.last().copied().unwrap_or(0);
        lines.push(list[0].0);
        starts.push(start);
        ends.push(start + list.len());
        cost += (list.len() as u128).pow(2) / 2;
    }
    let mut positions = try_vec(total, "rows of cache lines")?;
    positions.extend(pairs.into_iter().map(|(_, position)| position));
    Ok((cost, Lists { lines, starts, ends, positions }))
}

pub(super) struct Sharing<'a> {
    ranking: Ranking<'a>,
    members: Vec<u32>,
    lists: Lists,
    used: Vec<bool>,
    // For each member the lines shared with the given row, and the members that share any.
    shared: Vec<u32>,
    touched: Vec<u32>,
    // Rows by number of lines, the fewest first.
    alone: Ranked<Key>,
}

impl<'a> Sharing<'a> {
    pub fn new(ranking: Ranking<'a>, members: Vec<u32>, lists: Lists) -> Result<Self> {
        let alone = Ranked::new(&members, |row| ranking.alone(row))?;
        let mut shared = try_vec(members.len(), "lines that rows share")?;
        shared.resize(members.len(), 0);
        let used = vec![false; members.len()];
        let touched = Vec::new();
        Ok(Sharing { ranking, members, lists, used, shared, touched, alone })
    }

    /// Visits the remaining rows that share a line with `row`; with `count`, counts the lines that
    /// each shares.
    fn touch(&mut self, row: u32, count: bool) {
        let Lists { lines, starts, ends, positions } = &mut self.lists;
        for line in self.ranking.lines_of(row) {
            let Ok(list) = lines.binary_search(line) else { continue };
            let mut end = starts[list];
            for at in starts[list]..ends[list] {
                let position = positions[at];
                if self.used[position as usize] {
                    continue;
                }
                positions[end] = position;
                end += 1;
                let shared = &mut self.shared[position as usize];
                if *shared == 0 {
                    // The lowest bit marks visited rows, even without a count.
                    *shared = 1;
                    self.touched.push(position);
                }
                *shared += 2 * u32::from(count);
            }
            ends[list] = end;
        }
    }
}

impl Left for Sharing<'_> {
    fn nearest(&mut self, to: u32, also: Option<u32>) -> Option<u32> {
        self.touch(to, true);
        if let Some(other) = also {
            self.touch(other, false);
        }
        let ranking = self.ranking;
        let own = ranking.lines_of(to).len();
        let mut best: Option<Key> = None;
        let mut visit = |row: u32, shared: usize| {
            let apart = own + ranking.lines_of(row).len() - 2 * shared;
            if best.is_none_or(|(least, ..)| apart <= least) {
                let key = ranking.key(apart, row, also);
                best = Some(best.map_or(key, |b| b.min(key)));
            }
        };
        for position in &self.touched {
            let position = *position as usize;
            visit(self.members[position], self.shared[position] as usize / 2);
        }
        // The first of those that share nothing.
        let (members, shared) = (&self.members, &self.shared);
        self.alone.until(|row| {
            let nothing = members.binary_search(&row).is_ok_and(|position| shared[position] == 0);
            if nothing {
                visit(row, 0);
            }
            nothing
        });
        for position in self.touched.drain(..) {
            self.shared[position as usize] = 0;
        }
        best.map(|(.., row)| row)
    }

    fn remove(&mut self, row: u32) {
        if let Ok(position) = self.members.binary_search(&row) {
            self.used[position] = true;
            self.alone.remove(&self.ranking.alone(row), row);
        }
    }
}
