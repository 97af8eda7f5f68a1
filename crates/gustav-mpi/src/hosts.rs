//! Which ranks share a host, and what of that saves messages between hosts.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Which ranks share a host. A clone costs a reference count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    of: Arc<[usize]>,
}

impl Hosts {
    /// Ranks with equal names share a host: `names[r]` is that of rank r's.
    pub fn of_names<N: PartialEq>(names: &[N]) -> Self {
        let mut first: Vec<&N> = Vec::new();
        let number = |name| {
            first.iter().position(|n| *n == name).unwrap_or_else(|| {
                first.push(name);
                first.len() - 1
            })
        };
        Hosts { of: names.iter().map(number).collect() }
    }

    /// `ranks` ranks, each on a host of its own.
    pub fn apart(ranks: usize) -> Self {
        Hosts { of: (0..ranks).collect() }
    }

    /// `ranks` ranks, `each` consecutive ones, at least one, on a host.
    pub fn of_consecutive(ranks: usize, each: usize) -> Self {
        Hosts { of: (0..ranks).map(|rank| rank / each.max(1)).collect() }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.of.len()
    }

    /// Number of hosts.
    pub fn count(&self) -> usize {
        self.of.iter().max().map_or(0, |last| last + 1)
    }

    /// The number of every rank's host; hosts are numbered in the order of their first ranks.
    pub fn numbers(&self) -> &[usize] {
        &self.of
    }

    /// The number of ranks before `rank` on its host.
    pub fn position(&self, rank: usize) -> usize {
        (0..rank).filter(|other| !self.differ(*other, rank)).count()
    }

    /// Whether the ranks are on different hosts. A rank that does not exist is on none.
    pub fn differ(&self, a: usize, b: usize) -> bool {
        self.of.get(a) != self.of.get(b)
    }

    /// Whether some host has several ranks, and there are others.
    pub fn have_levels(&self) -> bool {
        (2..self.ranks()).contains(&self.count())
    }

    /// The ranks of every host.
    pub(crate) fn each(&self) -> Vec<Vec<usize>> {
        let mut ranks = vec![Vec::new(); self.count()];
        self.of.iter().enumerate().for_each(|(rank, host)| ranks[*host].push(rank));
        ranks
    }
}

/// Rows of a rank that go to one rank of another host, which forwards them to others there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Relay {
    /// The rank that they go to.
    pub through: usize,
    /// The rows that any rank there needs, increasing.
    pub rows: Vec<u32>,
    /// The ranks that need some, increasing, and the positions of these among `rows`.
    pub requested: Vec<(usize, Vec<u32>)>,
}

impl Relay {
    /// The relay for rows of `from` that ranks of one other host need, each list increasing: none unless at least half
    /// as many rows are saved between the hosts as are sent again within one.
    pub fn to_host(from: usize, requested: &[(usize, &[u32])]) -> Option<Relay> {
        let requested: Vec<_> = requested.iter().filter(|(_, rows)| !rows.is_empty()).collect();
        let all: usize = requested.iter().map(|(_, rows)| rows.len()).sum();
        let mut rows: Vec<u32> =
            requested.iter().flat_map(|(_, rows)| rows.iter().copied()).collect();
        rows.sort_unstable();
        rows.dedup();
        // Different ranks send to different ranks there, so that all of them share the work.
        let &(through, its_own) = *requested.get(from % requested.len().max(1))?;
        let (saved, again) = (all - rows.len(), all - its_own.len());
        if saved == 0 || 2 * saved < again {
            return None;
        }
        let position = |row: &u32| rows.partition_point(|r| r < row) as u32;
        let requested =
            requested.iter().map(|(rank, of)| (*rank, of.iter().map(position).collect()));
        Some(Relay { through, requested: requested.collect(), rows })
    }

    /// The relays of rank `from` for the rows that every rank needs of it.
    pub fn of(from: usize, hosts: &Hosts, requested: &[Vec<u32>]) -> Vec<Relay> {
        let mut by_host: BTreeMap<usize, Vec<(usize, &[u32])>> = BTreeMap::new();
        for (rank, rows) in requested.iter().enumerate().filter(|(q, _)| hosts.differ(*q, from)) {
            by_host.entry(hosts.numbers()[rank]).or_default().push((rank, rows));
        }
        by_host.values().filter_map(|requested| Relay::to_host(from, requested)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_wanted_twice_cross_once() {
        let hosts = Hosts::of_names(&["b", "a", "b", "a", "a", "c"]);
        assert_eq!((hosts.count(), hosts.numbers()), (3, &[0, 1, 0, 1, 1, 2][..]));
        assert!(hosts.differ(0, 1) && !hosts.differ(0, 2) && hosts.differ(0, 6));
        assert!(hosts.have_levels() && !Hosts::apart(3).have_levels());
        assert!(!Hosts::of_consecutive(3, 3).have_levels());
        let requested = [vec![9], vec![1, 4, 7], vec![3], vec![4, 5], vec![], vec![2, 3]];
        let relays = Relay::of(0, &hosts, &requested);
        let [relay] = &relays[..] else { panic!("{relays:?}") };
        assert_eq!((relay.through, &relay.rows[..]), (1, &[1, 4, 5, 7][..]));
        assert_eq!(relay.requested, [(1, vec![0, 1, 3]), (3, vec![1, 2])]);
        assert_eq!(Relay::of(2, &hosts, &requested)[0].through, 1);
        assert_eq!(Relay::of(3, &hosts, &requested), []);
    }
}
