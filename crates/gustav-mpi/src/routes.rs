//! How rows of B reach a rank: from the rank that has them, or through a rank of its own host.

use gustav_core::{Error, Result};

use crate::exchange::all_to_all;
use crate::hosts::Relay;
use crate::{Hosts, Ranks};

/// How rows of B come to this rank and leave it.
pub struct Routes {
    /// The rows that this rank sends for others to pass on.
    pub relays: Vec<Relay>,
    /// The rank that this one gets rows from, by the rank that has them.
    pub through: Vec<usize>,
    /// The rows that this rank gets to pass on, in the order of the ranks that have them.
    pub passes: Vec<Pass>,
}

/// Rows of B that come for several ranks of a host.
pub struct Pass {
    /// The rank that has them.
    pub from: usize,
    /// Their number.
    pub rows: usize,
    /// The ranks that want some, and the positions of these among the rows.
    pub wanted: Vec<(usize, Vec<u32>)>,
}

impl Routes {
    /// All rows go directly.
    pub fn direct(ranks: usize) -> Self {
        Routes { relays: Vec::new(), through: (0..ranks).collect(), passes: Vec::new() }
    }

    /// Rows that several ranks of a host want go to one of them; `wanted[q]` are those that rank q wants of this
    /// rank. Collective.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`](crate::Communicator).
    pub fn by_host(ranks: &Ranks, hosts: &Hosts, wanted: &[Vec<u32>]) -> Result<Self> {
        let rank = ranks.rank();
        let relays = Relay::of(rank, hosts, wanted);
        let mut words: Vec<Vec<u32>> = vec![Vec::new(); ranks.size()];
        for relay in &relays {
            relay.wanted.iter().for_each(|(q, _)| words[*q].push(relay.through as u32));
            let to = &mut words[relay.through];
            to.extend([relay.rows.len() as u32, relay.wanted.len() as u32]);
            for (q, positions) in &relay.wanted {
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
                    let pass = Pass::read(from, &mut words)?;
                    let known = pass
                        .wanted
                        .iter()
                        .all(|(q, _)| *q < ranks.size() && !hosts.differ(*q, rank));
                    known.then(|| routes.passes.push(pass))?;
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
        self.relays.iter().any(|relay| relay.wanted.iter().any(|(q, _)| *q == peer))
    }

    /// The rows of `from` that this rank gets to pass on, and the positions of those that it wants itself.
    pub fn pass_of(&self, from: usize, rank: usize) -> Option<(&Pass, &[u32])> {
        let pass = self.passes.iter().find(|pass| pass.from == from)?;
        let (_, own) = pass.wanted.iter().find(|(q, _)| *q == rank)?;
        Some((pass, own))
    }
}

impl Pass {
    fn read(from: usize, words: &mut &[u32]) -> Option<Self> {
        let mut next = |len: usize| {
            let (taken, rest) = words.split_at_checked(len)?;
            *words = rest;
            Some(taken)
        };
        let [rows, count] = *next(2)? else { return None };
        let mut wanted = Vec::new();
        for _ in 0..count {
            let [rank, len] = *next(2)? else { return None };
            let positions = next(len as usize)?;
            if positions.iter().any(|p| *p >= rows) {
                return None;
            }
            wanted.push((rank as usize, positions.to_vec()));
        }
        Some(Pass { from, rows: rows as usize, wanted })
    }
}
