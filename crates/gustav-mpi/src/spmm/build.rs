//! Making a plan, once the ranks have described their blocks to each other.

use std::collections::{BTreeMap, HashMap};

use gustav_core::{Index, Layout, Pattern, Problem, Result};
use gustav_cpu::{CpuScalar, Options};

use super::rows::{self, Arrival, WholeRows};
use super::{
    Brings, Described, Incoming, Own, Partial, Passed, Peer, Received, Section, Send, Served,
    SpmmPlan, Workspace,
};
use crate::blocks::{Block, Blocks, fits};
use crate::communicator::Tag;
use crate::exchange::Exchange;
use crate::explain::unconfigured;
use crate::hosts::Relay;
use crate::local::{Common, DistScalar, Nonzeros, Product, is_widened, room};
use crate::routes::{Pass, Routes};
use crate::volume::Counted;
use crate::words::Foreign;
use crate::{DistPattern, Explanation, Hosts, Volume};

/// What a plan is made of.
pub(super) struct Builder<'b, I: Index, O: Index> {
    pub pattern: &'b DistPattern<I, O>,
    pub problem: Problem,
    pub rows_of_b: usize,
    pub rows_of_c: usize,
}

impl<'b, I: Index, O: Index> Builder<'b, I, O> {
    pub fn new(pattern: &'b DistPattern<I, O>, described: &Described) -> Self {
        let (rank, problem) = (pattern.ranks().rank(), described.problem.clone());
        let (rows, columns) = (pattern.rows().count(rank), pattern.columns().count(rank));
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
        let Described { number, shape, blocks, foreign, routes, limit, .. } = described;
        let ranks = self.pattern.ranks();
        let (rank, transpose) = (ranks.rank(), self.problem.transpose_a);
        let columns = self.pattern.columns().count(rank);
        fits("rows", self.rows_of_b.max(self.rows_of_c))?;
        let (nnz, n) = (self.pattern.local().nnz(), self.problem.columns);
        let (layout_b, layout_c) = (self.problem.layout_b, self.problem.layout_c);
        let mut counted =
            Counted { nonzeros: blocks.own.columns.len() as u64, ..Counted::default() };
        let mut whole = None;
        if !transpose && rows::is_cheaper::<T>(&blocks, self.rows_of_b, n) {
            let plan = |rows| self.product(rows, (Layout::RowMajor, layout_c), options);
            let sizes = (self.rows_of_b, n);
            whole = Some(WholeRows::new(self.pattern.local(), &blocks, sizes, plan)?);
        }
        let Blocks { own, others } = blocks;

        let mut messages = Messages::with_limit(limit);
        let passed = messages.routes::<T>(&routes, rank, &others, n)?;
        let mut relays = Vec::new();
        for Relay { through, rows, .. } in &routes.relays {
            let len = rows.len() * n;
            let message = messages.exchange.add_outgoing::<T>(*through, Tag::Relayed, len)?;
            relays.push(Send { message, rows: rows.clone(), values: Vec::new() });
        }
        let mut peers = Vec::new();
        let mut first = self.rows_of_b;
        let mut others = others.into_iter().peekable();
        for (q, foreign) in foreign.into_iter().enumerate() {
            let block = others.next_if(|block| block.peer == q);
            if block.is_none() && foreign.is_none() {
                continue;
            }
            if let Some(block) = &block {
                counted.add_block(&block.counts, &shape, hosts.differ(rank, q));
            }
            let mut crossing = match transpose {
                false => self.forward(block, foreign, routes.pass_of(q, rank))?,
                true => self.transposed(block, foreign)?,
            };
            counted.nonzeros += crossing.nonzeros() as u64;
            if routes.is_relayed(q) {
                crossing.send_rows.clear();
            }
            if whole.is_some() {
                first += crossing.put_behind(first, routes.pass_of(q, rank));
            }
            let at = (q, peers.len());
            let plan = |nonzeros, layouts| self.product(nonzeros, layouts, options);
            peers.push(self.peer::<T, Product<T::Accum>>(at, crossing, &mut messages, &plan)?);
        }
        let Messages { exchange, incoming, arrivals, .. } = messages;
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
        let held = peers.iter().flat_map(Peer::products).map(Product::bytes).sum::<usize>();
        let held = held + own.bytes();
        let choice = unconfigured(own.choice());
        let explanation = Explanation {
            problem: self.problem.clone(),
            ranks: ranks.communicator().description(),
            communication: shape.communication,
            volume: Volume::default(),
            order: self.pattern.order().copied(),
            choice,
            workspace_bytes: held + exchange.bytes() + workspace.bytes(),
        };
        let plan = SpmmPlan {
            ranks: ranks.clone(),
            number,
            pattern: self.pattern.local().id(),
            nnz,
            rows_of_b: self.rows_of_b,
            rows_of_c: self.rows_of_c,
            problem: self.problem,
            threads: options.threads.clone(),
            own,
            peers,
            exchange,
            incoming,
            relays,
            passed,
            workspace,
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

    /// What crosses for A·B: rows of B come for the nonzeros that are multiplied here, partial rows of C for the
    /// others. `pass`: rows that come among others, which this rank passes on, and their positions.
    pub(super) fn forward(
        &self,
        block: Option<Block>,
        foreign: Option<Foreign>,
        pass: Option<(&Pass, &[u32])>,
    ) -> Result<Crossing> {
        let mut crossing = Crossing::default();
        if let Some(Foreign { columns, nonzeros }) = foreign {
            crossing.send_rows = columns;
            crossing.values_come = nonzeros.columns.len();
            if crossing.values_come > 0 {
                let nonzeros = Nonzeros::new(nonzeros, self.rows_of_b, false)?;
                crossing.served = Some((nonzeros.simplified(crossing.values_come), true));
            }
        }
        if let Some(Block { columns, mut here, there, .. }) = block {
            crossing.rows_come = columns.len();
            crossing.partial_rows = there.rows;
            crossing.send_values = there.positions;
            if !here.columns.is_empty() {
                renumber(&mut here.columns, &columns);
                let mut of_b = columns.len();
                if let Some((pass, positions)) = pass {
                    here.columns.iter_mut().for_each(|c| *c = positions[*c as usize]);
                    of_b = pass.rows;
                }
                let rows = std::mem::take(&mut here.rows);
                here.rows = (0..rows.len() as u32).collect();
                let nonzeros = Nonzeros::new(here, of_b, false)?;
                crossing.received = Some((nonzeros, rows, false));
            }
        }
        Ok(crossing)
    }

    /// What crosses for Aᵀ·B: partial rows of C go to the rank of the columns for the nonzeros that are multiplied
    /// here, and rows of B for the others.
    pub(super) fn transposed(
        &self,
        block: Option<Block>,
        foreign: Option<Foreign>,
    ) -> Result<Crossing> {
        let mut crossing = Crossing::default();
        if let Some(Foreign { columns, mut nonzeros }) = foreign {
            crossing.partial_rows = columns;
            crossing.values_come = nonzeros.columns.len();
            if crossing.values_come > 0 {
                crossing.rows_come = nonzeros.rows.len();
                let mut rows = nonzeros.columns.clone();
                rows.sort_unstable();
                rows.dedup();
                renumber(&mut nonzeros.columns, &rows);
                let nonzeros = Nonzeros::new(nonzeros, rows.len(), true)?;
                crossing.received = Some((nonzeros.simplified(crossing.values_come), rows, true));
            }
        }
        if let Some(Block { columns, mut here, there, .. }) = block {
            crossing.send_rows = there.rows;
            crossing.send_values = there.positions;
            if !here.columns.is_empty() {
                renumber(&mut here.columns, &columns);
                let rows = here.rows.clone();
                let Nonzeros { pattern, positions } = Nonzeros::new(here, columns.len(), true)?;
                // Rows of B are this rank's own, numbered as they are.
                let of_b = pattern.indices().iter().map(|k| rows[*k as usize]).collect::<Vec<_>>();
                let offsets = pattern.offsets().to_vec();
                let pattern = Pattern::new(pattern.nrows(), self.rows_of_b, offsets, of_b)?;
                crossing.served = Some((Nonzeros { pattern, positions }, false));
            }
        }
        Ok(crossing)
    }

    /// Plans the products with peer `q` by `plan`, given the layouts of B and C, and adds its messages.
    pub(super) fn peer<T: DistScalar, P>(
        &self,
        (q, position): (usize, usize),
        crossing: Crossing,
        messages: &mut Messages,
        plan: &dyn Fn(Nonzeros, (Layout, Layout)) -> Result<P>,
    ) -> Result<Peer<P>> {
        let Crossing {
            send_rows,
            send_values,
            mut rows_come,
            values_come,
            received,
            behind,
            served,
            partial_rows,
        } = crossing;
        let section = messages.sections.get(&q).copied();
        if section.is_some() {
            rows_come = 0;
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
        let operands = match rows_come * n + values_come {
            0 => None,
            len => Some(
                messages.add_incoming::<T>((q, Tag::Operands, len), Brings::Operands(position))?,
            ),
        };
        let direct = operands.map(|message| Section { message, first: 0, rows: rows_come });
        if let (Some(of_b), Some((first, positions))) = (section.or(direct), behind) {
            messages.arrivals.push(Arrival { of_b, positions, first });
        }
        // Without rows of B there is nothing to multiply with them.
        let received = section.or(direct).and_then(|of_b| Some((of_b, received?)));
        let received = received.filter(|_| n > 0).map(|(of_b, (nonzeros, rows, values_come))| {
            let whole = rows.len() == self.rows_of_c;
            let layout = if whole { self.problem.layout_c } else { row_major };
            let product = plan(nonzeros, (row_major, layout))?;
            messages.incoming[of_b.message].multiplied.push(position);
            Ok::<_, gustav_core::Error>(Received {
                product,
                of_b,
                rows: (!whole).then_some(rows),
                values_come,
            })
        });
        let received = received.transpose()?;
        let served = served.filter(|_| n > 0).map(|(nonzeros, values_come)| {
            let rows = nonzeros.pattern.nrows();
            let product = plan(nonzeros, (self.problem.layout_b, row_major))?;
            let message = messages.exchange.add_outgoing::<T::Accum>(q, Tag::Partial, rows * n)?;
            Ok::<_, gustav_core::Error>(Served { product, message, rows, values_come })
        });
        let partial = match partial_rows.len() * n {
            0 => None,
            len => {
                let brings = Brings::Partial(position);
                let message = messages.add_incoming::<T::Accum>((q, Tag::Partial, len), brings)?;
                Some(Partial { message, rows: partial_rows })
            }
        };
        Ok(Peer { send, rows_come, received, served: served.transpose()?, partial })
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
        let behind = match own {
            Own::Rows(rows) => rows.arrivals(),
            Own::Block(_) => &[],
        };
        let sections = sections.map(|r| r.of_b).chain(behind.iter().map(|arrival| arrival.of_b));
        let come = sections.map(|of_b| if widened { of_b.rows * n } else { 0 });
        let b =
            widened.then(|| gustav_core::Dense::zeros(self.rows_of_b, n, self.problem.layout_b));
        Ok(Workspace {
            values: room(values, "values of a block")?,
            partial: room(partial.map(|rows| rows.len() * n), "partial rows of C")?,
            received: room(come, "rows of B in the type of sums")?,
            b: b.transpose()?,
            sums: None,
        })
    }
}

/// Messages of a plan, as they are added.
#[derive(Default)]
pub(super) struct Messages {
    pub exchange: Exchange,
    pub incoming: Vec<Incoming>,
    /// Where rows of B come that do not come from the rank that has them, or among those that this rank passes on; by
    /// that rank.
    pub sections: HashMap<usize, Section>,
    /// Rows of B that are put behind this rank's.
    arrivals: Vec<Arrival>,
}

impl Messages {
    pub(super) fn with_limit(limit: usize) -> Self {
        Messages { exchange: Exchange::with_limit(limit), ..Self::default() }
    }

    pub(super) fn add_incoming<T>(
        &mut self,
        (peer, tag, len): (usize, Tag, usize),
        brings: Brings,
    ) -> Result<usize> {
        self.incoming.push(Incoming { brings, multiplied: Vec::new() });
        self.exchange.add_incoming::<T>(peer, tag, len)
    }

    /// Adds the messages of rows of `n` columns that are passed on: those that come to this rank, and those that leave
    /// it, which are returned.
    pub(super) fn routes<T>(
        &mut self,
        routes: &Routes,
        rank: usize,
        blocks: &[Block],
        n: usize,
    ) -> Result<Vec<Passed>> {
        let mut pieces: BTreeMap<usize, Vec<(usize, Vec<u32>)>> = BTreeMap::new();
        for Pass { from, rows, wanted } in &routes.passes {
            let message =
                self.add_incoming::<T>((*from, Tag::Relayed, rows * n), Brings::Relayed)?;
            self.sections.insert(*from, Section { message, first: 0, rows: *rows });
            for (q, positions) in wanted.iter().filter(|(q, _)| *q != rank) {
                pieces.entry(*q).or_default().push((message, positions.clone()));
            }
        }
        // Rows of all ranks that come through one are one message, in the order of those ranks.
        let mut come: BTreeMap<usize, (usize, Vec<(usize, usize, usize)>)> = BTreeMap::new();
        for block in blocks {
            let through = routes.through[block.peer];
            if through != block.peer && through != rank {
                let (sum, parts) = come.entry(through).or_default();
                parts.push((block.peer, *sum, block.columns.len()));
                *sum += block.columns.len();
            }
        }
        for (through, (sum, parts)) in come {
            let message =
                self.add_incoming::<T>((through, Tag::PassedOn, sum * n), Brings::PassedOn)?;
            let section = |(q, first, rows)| (q, Section { message, first, rows });
            self.sections.extend(parts.into_iter().map(section));
        }
        let mut passed = Vec::new();
        for (q, pieces) in pieces {
            let rows: usize = pieces.iter().map(|(_, positions)| positions.len()).sum();
            let message = self.exchange.add_outgoing::<T>(q, Tag::PassedOn, rows * n)?;
            passed.push(Passed { message, missing: 0, pieces });
        }
        Ok(passed)
    }
}

/// What passes between this rank and another, before anything is planned.
#[derive(Default)]
pub(super) struct Crossing {
    pub send_rows: Vec<u32>,
    pub send_values: Vec<usize>,
    pub rows_come: usize,
    pub values_come: usize,
    /// Nonzeros, the rows of C that they add to, and whether their values come.
    pub received: Option<(Nonzeros, Vec<u32>, bool)>,
    /// Where rows of B that come are put, and the positions of these among rows that are passed on.
    pub behind: Option<(usize, Option<Vec<u32>>)>,
    /// Nonzeros, and whether their values come.
    pub served: Option<(Nonzeros, bool)>,
    pub partial_rows: Vec<u32>,
}

impl Crossing {
    /// Has the rows of B that come put at row `first` of B, to be multiplied there; returns their number. `pass` is as of
    /// [`Builder::forward`].
    pub(super) fn put_behind(&mut self, first: usize, pass: Option<(&Pass, &[u32])>) -> usize {
        if self.received.take().is_none() {
            return 0;
        }
        self.behind = Some((first, pass.map(|(_, positions)| positions.to_vec())));
        self.rows_come
    }

    /// Nonzeros that are multiplied on this rank.
    pub(super) fn nonzeros(&self) -> usize {
        let received = self.received.iter().map(|(nonzeros, ..)| nonzeros);
        let served = self.served.iter().map(|(nonzeros, _)| nonzeros);
        received.chain(served).map(|n| n.pattern.nnz()).sum()
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
