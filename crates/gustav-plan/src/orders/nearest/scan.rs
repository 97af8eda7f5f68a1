//! Exact search that compares the bit masks of all remaining rows: for matrices with few lines.

use gustav_core::buffer::try_vec;
use gustav_core::{Result, parallel};

use super::{Key, Left, Ranking};

// Words of masks of one parallel task.
const TASK: usize = 1 << 16;

pub(super) struct Scan<'a> {
    ranking: Ranking<'a>,
    members: Vec<u32>,
    words: usize,
    masks: Vec<u64>,
    // Indices of the remaining members; removed rows are dropped in the next search.
    left: Vec<u32>,
    used: Vec<bool>,
}

/// Words compared until no row remains.
pub(super) fn cost(ranking: &Ranking<'_>, members: &[u32]) -> u128 {
    (members.len() as u128).pow(2) / 2 * ranking.lines.count().div_ceil(64) as u128
}

fn set(mask: &mut [u64], lines: &[u32]) {
    for line in lines {
        mask[*line as usize / 64] |= 1 << (line % 64);
    }
}

impl<'a> Scan<'a> {
    /// `members` are ascending.
    pub fn new(ranking: Ranking<'a>, members: Vec<u32>) -> Result<Self> {
        let words = ranking.lines.count().div_ceil(64).max(1);
        let mut masks = try_vec(members.len().saturating_mul(words), "masks of rows")?;
        masks.resize(members.len() * words, 0);
        parallel::chunks_mut(&mut masks, words, |k, mask| set(mask, ranking.lines_of(members[k])));
        let mut left = try_vec(members.len(), "remaining rows")?;
        left.extend(0..members.len() as u32);
        let used = vec![false; members.len()];
        Ok(Scan { ranking, members, words, masks, left, used })
    }

    fn best_of(&self, positions: &[u32], mask: &[u64], also: Option<u32>) -> Option<Key> {
        let mut best: Option<Key> = None;
        for &position in positions {
            let position = position as usize;
            let own = &self.masks[position * self.words..(position + 1) * self.words];
            let apart = own.iter().zip(mask).map(|(a, b)| (a ^ b).count_ones() as usize).sum();
            if best.is_none_or(|(least, ..)| apart <= least) {
                let key = self.ranking.key(apart, self.members[position], also);
                best = Some(best.map_or(key, |b| b.min(key)));
            }
        }
        best
    }
}

impl Left for Scan<'_> {
    fn nearest(&mut self, to: u32, also: Option<u32>) -> Option<u32> {
        self.left.retain(|position| !self.used[*position as usize]);
        let mut mask = vec![0; self.words];
        set(&mut mask, self.ranking.lines_of(to));
        let per_task = (TASK / self.words).max(1);
        let tasks = self.left.len().div_ceil(per_task);
        let best = parallel::map(tasks, |k| {
            let end = self.left.len().min((k + 1) * per_task);
            self.best_of(&self.left[k * per_task..end], &mask, also)
        });
        best.into_iter().flatten().min().map(|(.., row)| row)
    }

    fn remove(&mut self, row: u32) {
        if let Ok(position) = self.members.binary_search(&row) {
            self.used[position] = true;
        }
    }
}
