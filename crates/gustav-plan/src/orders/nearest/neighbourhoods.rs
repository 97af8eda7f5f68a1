//! Bounded search: a few rows are compared in each of a few neighbourhoods. A neighbourhood is a
//! sorted list in which similar rows are likely to be close; removed elements are skipped in
//! near-constant time.

use gustav_core::Result;

use super::ranked::Ranked;
use super::{Key, Left, Ranking};
use crate::orders::min_hash::min_hashes;

// Number of neighbourhoods by min-hashes, and min-hashes of each.
const TABLES: u64 = 2;
const HASHES: usize = 2;

pub(super) struct Neighbourhoods<'a> {
    ranking: Ranking<'a>,
    bound: usize,
    // Rows in ascending order: the stored neighbourhood.
    stored: Ranked<u32>,
    // Rows by number of lines, the fewest first.
    alone: Ranked<Key>,
    hashed: Vec<Ranked<[u32; HASHES]>>,
}

impl<'a> Neighbourhoods<'a> {
    /// `members` are ascending.
    pub fn new(ranking: Ranking<'a>, members: Vec<u32>, bound: usize) -> Result<Self> {
        let hashed = |table: u64| Ranked::new(&members, |row| hashes(&ranking, row, table));
        let hashed = (0..TABLES).map(hashed).collect::<Result<_>>()?;
        let alone = Ranked::new(&members, |row| ranking.alone(row))?;
        let stored = Ranked::new(&members, |row| row)?;
        Ok(Neighbourhoods { ranking, bound, stored, alone, hashed })
    }
}

fn hashes(ranking: &Ranking<'_>, row: u32, table: u64) -> [u32; HASHES] {
    let lines = ranking.lines_of(row).iter().map(|line| *line as usize);
    min_hashes(lines, table * HASHES as u64)
}

impl Left for Neighbourhoods<'_> {
    fn nearest(&mut self, to: u32, also: Option<u32>) -> Option<u32> {
        let ranking = self.ranking;
        let own = ranking.lines_of(to).len();
        let mut best: Option<Key> = None;
        let mut visit = |row: u32| {
            let lines = ranking.lines_of(row).len();
            let least = best.map_or(usize::MAX, |(least, ..)| least);
            if !Ranking::may_be_near(own, lines, least) {
                return;
            }
            let apart = ranking.distance(to, row);
            if apart <= least {
                let key = ranking.key(apart, row, also);
                best = Some(best.map_or(key, |b| b.min(key)));
            }
        };
        self.stored.around(&to, self.bound, &mut visit);
        for (table, ranked) in (0..).zip(&mut self.hashed) {
            ranked.around(&hashes(&ranking, to, table), self.bound, &mut visit);
        }
        let mut few = 0..self.bound;
        self.alone.until(|row| {
            visit(row);
            few.next();
            few.is_empty()
        });
        best.map(|(.., row)| row)
    }

    fn remove(&mut self, row: u32) {
        let ranking = self.ranking;
        self.stored.remove(&row, row);
        for (table, ranked) in (0..).zip(&mut self.hashed) {
            ranked.remove(&hashes(&ranking, row, table), row);
        }
        self.alone.remove(&ranking.alone(row), row);
    }
}
