//! Making a plan, once the ranks have described their blocks to each other.

use std::collections::BTreeMap;

use gustav_core::{Error, Layout, Problem, Result};
use gustav_cpu::{CpuScalar, Options};

use super::partial_rows::PartialMessages;
use super::rows::{self, WholeRows};
use super::{
    Contents, Described, Own, Partial, Peer, Received, ReceivedValues, Send, Served, SpmmPlan,
    Workspace,
};
use crate::any_pattern::AnyDistPattern;
use crate::block_description::RemoteBlock;
use crate::blocks::{Block, Blocks, fits};
use crate::communicator::Tag;
use crate::exchange::Exchange;
use crate::fetch::{Arrival, Forwards, Routed, Section};
use crate::hosts::Relay;
use crate::local::{Common, DistScalar, Nonzeros, Product, is_widened, largest_buffer};
use crate::routes::Routes;
use crate::volume::Counted;
use crate::waiting::Waiting;
use crate::{Explanation, Hosts};

/// What a plan is made of.
pub(super) struct Builder<'b> {
    pub pattern: &'b AnyDistPattern<'b>,
    pub problem: Problem,
    pub rows_of_b: usize,
    pub rows_of_c: usize,
}

impl<'b> Builder<'b> {
    pub fn new(pattern: &'b AnyDistPattern<'b>, described: &Described) -> Self {
        let (rank, problem) = (pattern.ranks.rank(), described.problem.clone());
        let (rows, columns) = (pattern.rows.count(rank), pattern.columns.count(rank));
        let (rows_of_c, rows_of_b) =
            if problem.transpose_a { (columns, rows) } else { (rows, columns) };
        Builder { pattern, problem, rows_of_b, rows_of_c }
    }

    /// The plan of this rank, and what it counts.
    pub fn build<T: DistScalar>(
        self,
        options: &Options,
        described: Described,
        hosts: &Hosts,
    ) -> Result<(SpmmPlan<T>, Counted)> {
        let mut messages = Messages::with_limit(described.limit);
        let forwards = messages.routes::<T>(&described, self.pattern.ranks.rank())?;
        let Described { number, shape, blocks, remote, routes, sums, any_gpu, .. } = described;
        let ranks = self.pattern.ranks;
        let (rank, transpose) = (ranks.rank(), self.problem.transpose_a);
        let columns = self.pattern.columns.count(rank);
        fits("rows", self.rows_of_b.max(self.rows_of_c))?;
        let (nnz, n) = (self.pattern.local.nnz(), self.problem.columns);
        let (layout_b, layout_c) = (self.problem.layout_b, self.problem.layout_c);
        let mut counted =
            Counted { nonzeros: blocks.own.columns.len() as u64, ..Counted::default() };
        let mut whole = None;
        if !transpose && rows::is_cheaper::<T>(&blocks, self.rows_of_b, n) {
            let plan = |rows| self.product(rows, (Layout::RowMajor, layout_c), options);
            let sizes = (self.rows_of_b, n);
            whole = Some(WholeRows::new(self.pattern, &blocks, sizes, plan)?);
        }
        let Blocks { own, others } = blocks;

        let mut relays = Vec::new();
        for Relay { through, rows, .. } in &routes.relays {
            let len = rows.len() * n;
            let message = messages.exchange.add_outgoing::<T>(*through, Tag::ToRelay, len)?;
            relays.push(Send { message, rows: rows.clone(), values: Vec::new() });
        }
        let mut peers = Vec::new();
        let mut first = self.rows_of_b;
        let mut others = others.into_iter().peekable();
        for (q, remote) in remote.into_iter().enumerate() {
            let block = others.next_if(|block| block.peer == q);
            if block.is_none() && remote.is_none() {
                continue;
            }
            if let Some(block) = &block {
                counted.add_block(&block.counts, &shape, hosts.differ(rank, q));
            }
            let mut transfers = self.transfers((block, remote), (&routes, &sums), (q, rank))?;
            counted.nonzeros += transfers.nonzeros() as u64;
            if whole.is_some() {
                let relayed = routes.relayed_rows(q, rank).map(|(_, positions)| positions);
                first += transfers.append(first, relayed);
            }
            let at = (q, peers.len());
            let plan = |nonzeros, layouts| self.product(nonzeros, layouts, options);
            peers.push(self.peer::<T, Product<T::Accum>>(at, transfers, &mut messages, &plan)?);
        }
        let Messages { exchange, incoming, arrivals, partial, products, .. } = messages;
        let own: Own<T::Accum> = match whole {
            Some(mut rows) => {
                rows.receives(arrivals);
                Own::Rows(rows)
            }
            None => {
                let own = Nonzeros::new(own, columns, transpose)?.simplified(nnz);
                Own::Block(self.product(own, (layout_b, layout_c), options)?)
            }
        };
        counted.add_messages(&exchange, rank, hosts);

        let workspace = self.workspace::<T>(&own, &peers)?;
        let partial_rows = partial.finish(incoming.len());
        let lists = relays.iter().map(Send::bytes);
        let lists = lists.chain(partial_rows.lists().map(|rows| size_of_val(&rows[..])));
        let held = peers.iter().map(Peer::bytes).chain(lists).sum::<usize>() + forwards.bytes();
        let held = held + own.bytes() + exchange.bytes() + workspace.bytes();
        let explained = (&self.problem, self.pattern);
        let explanation =
            Explanation::new(explained, shape.communication, own.choice(), (own.early(), held));
        let plan = SpmmPlan {
            ranks: ranks.clone(),
            number,
            pattern: self.pattern.local.id(),
            nnz,
            rows_of_b: self.rows_of_b,
            rows_of_c: self.rows_of_c,
            problem: self.problem,
            threads: options.threads.clone(),
            own,
            peers,
            exchange,
            products: Waiting::new(products.into_iter()),
            partial_rows,
            incoming,
            relays,
            forwards,
            workspace,
            fallible: any_gpu,
            explanation,
        };
        Ok((plan, counted))
    }

    fn product<A: CpuScalar>(
        &self,
        nonzeros: Nonzeros,
        layouts: (Layout, Layout),
        options: &Options,
    ) -> Result<Product<A>> {
        let common = Common { problem: &self.problem, options };
        Product::new(nonzeros, layouts, &common)
    }

    /// What passes between this rank, `rank`, and rank `q` for their blocks, given the routes of rows of B and of
    /// partial rows of C.
    pub(super) fn transfers(
        &self,
        (block, remote): (Option<Block>, Option<RemoteBlock>),
        (routes, sums): (&Routes, &Routes),
        (q, rank): (usize, usize),
    ) -> Result<Transfers> {
        let mut transfers = match self.problem.transpose_a {
            false => self.forward(block, remote)?,
            true => self.transposed(block, remote)?,
        };
        if routes.is_relayed(q) {
            transfers.send_rows.clear();
        }
        // Rows of B that this rank forwards are all there, and those that it needs among them.
        if let Some((relayed, positions)) = routes.relayed_rows(q, rank) {
            let renumbered = transfers.received.map(|(nonzeros, rows, values_received)| {
                let nonzeros = nonzeros.renumbered(relayed.rows, positions)?;
                Ok::<_, Error>((nonzeros, rows, values_received))
            });
            transfers.received = renumbered.transpose()?;
        }
        // Partial rows that this rank adds up are all in its own product, most of them empty.
        if let Some((relayed, positions)) = sums.relayed_rows(q, rank) {
            let spread = transfers.served.map(|(nonzeros, values_received)| {
                Ok::<_, Error>((nonzeros.spread(relayed.rows, positions)?, values_received))
            });
            transfers.served = spread.transpose()?;
        }
        if sums.is_relayed(q) {
            let relay = sums.relays.iter().find(|relay| relay.through == q);
            transfers.partial_rows = relay.map_or_else(Vec::new, |relay| relay.rows.clone());
        }
        Ok(transfers)
    }

    /// What is sent for A·B: rows of B are received for the nonzeros that are multiplied here, partial rows of C for
    /// the others.
    fn forward(&self, block: Option<Block>, remote: Option<RemoteBlock>) -> Result<Transfers> {
        let mut transfers = Transfers::default();
        if let Some(RemoteBlock { columns, nonzeros }) = remote {
            transfers.send_rows = columns;
            transfers.values_received = nonzeros.columns.len();
            if transfers.values_received > 0 {
                let nonzeros = Nonzeros::new(nonzeros, self.rows_of_b, false)?;
                transfers.served = Some((nonzeros.simplified(transfers.values_received), true));
            }
        }
        if let Some(Block { columns, mut here, there, .. }) = block {
            transfers.rows_received = columns.len();
            transfers.partial_rows = there.rows;
            transfers.send_values = there.positions;
            if !here.columns.is_empty() {
                renumber(&mut here.columns, &columns);
                let rows = std::mem::take(&mut here.rows);
                here.rows = (0..rows.len() as u32).collect();
                let nonzeros = Nonzeros::new(here, columns.len(), false)?;
                transfers.received = Some((nonzeros, rows, false));
            }
        }
        Ok(transfers)
    }

    /// What is sent for Aᵀ·B: partial rows of C go to the rank of the columns for the nonzeros that are multiplied
    /// here, and rows of B for the others.
    fn transposed(&self, block: Option<Block>, remote: Option<RemoteBlock>) -> Result<Transfers> {
        let mut transfers = Transfers::default();
        if let Some(RemoteBlock { columns, mut nonzeros }) = remote {
            transfers.partial_rows = columns;
            transfers.values_received = nonzeros.columns.len();
            if transfers.values_received > 0 {
                transfers.rows_received = nonzeros.rows.len();
                let mut rows = nonzeros.columns.clone();
                rows.sort_unstable();
                rows.dedup();
                renumber(&mut nonzeros.columns, &rows);
                let nonzeros = Nonzeros::new(nonzeros, rows.len(), true)?;
                transfers.received =
                    Some((nonzeros.simplified(transfers.values_received), rows, true));
            }
        }
        if let Some(Block { columns, mut here, there, .. }) = block {
            transfers.send_rows = there.rows;
            transfers.send_values = there.positions;
            if !here.columns.is_empty() {
                renumber(&mut here.columns, &columns);
                let rows = here.rows.clone();
                let nonzeros = Nonzeros::new(here, columns.len(), true)?;
                // Rows of B are this rank's own, numbered as they are.
                transfers.served = Some((nonzeros.renumbered(self.rows_of_b, &rows)?, false));
            }
        }
        Ok(transfers)
    }

    /// Plans the products with peer `q` by `plan`, given the layouts of B and C, and adds its messages.
    pub(super) fn peer<T: DistScalar, P>(
        &self,
        (q, position): (usize, usize),
        transfers: Transfers,
        messages: &mut Messages,
        plan: &dyn Fn(Nonzeros, (Layout, Layout)) -> Result<P>,
    ) -> Result<Peer<P>> {
        let Transfers {
            send_rows,
            send_values,
            mut rows_received,
            values_received,
            received,
            appended,
            served,
            partial_rows,
        } = transfers;
        let section = messages.sections.get(&q).copied();
        if section.is_some() {
            rows_received = 0;
        }
        let n = self.problem.columns;
        let row_major = Layout::RowMajor;
        let len = send_rows.len() * n + send_values.len();
        let send = match len {
            0 => None,
            _ => Some(Send {
                message: messages.exchange.add_outgoing::<T>(q, Tag::Operands, len)?,
                rows: send_rows,
                values: send_values,
            }),
        };
        let operands = match rows_received * n + values_received {
            0 => None,
            len => Some(
                messages
                    .add_incoming::<T>((q, Tag::Operands, len), Contents::Operands(position))?,
            ),
        };
        if let (Some(message), Some((_, true))) = (operands, &served) {
            messages.exchange.set_urgent(message);
        }
        let of_peer = |message| ReceivedValues { message, first: rows_received * n };
        let values = |received: bool| operands.filter(|_| received).map(of_peer);
        let direct = operands.map(|message| Section { message, first: 0, rows: rows_received });
        if let (Some(of_b), Some((first, positions))) = (section.or(direct), appended) {
            messages.arrivals.push((q, first, Arrival { section: of_b, positions }));
        }
        // Without rows of B there is nothing to multiply with them.
        let received = section.or(direct).and_then(|of_b| Some((of_b, received?)));
        let received =
            received.filter(|_| n > 0).map(|(of_b, (nonzeros, rows, values_received))| {
                let whole = rows.len() == self.rows_of_c;
                let layout = if whole { self.problem.layout_c } else { row_major };
                let (product, values) =
                    (plan(nonzeros, (row_major, layout))?, values(values_received));
                let rows = (!whole).then_some(rows);
                Ok::<_, Error>(Received { product, of_b, rows, values })
            });
        let received = received.transpose()?;
        let needs = received.iter().flat_map(|received| {
            let values = received.values.map(|values| values.message);
            [received.of_b.message].into_iter().chain(values)
        });
        messages.products.push(needs.collect());
        let served = served.filter(|_| n > 0).map(|(nonzeros, values_received)| {
            let rows = nonzeros.pattern.nrows();
            let product = plan(nonzeros, (self.problem.layout_b, row_major))?;
            let Messages { exchange, partial, .. } = &mut *messages;
            let to = partial.add::<T::Accum>(exchange, (q, position), (rows, n))?;
            Ok::<_, Error>(Served { product, to, values: values(values_received) })
        });
        let partial = match partial_rows.len() * n {
            0 => None,
            len => {
                let contents = Contents::Partial(position);
                let message =
                    messages.add_incoming::<T::Accum>((q, Tag::Partial, len), contents)?;
                Some(Partial { message, rows: partial_rows })
            }
        };
        Ok(Peer { send, received, served: served.transpose()?, partial })
    }

    fn workspace<T: DistScalar>(
        &self,
        own: &Own<T::Accum>,
        peers: &[Peer<Product<T::Accum>>],
    ) -> Result<Workspace<T::Accum>> {
        let n = self.problem.columns;
        let widened = is_widened(T::DTYPE);
        let products = peers.iter().flat_map(Peer::products).chain(own.products());
        let values = products.map(|product| product.gathered(widened));
        let partial = peers.iter().filter_map(|p| p.received.as_ref()?.rows.as_ref());
        let sections = peers.iter().filter_map(|p| p.received.as_ref());
        let appended = match own {
            Own::Rows(rows) => rows.most_received(),
            Own::Block(_) => 0,
        };
        let rows_of_b = sections.map(|received| received.of_b.rows).chain([appended]);
        let rows_of_b = rows_of_b.map(|rows| if widened { rows * n } else { 0 });
        let b =
            widened.then(|| gustav_core::Dense::zeros(self.rows_of_b, n, self.problem.layout_b));
        Ok(Workspace {
            values: largest_buffer(values, "values of a block")?,
            partial: largest_buffer(partial.map(|rows| rows.len() * n), "partial rows of C")?,
            received: largest_buffer(rows_of_b, "rows of B in the type of sums")?,
            b: b.transpose()?,
            sums: None,
        })
    }
}

/// Messages of a plan, as they are added.
#[derive(Default)]
pub(super) struct Messages {
    pub exchange: Exchange,
    pub incoming: Vec<Contents>,
    pub partial: PartialMessages,
    /// The incoming messages that products of each peer need.
    pub products: Vec<Vec<usize>>,
    /// By the rank that has them, where rows of B are found that are received through a relay, or that this rank
    /// forwards.
    pub sections: BTreeMap<usize, Section>,
    /// Rows of B that are put after this rank's: of which rank, and where.
    arrivals: Vec<(usize, usize, Arrival)>,
}

impl Messages {
    pub(super) fn with_limit(limit: usize) -> Self {
        Messages { exchange: Exchange::with_limit(limit), ..Self::default() }
    }

    pub(super) fn add_incoming<T>(
        &mut self,
        (peer, tag, len): (usize, Tag, usize),
        contents: Contents,
    ) -> Result<usize> {
        self.incoming.push(contents);
        self.exchange.add_incoming::<T>(peer, tag, len)
    }

    /// Adds the messages of rows of B that are forwarded, and of partial rows that are added up on their host. Returns
    /// the outgoing ones of the former.
    pub(super) fn routes<T: DistScalar>(
        &mut self,
        described: &Described,
        rank: usize,
    ) -> Result<Forwards> {
        let Described { problem, blocks, remote, routes, sums, .. } = described;
        let n = problem.columns;
        let of_columns: Vec<(usize, usize)> =
            blocks.others.iter().map(|block| (block.peer, block.columns.len())).collect();
        let rows =
            |(q, of): (usize, &Option<RemoteBlock>)| Some((q, of.as_ref()?.nonzeros.rows.len()));
        let of_rows = remote.iter().enumerate().filter_map(rows).collect();
        let (needed, computed) =
            if problem.transpose_a { (of_rows, of_columns) } else { (of_columns, of_rows) };

        let exchange = &mut self.exchange;
        let routed = Routed::new::<T>(exchange, routes, rank, needed.into_iter(), n)?;
        let Routed { to_relay, forwarded, forwards, sections } = routed;
        let (partial, to_reduce) =
            PartialMessages::reduce::<T::Accum>(exchange, sums, rank, computed.into_iter(), n)?;
        for (contents, count) in [
            (Contents::ToRelay, to_relay),
            (Contents::Forwarded, forwarded),
            (Contents::ToReduce, to_reduce),
        ] {
            self.incoming.extend(std::iter::repeat_n(contents, count));
        }
        (self.sections, self.partial) = (sections, partial);
        Ok(forwards)
    }
}

/// What passes between this rank and another, before anything is planned.
#[derive(Default)]
pub(super) struct Transfers {
    pub send_rows: Vec<u32>,
    pub send_values: Vec<usize>,
    pub rows_received: usize,
    pub values_received: usize,
    /// Nonzeros, the rows of C that they add to, and whether their values are received.
    pub received: Option<(Nonzeros, Vec<u32>, bool)>,
    /// Where received rows of B are put, and their positions among rows that are forwarded.
    pub appended: Option<(usize, Option<Vec<u32>>)>,
    /// Nonzeros, and whether their values are received.
    pub served: Option<(Nonzeros, bool)>,
    pub partial_rows: Vec<u32>,
}

impl Transfers {
    /// Has received rows of B put at row `first` of B, to be multiplied there; returns their number. `relayed` are
    /// their positions among those that this rank forwards.
    pub(super) fn append(&mut self, first: usize, relayed: Option<&[u32]>) -> usize {
        if self.received.take().is_none() {
            return 0;
        }
        self.appended = Some((first, relayed.map(<[u32]>::to_vec)));
        self.rows_received
    }

    /// Nonzeros that are multiplied on this rank.
    pub(super) fn nonzeros(&self) -> usize {
        let received = self.received.iter().map(|(nonzeros, ..)| nonzeros);
        let served = self.served.iter().map(|(nonzeros, _)| nonzeros);
        received.chain(served).map(|n| n.pattern.nnz()).sum()
    }
}

impl Send {
    /// Bytes of its lists.
    fn bytes(&self) -> usize {
        size_of_val(&self.rows[..]) + size_of_val(&self.values[..])
    }
}

impl<A: CpuScalar> Peer<Product<A>> {
    /// Bytes that it holds besides messages.
    fn bytes(&self) -> usize {
        let sent = self.send.iter().map(Send::bytes);
        let received = self.received.iter().filter_map(|received| received.rows.as_ref());
        let lists = received.chain(self.partial.iter().map(|partial| &partial.rows));
        let products = self.products().map(Product::bytes);
        sent.chain(lists.map(|rows| size_of_val(&rows[..]))).chain(products).sum()
    }
}

impl<P> Peer<P> {
    pub(super) fn products(&self) -> impl Iterator<Item = &P> {
        let received = self.received.iter().map(|r| &r.product);
        received.chain(self.served.iter().map(|s| &s.product))
    }
}

/// Replaces every number by its position in `list`, which increases and holds them all.
fn renumber(numbers: &mut [u32], list: &[u32]) {
    for number in numbers {
        *number = list.partition_point(|k| k < number) as u32;
    }
}
