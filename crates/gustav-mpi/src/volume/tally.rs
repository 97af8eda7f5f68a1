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

/// What passes between the rank that has rows and others.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flow {
    /// Rows of an operand, to the ranks that need them.
    Operands,
    /// Partial rows of the result, from the ranks that compute them.
    Partial,
}

/// Rows, by the rank that needs or computes them.
pub type Lists = Vec<(usize, Vec<u32>)>;

/// Messages between ranks of a host, by flow, sender and receiver: those of all ranks of other hosts are one.
pub type OnHost = HashSet<(Flow, usize, usize)>;

/// A volume that is being counted.
pub struct Tally<'t> {
    volume: Volume,
    hosts: &'t Hosts,
    shape: ProductShape,
    /// From where to where operands go: operands of two blocks may be one message.
    operands: HashSet<[usize; 2]>,
    on_host: OnHost,
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
        let (operands, on_host) = (HashSet::new(), HashSet::new());
        let mut tally = Tally { volume, hosts, shape, operands, on_host };
        let choose = |r: usize, c: usize, e: &[(u32, u32)]| shape.choose(r, c, e);
        // Columns are rows of B, and rows those of C; for Aᵀ the reverse.
        let (of_columns, of_rows) = match shape.transpose_a {
            false => (Flow::Operands, Flow::Partial),
            true => (Flow::Partial, Flow::Operands),
        };
        for of_host in hosts.each() {
            // Columns that are multiplied on ranks of the host, by the rank that has them.
            let mut columns_here: BTreeMap<usize, Lists> = BTreeMap::new();
            for rank in of_host {
                let (own, blocks) = blocks_of(rank, &choose)?;
                tally.volume.ranks[rank].nonzeros += own as u64;
                // Rows of the rank that are multiplied elsewhere, by host.
                let mut rows_there: BTreeMap<usize, Lists> = BTreeMap::new();
                for CountedBlock { peer, counts, columns, rows } in blocks {
                    tally.add_block(rank, peer, counts);
                    if hosts.have_levels() {
                        columns_here.entry(peer).or_default().push((rank, columns));
                        let host = hosts.numbers()[peer];
                        rows_there.entry(host).or_default().push((peer, rows));
                    } else {
                        tally.add_direct(of_columns, (peer, rank), columns.len());
                        tally.add_direct(of_rows, (rank, peer), rows.len());
                    }
                }
                for lists in rows_there.into_values() {
                    tally.add_lists(of_rows, rank, &lists);
                }
            }
            for (peer, lists) in columns_here {
                tally.add_lists(of_columns, peer, &lists);
            }
        }
        let Tally { mut volume, operands, on_host, .. } = tally;
        let on_host = on_host.into_iter().map(|(_, from, to)| [from, to]);
        for [from, to] in operands.into_iter().chain(on_host) {
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

    /// Adds a block of the rows of `rank` and the columns of `peer`, but for the rows of B and of C that it needs.
    fn add_block(&mut self, rank: usize, peer: usize, counts: Counts) {
        let Alternatives { rows_of_b, partial_rows } = Alternatives::of(&counts, &self.shape);
        self.volume.rows_of_b_bytes += rows_of_b;
        self.volume.partial_rows_bytes += partial_rows;
        self.volume.ranks[rank].nonzeros += (counts.nonzeros - counts.nonzeros_there) as u64;
        self.volume.ranks[peer].nonzeros += counts.nonzeros_there as u64;
        if self.hosts.differ(rank, peer) {
            let (here, there) = (counts.columns_here, counts.rows_there);
            let all = self.shape.bytes(here, there, counts.nonzeros_there);
            self.volume.direct_network_bytes += all.sum();
        }
        self.send_operands(rank, peer, counts.nonzeros_there as u64 * self.shape.value());
    }

    fn row(&self, flow: Flow) -> u64 {
        match flow {
            Flow::Operands => self.shape.row_of_b(),
            Flow::Partial => self.shape.partial_row_of_c(),
        }
    }

    /// Adds rows that go between the rank that has them and another.
    fn add_direct(&mut self, flow: Flow, (of, other): (usize, usize), rows: usize) {
        let bytes = rows as u64 * self.row(flow);
        match flow {
            Flow::Operands => self.send_operands(of, other, bytes),
            Flow::Partial if bytes > 0 => {
                send(&mut self.volume, self.hosts, other, of, bytes);
                count_message(&mut self.volume, self.hosts, other, of);
            }
            Flow::Partial => {}
        }
    }

    /// Adds rows that rank `of` has, and ranks of one host need or compute.
    fn add_lists(&mut self, flow: Flow, of: usize, lists: &Lists) {
        let row = self.row(flow);
        let on_host = &mut self.on_host;
        if !relay(&mut self.volume, self.hosts, on_host, flow, (of, lists), row) {
            lists.iter().for_each(|(other, rows)| self.add_direct(flow, (of, *other), rows.len()));
        }
    }
}

/// Counts rows of `row` bytes that rank `of` has, and ranks of one host need or compute, if they go between hosts once,
/// through one of these ranks.
pub fn relay(
    volume: &mut Volume,
    hosts: &Hosts,
    on_host: &mut OnHost,
    flow: Flow,
    (of, lists): (usize, &Lists),
    row: u64,
) -> bool {
    let is_far = lists.iter().any(|(other, _)| hosts.differ(of, *other));
    if row == 0 || !is_far {
        return false;
    }
    let lists: Vec<(usize, &[u32])> = lists.iter().map(|(rank, rows)| (*rank, &rows[..])).collect();
    let Some(Relay { through, rows, requested }) = Relay::to_host(of, &lists) else {
        return false;
    };
    let direction = |of: usize, other: usize| match flow {
        Flow::Operands => (of, other),
        Flow::Partial => (other, of),
    };
    let (from, to) = direction(of, through);
    send(volume, hosts, from, to, rows.len() as u64 * row);
    count_message(volume, hosts, from, to);
    for (other, rows) in requested.iter().filter(|(other, _)| *other != through) {
        let (from, to) = direction(through, *other);
        send(volume, hosts, from, to, rows.len() as u64 * row);
        on_host.insert((flow, from, to));
    }
    true
}
