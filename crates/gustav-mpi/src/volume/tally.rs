//! The volume of a product with a dense matrix, counted rank by rank.

use std::collections::{BTreeMap, HashSet};

use gustav_core::Result;

use super::{
    Alternatives, ProductShape, RankVolume, Volume, check_countable, check_ranks, count_message,
    oblivious, send,
};
use crate::blocks::{Choose, CountedBlock, Counts};
use crate::hosts::Relay;
use crate::{Hosts, Partition};

/// A volume that is being counted.
pub struct Tally<'t> {
    volume: Volume,
    hosts: &'t Hosts,
    shape: ProductShape,
    /// From where to where operands go: operands of two blocks may be one message.
    operands: HashSet<[usize; 2]>,
    /// From where to where rows of B are forwarded, those of all ranks in one message.
    forwarded: HashSet<[usize; 2]>,
}

impl<'t> Tally<'t> {
    /// The volume of a product; `blocks_of` gives the nonzeros of a rank's own block, and its others.
    ///
    /// # Errors
    /// As [`Volume::of`], and those of `blocks_of`.
    pub fn count(
        rows: &Partition,
        columns: &Partition,
        hosts: &'t Hosts,
        shape: ProductShape,
        mut blocks_of: impl FnMut(usize, &Choose<'_>) -> Result<(usize, Vec<CountedBlock>)>,
    ) -> Result<Volume> {
        let ranks = rows.ranks();
        check_ranks(rows, columns, hosts)?;
        check_countable(rows.rows(), columns.rows(), shape.columns, ranks)?;
        let volume = Volume { ranks: vec![RankVolume::default(); ranks], ..Volume::default() };
        let (operands, forwarded) = (HashSet::new(), HashSet::new());
        let mut tally = Tally { volume, hosts, shape, operands, forwarded };
        let choose = |r: usize, c: usize, e: &[(u32, u32)]| shape.choose(r, c, e);
        let relays = shape.relays(hosts);
        for of_host in hosts.each() {
            // Rows of B that ranks of the host need, by the rank of other hosts that has them.
            let mut requested: BTreeMap<usize, Vec<(usize, Vec<u32>)>> = BTreeMap::new();
            for rank in of_host {
                let (own, blocks) = blocks_of(rank, &choose)?;
                tally.volume.ranks[rank].nonzeros += own as u64;
                for CountedBlock { peer, counts, columns } in blocks {
                    tally.add_block(rank, peer, counts);
                    if relays && hosts.differ(rank, peer) {
                        requested.entry(peer).or_default().push((rank, columns));
                    } else {
                        tally.add_rows_of_b(peer, rank, columns.len());
                    }
                }
            }
            for (from, requested) in requested {
                tally.add_wanted(from, &requested);
            }
        }
        let Tally { mut volume, operands, forwarded, .. } = tally;
        for [from, to] in operands.into_iter().chain(forwarded) {
            count_message(&mut volume, hosts, from, to);
        }
        let of_b = if shape.transpose_a { rows } else { columns };
        volume.oblivious_bytes = oblivious(of_b, &shape);
        Ok(volume)
    }

    fn send_operands(&mut self, from: usize, to: usize, bytes: u64) {
        if bytes > 0 {
            send(&mut self.volume, self.hosts, from, to, bytes);
            self.operands.insert([from, to]);
        }
    }

    /// Adds a block of the rows of `rank` and the columns of `peer`, but for the rows of B of A·B that it needs.
    fn add_block(&mut self, rank: usize, peer: usize, counts: Counts) {
        let Alternatives { rows_of_b, partial_rows } = Alternatives::of(&counts, &self.shape);
        self.volume.rows_of_b_bytes += rows_of_b;
        self.volume.partial_rows_bytes += partial_rows;
        self.volume.ranks[rank].nonzeros += (counts.nonzeros - counts.nonzeros_there) as u64;
        self.volume.ranks[peer].nonzeros += counts.nonzeros_there as u64;
        let (here, there) = (counts.columns_here, counts.rows_there);
        let all = self.shape.bytes(here, there, counts.nonzeros_there);
        if self.hosts.differ(rank, peer) {
            self.volume.direct_network_bytes += all.sum();
        }
        let here = if self.shape.transpose_a { here } else { 0 };
        let bytes = self.shape.bytes(here, there, counts.nonzeros_there);
        for (from, to, bytes) in [(peer, rank, bytes.from_columns), (rank, peer, bytes.from_rows)] {
            send(&mut self.volume, self.hosts, from, to, bytes.partial);
            if bytes.partial > 0 {
                count_message(&mut self.volume, self.hosts, from, to);
            }
            self.send_operands(from, to, bytes.operands);
        }
    }

    fn add_rows_of_b(&mut self, from: usize, to: usize, rows: usize) {
        if !self.shape.transpose_a {
            self.send_operands(from, to, rows as u64 * self.shape.row_of_b());
        }
    }

    /// Adds the rows of B that rank `from` has and ranks of one other host need.
    fn add_wanted(&mut self, from: usize, requested: &[(usize, Vec<u32>)]) {
        let lists: Vec<(usize, &[u32])> =
            requested.iter().map(|(r, rows)| (*r, &rows[..])).collect();
        let row = self.shape.row_of_b();
        if !send_to_host(&mut self.volume, self.hosts, &mut self.forwarded, (from, &lists), row) {
            lists.iter().for_each(|(to, rows)| self.add_rows_of_b(from, *to, rows.len()));
        }
    }
}

/// Counts rows of `row` bytes that rank `from` has and ranks of one other host need, if some go there once to be
/// forwarded; from where to where they are is added to `forwarded`.
pub fn send_to_host(
    volume: &mut Volume,
    hosts: &Hosts,
    forwarded: &mut HashSet<[usize; 2]>,
    (from, requested): (usize, &[(usize, &[u32])]),
    row: u64,
) -> bool {
    let Some(relay) = Relay::to_host(from, requested).filter(|_| row > 0) else { return false };
    let through = relay.through;
    send(volume, hosts, from, through, relay.rows.len() as u64 * row);
    count_message(volume, hosts, from, through);
    for (to, rows) in relay.requested.iter().filter(|(to, _)| *to != through) {
        send(volume, hosts, through, *to, rows.len() as u64 * row);
        forwarded.insert([through, *to]);
    }
    true
}
