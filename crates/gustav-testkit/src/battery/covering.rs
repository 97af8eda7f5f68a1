//! Selections of combinations in which every pair of choices occurs.

use std::collections::HashSet;

use super::Extent;

/// The variable with which the battery takes one of so many cases, where it runs under a checker of
/// memory accesses that makes everything slow. A prime number takes every choice of every factor.
const EVERY: &str = "GUSTAV_BATTERY_EVERY";

/// Combinations of choices, one index per factor: all of them, or a fixed selection in which
/// every pair of choices of different factors occurs at least once. `factors` holds the number
/// of choices of each. [`EVERY`] thins them out.
pub(crate) fn combinations(factors: &[usize], extent: Extent) -> Vec<Vec<usize>> {
    let all = product(factors);
    let rows = match extent {
        Extent::Full => all,
        Extent::Covering => covering(factors, all),
    };
    rows.into_iter().step_by(every()).collect()
}

/// How many cases are taken for one.
///
/// # Panics
/// When [`EVERY`] holds something else.
fn every() -> usize {
    let Some(text) = std::env::var_os(EVERY) else { return 1 };
    let number = text.to_str().and_then(|text| text.parse().ok()).filter(|every| *every > 0);
    number.unwrap_or_else(|| panic!("{EVERY} is {text:?}; a number of cases from 1 is expected"))
}

fn product(factors: &[usize]) -> Vec<Vec<usize>> {
    factors.iter().fold(vec![Vec::new()], |rows, &choices| {
        rows.iter()
            .flat_map(|row| (0..choices).map(|c| row.iter().copied().chain([c]).collect()))
            .collect()
    })
}

/// Greedy: the first two factors are crossed in full, and each of their pairs takes the
/// combination of the others that covers the most new pairs; more rounds follow while they cover
/// new ones.
fn covering(factors: &[usize], all: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    if factors.len() < 3 {
        return all;
    }
    let (heads, tails) = (product(&factors[..2]), product(&factors[2..]));
    let mut covered = HashSet::new();
    let mut rows: Vec<Vec<usize>> = Vec::new();
    loop {
        let before = rows.len();
        for (number, head) in heads.iter().enumerate() {
            let candidate = |k: usize| -> Vec<usize> {
                // Starting elsewhere each time spreads what no pair decides.
                let tail = &tails[(k + number * 7) % tails.len()];
                head.iter().chain(tail).copied().collect()
            };
            let gain = |row: &[usize]| pairs(row).filter(|p| !covered.contains(p)).count();
            let best = (0..tails.len()).map(candidate).rev().max_by_key(|row| gain(row));
            if let Some(row) = best.filter(|row| before == 0 || gain(row) > 0) {
                covered.extend(pairs(&row));
                rows.push(row);
            }
        }
        if rows.len() == before {
            return rows;
        }
    }
}

/// Every pair of (factor, choice) of different factors.
fn pairs(row: &[usize]) -> impl Iterator<Item = [(usize, usize); 2]> + '_ {
    let choice = |i: usize| (i, row[i]);
    (0..row.len()).flat_map(move |i| (i + 1..row.len()).map(move |j| [choice(i), choice(j)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_covered() {
        for factors in [&[30, 14, 4, 2, 2, 2, 4][..], &[30, 2, 4], &[5, 3, 2], &[3, 1, 1, 4]] {
            let rows = combinations(factors, Extent::Covering);
            let covered: HashSet<_> = rows.iter().flat_map(|row| pairs(row)).collect();
            let all = product(factors);
            let needed: HashSet<_> = all.iter().flat_map(|row| pairs(row)).collect();
            let missing: Vec<_> = needed.difference(&covered).collect();
            assert!(missing.is_empty(), "{factors:?}: {missing:?}");
            assert!(rows.len() <= all.len());
        }
        for factors in [&[30, 14, 4, 2, 2, 2, 4][..], &[30, 1, 4, 2]] {
            let rows = combinations(factors, Extent::Covering).len();
            let least = factors[0] * factors[1].max(4);
            assert!(rows <= least + least / 4, "{rows} combinations where {least} are needed");
        }
    }

    #[test]
    fn full_is_everything_once() {
        let rows = combinations(&[3, 2, 4], Extent::Full);
        assert_eq!(rows.iter().collect::<HashSet<_>>().len(), 24);
    }
}
