//! Gustav compared with the peers of the same rounds.

use std::collections::BTreeMap;

use super::ratios::Ratios;
use crate::{Case, Record, Status};

/// A record of Gustav with those of the peers that were timed in the same rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison<'a> {
    /// The record of Gustav.
    pub ours: &'a Record,
    /// The peers by name, only those with a correct and timed result.
    pub peers: BTreeMap<&'a str, &'a Record>,
}

impl Comparison<'_> {
    /// Whether Gustav has no time and one of `names` has.
    pub fn failed_beside(&self, names: &[&str]) -> bool {
        self.ours.execute_ms.is_none() && names.iter().any(|n| self.peers.contains_key(n))
    }

    /// Time of the fastest of `names` over that of Gustav.
    pub fn against(&self, names: &[&str]) -> Option<f64> {
        self.ratio(names, |r| r.execute_ms)
    }

    /// The same with warm caches.
    pub fn against_warm(&self, names: &[&str]) -> Option<f64> {
        self.ratio(names, Record::warm_ms)
    }

    /// The same of single executions.
    pub fn against_single(&self, names: &[&str]) -> Option<f64> {
        self.ratio(names, |r| r.single_ms)
    }

    /// The same of products of which none reads what the one before wrote.
    pub fn against_independent(&self, names: &[&str]) -> Option<f64> {
        self.ratio(names, Record::independent_ms)
    }

    /// Whether one of `names` was timed with an empty launch between its products, and without.
    pub fn is_separated(&self, names: &[&str]) -> bool {
        names.iter().any(|n| self.peers.get(n).is_some_and(|r| r.overlapping_ms.is_some()))
    }

    fn ratio(&self, names: &[&str], time: fn(&Record) -> Option<f64>) -> Option<f64> {
        let times = names.iter().filter_map(|n| time(self.peers.get(n)?));
        Some(times.reduce(f64::min)? / time(self.ours)?)
    }
}

/// The state of caches in the ratios to the best of `names`: `cold, hot 1.50` with the geomean for
/// hot caches, `hot` if nothing else was measured; `single 1.40` with the geomean of single
/// executions.
pub fn caches(comparisons: &[&Comparison<'_>], names: &[&str]) -> String {
    let compared = || comparisons.iter().filter(|c| c.against(names).is_some());
    let geomean = |word: &str, ratios: Vec<f64>| {
        Ratios::of(&ratios).map_or(String::new(), |r| format!(", {word} {:.2}", r.geomean))
    };
    let warm = geomean("hot", compared().filter_map(|c| c.against_warm(names)).collect());
    let single = geomean("single", compared().filter_map(|c| c.against_single(names)).collect());
    match (compared().filter(|c| c.ours.is_cold()).count(), compared().count()) {
        (0, _) => "hot".into(),
        (cold, all) if cold == all => format!("cold{single}{warm}"),
        (cold, all) => format!("{cold} of {all} cold{single}{warm}"),
    }
}

/// The latest measurement of every case by Gustav's `algorithm`, with its peers.
pub fn compare<'a>(records: &'a [Record], algorithm: &str) -> Vec<Comparison<'a>> {
    compare_beside(records, algorithm, |_| true)
}

/// The same, preferring rounds in which a peer of `counts` was right to later ones without it.
pub(crate) fn compare_beside<'a>(
    records: &'a [Record],
    algorithm: &str,
    counts: impl Fn(&str) -> bool,
) -> Vec<Comparison<'a>> {
    let mut rounds = BTreeMap::<(&Case, u64), BTreeMap<&str, &Record>>::new();
    for r in records.iter().filter(|r| !r.is_ours() && r.status == Status::Ok) {
        if r.execute_ms.is_some() {
            rounds.entry((&r.case, r.group)).or_default().insert(&r.engine, r);
        }
    }
    let rank = |r: &Record| {
        let peers = rounds.get(&(&r.case, r.group));
        (peers.is_some_and(|peers| peers.keys().any(|name| counts(name))), r.group)
    };
    let mut latest = BTreeMap::<&Case, &Record>::new();
    for r in records.iter().filter(|r| r.is_ours() && r.algorithm == algorithm) {
        let found = latest.entry(&r.case).or_insert(r);
        if rank(r) >= rank(found) {
            *found = r;
        }
    }
    let beside = |ours: &'a Record| {
        let peers = rounds.get(&(&ours.case, ours.group)).cloned().unwrap_or_default();
        Comparison { ours, peers }
    };
    latest.into_values().map(beside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VENDORS;
    use crate::record::tests::beside_vendors;

    #[test]
    fn the_best_vendor_counts_and_later_groups_replace_earlier_ones() {
        let mut records = beside_vendors("a", 1, 1.0, 9.0, 8.0);
        records.extend(beside_vendors("a", 2, 2.0, 3.0, 5.0));
        records.extend(beside_vendors("b", 1, 4.0, 3.0, 2.0));
        let c = compare(&records, "auto");
        let ratios: Vec<_> = c.iter().map(|c| c.against(&VENDORS).unwrap()).collect();
        assert_eq!(ratios, [1.5, 0.5]);
        assert_eq!(c[0].against(&["graphblas"]), Some(2.5));
        assert_eq!(c[0].against(&["sprs"]), None);
    }

    #[test]
    fn ratios_say_of_which_caches_they_are() {
        let mut records = beside_vendors("a", 1, 1.0, 9.0, 8.0);
        let said = |records: &[Record]| {
            let found = compare(records, "auto");
            caches(&found.iter().collect::<Vec<_>>(), &VENDORS)
        };
        assert_eq!(said(&records), "hot");
        for (r, ms) in records.iter_mut().zip([0.5, 2.0, 3.0]) {
            r.hot_ms = Some(ms);
        }
        assert_eq!(compare(&records, "auto")[0].against(&VENDORS), Some(8.0));
        assert_eq!(said(&records), "cold, hot 4.00");
        for (r, ms) in records.iter_mut().zip([2.0, 3.0, 4.0]) {
            r.single_ms = Some(ms);
        }
        assert_eq!(said(&records), "cold, single 1.50, hot 4.00");
        records.iter_mut().for_each(|r| r.single_ms = None);
        records.extend(beside_vendors("b", 1, 1.0, 1.0, 1.0));
        assert_eq!(said(&records), "1 of 2 cold, hot 2.00");
    }

    #[test]
    fn products_that_overlap_count_where_they_are_independent() {
        let mut records = beside_vendors("a", 1, 1.0, 3.0, 2.0);
        assert!(!compare(&records, "auto")[0].is_separated(&VENDORS));
        records[1].overlapping_ms = Some(1.5);
        let found = &compare(&records, "auto")[0];
        assert!(found.is_separated(&VENDORS) && !found.is_separated(&["graphblas"]));
        assert_eq!(found.against(&VENDORS), Some(2.0));
        assert_eq!(found.against_independent(&VENDORS), Some(1.5));
        assert_eq!(found.against_independent(&["graphblas"]), Some(2.0));
    }

    #[test]
    fn a_wrong_peer_is_no_peer() {
        let mut records = beside_vendors("a", 1, 1.0, 0.5, 2.0);
        records[1].status = Status::Wrong;
        assert_eq!(compare(&records, "auto")[0].against(&VENDORS), Some(2.0));
    }
}
