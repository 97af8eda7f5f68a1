//! How rows of an operand reach a rank: from the rank that has them, or through a rank of its own host.

use gustav_core::{Error, Result};

use crate::exchange::all_to_all;
use crate::hosts::Relay;
use crate::{Device, Hosts, Ranks};

/// How rows of an operand are received by this rank and sent by it.
///
/// Partial rows of a result go in the opposite direction. Of their routes, `relays` are what this rank gets from ranks
/// that have added up, `through` is the rank that it sends its own to, by the rank that has the rows, and `relayed` is
/// what it adds up, `from` being the rank that has the rows and that the sums go to.
pub struct Routes {
    /// The rows that this rank sends for others to forward.
    pub relays: Vec<Relay>,
    /// The rank that this one gets rows from, by the rank that has them.
    pub through: Vec<usize>,
    /// The rows that this rank gets to forward, in the order of the ranks that have them.
    pub relayed: Vec<RelayedRows>,
}

/// Rows that are received for several ranks of a host.
pub struct RelayedRows {
    /// The rank that has them.
    pub from: usize,
    /// Their number.
    pub rows: usize,
    /// The ranks that need some, and the positions of these among the rows.
    pub requested: Vec<(usize, Vec<u32>)>,
}

impl Routes {
    /// All rows go directly.
    fn direct(ranks: usize) -> Self {
        Routes { relays: Vec::new(), through: (0..ranks).collect(), relayed: Vec::new() }
    }

    /// How `device` has rows go, if there are `any` in products: `requested()[q]` are those that rank q needs of this
    /// rank. Collective.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`](crate::Communicator).
    pub fn new(
        ranks: &Ranks,
        device: &Device,
        any: bool,
        requested: impl FnOnce() -> Vec<Vec<u32>>,
    ) -> Result<Self> {
        let hosts = ranks.hosts()?;
        match any && hosts.have_levels() && !device.one_level {
            false => Ok(Routes::direct(ranks.size())),
            true => Routes::by_host(ranks, hosts, &requested()),
        }
    }

    /// Rows that several ranks of a host need go to one of them; `requested[q]` are those that rank q needs of this
    /// rank. Collective.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`](crate::Communicator).
    fn by_host(ranks: &Ranks, hosts: &Hosts, requested: &[Vec<u32>]) -> Result<Self> {
        let rank = ranks.rank();
        let relays = Relay::of(rank, hosts, requested);
        let mut words: Vec<Vec<u32>> = vec![Vec::new(); ranks.size()];
        for relay in &relays {
            relay.requested.iter().for_each(|(q, _)| words[*q].push(relay.through as u32));
            let to = &mut words[relay.through];
            to.extend([relay.rows.len() as u32, relay.requested.len() as u32]);
            for (q, positions) in &relay.requested {
                to.extend([*q as u32, positions.len() as u32]);
                to.extend_from_slice(positions);
            }
        }
        let words = all_to_all(ranks, &words.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        let mut routes = Routes { relays, ..Routes::direct(ranks.size()) };
        let mut read = || -> Option<()> {
            for (from, words) in words.iter().enumerate() {
                let Some((through, mut words)) = words.split_first() else { continue };
                let through = *through as usize;
                if through >= ranks.size() || hosts.differ(through, rank) {
                    return None;
                }
                routes.through[from] = through;
                if through == rank {
                    let relayed = RelayedRows::read(from, &mut words)?;
                    let known = relayed
                        .requested
                        .iter()
                        .all(|(q, _)| *q < ranks.size() && !hosts.differ(*q, rank));
                    known.then(|| routes.relayed.push(relayed))?;
                }
            }
            Some(())
        };
        let read = read().ok_or_else(|| Error::Communication {
            rank,
            peer: None,
            action: "reading which rows to pass on",
            reason: "the list is damaged".into(),
        });
        ranks.together(read)?;
        Ok(routes)
    }

    /// Whether rows go from this rank to `peer` through another, or through it to others.
    pub fn is_relayed(&self, peer: usize) -> bool {
        self.relays.iter().any(|relay| relay.requested.iter().any(|(q, _)| *q == peer))
    }

    /// The rows of `from` that this rank gets to forward, and the positions of those that it needs itself.
    pub fn relayed_rows(&self, from: usize, rank: usize) -> Option<(&RelayedRows, &[u32])> {
        let relayed = self.relayed.iter().find(|relayed| relayed.from == from)?;
        let (_, own) = relayed.requested.iter().find(|(q, _)| *q == rank)?;
        Some((relayed, own))
    }
}

impl RelayedRows {
    fn read(from: usize, words: &mut &[u32]) -> Option<Self> {
        let mut next = |len: usize| {
            let (taken, rest) = words.split_at_checked(len)?;
            *words = rest;
            Some(taken)
        };
        let [rows, count] = *next(2)? else { return None };
        let mut requested = Vec::new();
        for _ in 0..count {
            let [rank, len] = *next(2)? else { return None };
            let positions = next(len as usize)?;
            if positions.iter().any(|p| *p >= rows) {
                return None;
            }
            requested.push((rank as usize, positions.to_vec()));
        }
        Some(RelayedRows { from, rows: rows as usize, requested })
    }
}
