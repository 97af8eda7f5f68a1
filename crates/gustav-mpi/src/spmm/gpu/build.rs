//! Making a plan, once the ranks have described their blocks to each other.

use gustav_core::{Error, Layout, Operation, Problem, Result};
use gustav_cuda::{Device, DeviceBuffer, DeviceDense, DevicePattern, Options, RowList};

use super::super::build::{Builder, Messages};
use super::super::{Described, Peer as Wired};
use super::{GpuSpmmPlan, Peer, Product, Received, Send, Served};
use crate::blocks::{Blocks, fits};
use crate::communicator::Tag;
use crate::gpu::{GpuMessages, positions};
use crate::hosts::Relay;
use crate::local::{DistScalar, Nonzeros};
use crate::volume::Counted;
use crate::waiting::Waiting;
use crate::{Explanation, Hosts};

/// The plan of this rank, and what it counts.
pub(super) fn build<T: DistScalar>(
    builder: Builder<'_>,
    device: &Device,
    described: Described,
    hosts: &Hosts,
) -> Result<(GpuSpmmPlan<T>, Counted)> {
    let Builder { pattern, rows_of_b, rows_of_c, .. } = builder;
    let ranks = pattern.ranks;
    let mut messages = Messages::with_limit(described.limit);
    let forwards = messages.routes::<T>(&described, ranks.rank())?;
    let Described { number, problem, shape, blocks, remote, routes, sums, .. } = described;
    let (rank, transpose, n) = (ranks.rank(), problem.transpose_a, problem.columns);
    fits("rows", rows_of_b.max(rows_of_c))?;
    let Blocks { own, others } = blocks;
    let nnz = pattern.local.nnz();
    let own = Nonzeros::new(own, pattern.columns.count(rank), transpose)?.simplified(nnz);
    let plan = |nonzeros, layouts| Product::<T>::new(device, &problem, nonzeros, layouts);
    let own = plan(own, (problem.layout_b, problem.layout_c))?;
    let mut counted = Counted { nonzeros: own.nnz as u64, ..Counted::default() };
    let list = |rows: &[u32]| RowList::<T>::new(device, rows, problem.semiring);

    let mut relays = Vec::new();
    for Relay { through, rows, .. } in &routes.relays {
        let message =
            messages.exchange.add_outgoing::<T>(*through, Tag::ToRelay, rows.len() * n)?;
        relays.push(Send { message, rows: list(rows)?, values: list(&[])? });
    }
    let mut peers = Vec::new();
    let mut others = others.into_iter().peekable();
    for (q, remote) in remote.into_iter().enumerate() {
        let block = others.next_if(|block| block.peer == q);
        if block.is_none() && remote.is_none() {
            continue;
        }
        if let Some(block) = &block {
            counted.add_block(&block.counts, &shape, hosts.differ(rank, q));
        }
        let transfers = builder.transfers((block, remote), (&routes, &sums), (q, rank))?;
        counted.nonzeros += transfers.nonzeros() as u64;
        let at = (q, peers.len());
        let wired = builder.peer::<T, Product<T>>(at, transfers, &mut messages, &plan)?;
        peers.push(peer(device, n, wired, &list)?);
    }
    let Messages { exchange, incoming, partial, products, .. } = messages;
    let partial_rows = partial.finish(incoming.len()).with_lists(&list)?;
    counted.add_messages(&exchange, rank, hosts);
    let messages = GpuMessages::new(ranks, device, exchange, forwards, None)?;

    let sends = relays.iter().flat_map(|send| [&send.rows, &send.values]);
    let lists = sends.chain(partial_rows.lists()).map(RowList::bytes).sum::<usize>();
    let of_peers = peers.iter().map(Peer::bytes).sum::<usize>();
    let held = own.bytes() + of_peers + lists + messages.bytes();
    let explained = (&problem, pattern);
    let choice = own.plan.choice();
    let early = own.nnz as u64;
    let mut explanation = Explanation::new(explained, shape.communication, choice, (early, held));
    explanation.messages = messages.memory();
    let plan = GpuSpmmPlan {
        ranks: ranks.clone(),
        number,
        pattern: pattern.local.id(),
        nnz,
        rows_of_b,
        rows_of_c,
        problem,
        device: device.clone(),
        own,
        peers,
        messages,
        incoming,
        relays,
        partial_rows,
        products: Waiting::new(products.into_iter()),
        explanation,
    };
    Ok((plan, counted))
}

/// The lists of what passes between this rank and another.
fn peer<T: DistScalar>(
    device: &Device,
    n: usize,
    wired: Wired<Product<T>>,
    list: &dyn Fn(&[u32]) -> Result<RowList<T>>,
) -> Result<Peer<T>> {
    let Wired { send, received, served, partial } = wired;
    let send = send.map(|send| {
        let values = positions(send.values.iter().copied())?;
        let (rows, values) = (list(&send.rows)?, list(&values)?);
        Ok::<_, Error>(Send { message: send.message, rows, values })
    });
    let received = received.map(|received| {
        let rows = received.rows.map(|rows| {
            let partial = DeviceDense::zeros(device, rows.len(), n, Layout::RowMajor)?;
            Ok::<_, Error>((list(&rows)?, partial))
        });
        let rows = rows.transpose()?;
        let super::super::Received { product, of_b, values, .. } = received;
        Ok::<_, Error>(Received { product, of_b, rows, values })
    });
    let served =
        served.map(|super::super::Served { product, to, values }| Served { product, to, values });
    let partial = partial.map(|partial| Ok::<_, Error>((partial.message, list(&partial.rows)?)));
    let (send, received, partial) =
        (send.transpose()?, received.transpose()?, partial.transpose()?);
    Ok(Peer { send, received, served, partial })
}

impl<T: DistScalar> Peer<T> {
    /// Bytes that it holds besides messages.
    fn bytes(&self) -> usize {
        let sent = self.send.iter().map(|send| send.rows.bytes() + send.values.bytes());
        let received = self.received.iter().map(|received| {
            let partial = received.rows.as_ref();
            let partial = partial.map_or(0, |(list, rows)| list.bytes() + rows.data().bytes());
            received.product.bytes() + partial
        });
        let served = self.served.iter().map(|served| served.product.bytes());
        let partial = self.partial.iter().map(|(_, list)| list.bytes());
        sent.chain(received).chain(served).chain(partial).sum()
    }
}

impl<T: DistScalar> Product<T> {
    /// Plans the product of `nonzeros` with a B and into a C of these layouts.
    fn new(
        device: &Device,
        of: &Problem,
        nonzeros: Nonzeros,
        (layout_b, layout_c): (Layout, Layout),
    ) -> Result<Self> {
        let Nonzeros { pattern, positions: at } = nonzeros;
        let (rows, columns, nnz) = (pattern.nrows(), pattern.ncols(), pattern.nnz());
        let problem = Problem::of_pattern(Operation::Spmm, rows, columns, nnz)
            .columns(of.columns)
            .semiring(of.semiring)
            .deterministic(of.deterministic)
            .finite(of.finite)
            .layouts(layout_b, layout_c)
            .calls(of.calls);
        let uploaded = DevicePattern::upload(device, &pattern)?;
        let plan = gustav_cuda::SpmmPlan::new(&uploaded, &problem, &Options::default())?;
        let gathered = at.map(|at| {
            let list = RowList::new(device, &positions(at.into_iter())?, of.semiring)?;
            let values = DeviceBuffer::zeros(device, nnz, "values of a block on the device")?;
            Ok::<_, Error>((list, values))
        });
        Ok(Product { plan, nnz, gathered: gathered.transpose()? })
    }

    /// Bytes that it holds.
    fn bytes(&self) -> usize {
        let gathered = self.gathered.iter().map(|(list, values)| list.bytes() + values.bytes());
        self.plan.workspace_bytes() + gathered.sum::<usize>()
    }
}
