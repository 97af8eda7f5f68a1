//! Rows sorted by a key, with removal: the next remaining row is found in near-constant time.

use gustav_core::buffer::try_vec;
use gustav_core::{Result, parallel};

pub(super) struct Ranked<K> {
    rows: Vec<(K, u32)>,
    // Row k is at position k + 1; positions 0 and `len + 1` are the ends. The entry of a position
    // points to itself while its row remains, then towards the next remaining position on that side
    // (a union-find forest).
    right: Vec<u32>,
    left: Vec<u32>,
}

impl<K: Ord + Copy + Send> Ranked<K> {
    pub fn new(members: &[u32], key: impl Fn(u32) -> K) -> Result<Self> {
        let mut rows = try_vec(members.len(), "rows by rank")?;
        rows.extend(members.iter().map(|row| (key(*row), *row)));
        parallel::sort(&mut rows);
        let positions = || {
            let mut positions = try_vec(rows.len() + 2, "rows by rank")?;
            positions.extend(0..rows.len() as u32 + 2);
            Ok(positions)
        };
        let (right, left) = (positions()?, positions()?);
        Ok(Ranked { rows, right, left })
    }

    /// Removes `row`, whose key is `key`.
    pub fn remove(&mut self, key: &K, row: u32) {
        if let Ok(at) = self.rows.binary_search(&(*key, row)) {
            self.right[at + 1] = at as u32 + 2;
            self.left[at + 1] = at as u32;
        }
    }

    /// Visits up to `bound` remaining rows on each side of the position of `key`.
    pub fn around(&mut self, key: &K, bound: usize, visit: &mut impl FnMut(u32)) {
        let here = self.rows.partition_point(|(k, _)| k < key) as u32;
        let mut position = here;
        for _ in 0..bound {
            position = find(&mut self.left, position);
            if position == 0 {
                break;
            }
            visit(self.rows[position as usize - 1].1);
            position -= 1;
        }
        let mut position = here + 1;
        for _ in 0..bound {
            let Some(row) = self.next(&mut position) else { break };
            visit(row);
        }
    }

    /// Visits the remaining rows, from the first on, until `enough` returns true for one.
    pub fn until(&mut self, mut enough: impl FnMut(u32) -> bool) {
        let mut position = 1;
        while let Some(row) = self.next(&mut position) {
            if enough(row) {
                break;
            }
        }
    }

    /// The first remaining row at `position` or after it; advances `position` past it.
    fn next(&mut self, position: &mut u32) -> Option<u32> {
        let found = find(&mut self.right, *position);
        let (_, row) = self.rows.get(found as usize - 1)?;
        *position = found + 1;
        Some(*row)
    }
}

/// Follows positions to one that points to itself, with path compression.
fn find(positions: &mut [u32], mut position: u32) -> u32 {
    while positions[position as usize] != position {
        let next = positions[position as usize];
        positions[position as usize] = positions[next as usize];
        position = positions[position as usize];
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(ranked: &mut Ranked<u32>, key: u32, bound: usize) -> Vec<u32> {
        let mut visited = Vec::new();
        ranked.around(&key, bound, &mut |row| visited.push(row));
        visited
    }

    #[test]
    fn removed_rows_are_skipped() {
        let mut ranked = Ranked::new(&[0, 1, 2, 3, 4, 5], |row| 10 * row).unwrap();
        assert_eq!(around(&mut ranked, 25, 2), [2, 1, 3, 4]);
        assert_eq!(around(&mut ranked, 30, 9), [2, 1, 0, 3, 4, 5]);
        for row in [2, 3, 0] {
            ranked.remove(&(10 * row), row);
        }
        assert_eq!(around(&mut ranked, 25, 1), [1, 4]);
        assert_eq!(around(&mut ranked, 0, 9), [1, 4, 5]);
        assert_eq!(around(&mut ranked, 99, 2), [5, 4]);
        let mut first = Vec::new();
        ranked.until(|row| {
            first.push(row);
            row == 4
        });
        assert_eq!(first, [1, 4]);
        for row in [1, 4, 5] {
            ranked.remove(&(10 * row), row);
        }
        assert!(around(&mut ranked, 25, 9).is_empty());
    }
}
