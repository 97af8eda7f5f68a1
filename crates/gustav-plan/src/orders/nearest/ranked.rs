//! Rows by a key, of which some are taken: the next one left is found in near-constant time.

use gustav_core::buffer::try_vec;
use gustav_core::{Result, parallel};

pub(super) struct Ranked<K> {
    rows: Vec<(K, u32)>,
    // Row k stands at place k + 1; places 0 and `len + 1` are the ends. A place leads to itself
    // while its row is left, then towards the next place on that side which may be.
    right: Vec<u32>,
    left: Vec<u32>,
}

impl<K: Ord + Copy + Send> Ranked<K> {
    pub fn new(members: &[u32], key: impl Fn(u32) -> K) -> Result<Self> {
        let mut rows = try_vec(members.len(), "rows by rank")?;
        rows.extend(members.iter().map(|row| (key(*row), *row)));
        parallel::sort(&mut rows);
        let places = || {
            let mut places = try_vec(rows.len() + 2, "rows by rank")?;
            places.extend(0..rows.len() as u32 + 2);
            Ok(places)
        };
        let (right, left) = (places()?, places()?);
        Ok(Ranked { rows, right, left })
    }

    /// Takes out `row`, whose key is `key`.
    pub fn remove(&mut self, key: &K, row: u32) {
        if let Ok(at) = self.rows.binary_search(&(*key, row)) {
            self.right[at + 1] = at as u32 + 2;
            self.left[at + 1] = at as u32;
        }
    }

    /// Up to `bound` rows that are left on each side of where `key` would stand.
    pub fn around(&mut self, key: &K, bound: usize, meet: &mut impl FnMut(u32)) {
        let here = self.rows.partition_point(|(k, _)| k < key) as u32;
        let mut place = here;
        for _ in 0..bound {
            place = find(&mut self.left, place);
            if place == 0 {
                break;
            }
            meet(self.rows[place as usize - 1].1);
            place -= 1;
        }
        let mut place = here + 1;
        for _ in 0..bound {
            let Some(row) = self.next(&mut place) else { break };
            meet(row);
        }
    }

    /// The rows that are left, from the first on, until `enough` says so of one.
    pub fn until(&mut self, mut enough: impl FnMut(u32) -> bool) {
        let mut place = 1;
        while let Some(row) = self.next(&mut place) {
            if enough(row) {
                break;
            }
        }
    }

    /// The first row that is left at `place` or after it; `place` becomes the one behind it.
    fn next(&mut self, place: &mut u32) -> Option<u32> {
        let found = find(&mut self.right, *place);
        let (_, row) = self.rows.get(found as usize - 1)?;
        *place = found + 1;
        Some(*row)
    }
}

/// Follows places to one that leads to itself, and shortens the way for the next time.
fn find(places: &mut [u32], mut place: u32) -> u32 {
    while places[place as usize] != place {
        let next = places[place as usize];
        places[place as usize] = places[next as usize];
        place = places[place as usize];
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(ranked: &mut Ranked<u32>, key: u32, bound: usize) -> Vec<u32> {
        let mut met = Vec::new();
        ranked.around(&key, bound, &mut |row| met.push(row));
        met
    }

    #[test]
    fn what_is_taken_is_skipped() {
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
