//! Making a plan, once the ranks have described their blocks to each other.

use gustav_core::{Index, Layout, Pattern, Problem, Result};
use gustav_cpu::CpuScalar;

use super::{Brings, Partial, Peer, Received, Send, Served, SpmmPlan, Workspace};
use crate::blocks::{Block, Blocks, fits};
use crate::communicator::Tag;
use crate::exchange::Exchange;
use crate::local::{Common, DistScalar, Nonzeros, Product, is_widened, room};
use crate::volume::Counted;
use crate::words::Foreign;
use crate::{Device, DistPattern, Explanation, ProductShape, Volume};

/// What a plan is made of.
pub(super) struct Builder<'b, I: Index, O: Index> {
    pattern: &'b DistPattern<I, O>,
    problem: Problem,
    device: &'b Device,
    shape: ProductShape,
    rows_of_b: usize,
    rows_of_c: usize,
}

impl<'b, I: Index, O: Index> Builder<'b, I, O> {
    pub fn new(
        pattern: &'b DistPattern<I, O>,
        problem: Problem,
        device: &'b Device,
        shape: ProductShape,
    ) -> Self {
        let rank = pattern.ranks().rank();
        let (rows, columns) = (pattern.rows().count(rank), pattern.columns().count(rank));
        let (rows_of_c, rows_of_b) =
            if problem.transpose_a { (columns, rows) } else { (rows, columns) };
        Builder { pattern, problem, device, shape, rows_of_b, rows_of_c }
    }

    /// The plan of this rank, and what it counts; `words[q]` is what rank q describes.
    pub fn build<T: DistScalar>(
        self,
        number: u64,
        blocks: Blocks,
        words: &[Vec<u32>],
    ) -> Result<(SpmmPlan<T>, Counted)> {
        let ranks = self.pattern.ranks();
        let (rank, transpose) = (ranks.rank(), self.problem.transpose_a);
        let columns = self.pattern.columns().count(rank);
        fits("rows", self.rows_of_b.max(self.rows_of_c))?;
        let Blocks { own, others } = blocks;
        let nnz = self.pattern.local().nnz();
        let own = Nonzeros::new(own, columns, transpose)?.simplified(nnz);
        let layouts = (self.problem.layout_b, self.problem.layout_c);
        let own: Product<T::Accum> = self.product(own, layouts)?;
        let mut counted = Counted { nonzeros: own.nnz() as u64, ..Counted::default() };

        let mut exchange = Exchange::default();
        let (mut peers, mut incoming) = (Vec::new(), Vec::new());
        let mut others = others.into_iter().peekable();
        for (q, words) in words.iter().enumerate() {
            let block = others.next_if(|block| block.peer == q);
            if block.is_none() && words.is_empty() {
                continue;
            }
            if let Some(block) = &block {
                counted.add_block(&block.counts, &self.shape);
            }
            let foreign = match words.is_empty() {
                true => None,
                false => Some(Foreign::read(words, (rank, q), columns)?),
            };
            let crossing = match transpose {
                false => self.forward(block, foreign)?,
                true => self.transposed(block, foreign)?,
            };
            counted.nonzeros += crossing.nonzeros() as u64;
            let peer = self.peer::<T>(q, crossing, &mut exchange)?;
            let messages = [
                (peer.operands, Brings::Operands),
                (peer.partial.as_ref().map(|p| p.message), Brings::Partial),
            ];
            // Messages are numbered in this order.
            incoming.extend(
                messages.iter().filter_map(|(m, brings)| m.map(|_| (*brings, peers.len()))),
            );
            peers.push(peer);
        }
        (counted.sent_bytes, counted.sent_messages) = exchange.outgoing_bytes();
        counted.received_bytes = exchange.incoming_bytes();

        let workspace = self.workspace::<T>(&own, &peers)?;
        let products = peers.iter().flat_map(Peer::products).chain([&own]);
        let held = products.map(Product::bytes).sum::<usize>();
        let explanation = Explanation {
            problem: self.problem.clone(),
            ranks: ranks.communicator().description(),
            communication: self.shape.communication,
            volume: Volume::default(),
            choice: own.choice().clone(),
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
            own,
            peers,
            exchange,
            incoming,
            workspace,
            explanation,
        };
        Ok((plan, counted))
    }

    fn product<A: CpuScalar>(
        &self,
        nonzeros: Nonzeros,
        layouts: (Layout, Layout),
    ) -> Result<Product<A>> {
        let common = Common { problem: &self.problem, options: &self.device.options };
        Product::new(nonzeros, layouts, &common)
    }

    /// What crosses for A·B: rows of B come for the nonzeros that are multiplied here, partial rows of C for the
    /// others.
    fn forward(&self, block: Option<Block>, foreign: Option<Foreign>) -> Result<Crossing> {
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
                let rows = std::mem::take(&mut here.rows);
                here.rows = (0..rows.len() as u32).collect();
                let nonzeros = Nonzeros::new(here, columns.len(), false)?;
                crossing.received = Some((nonzeros, rows, false));
            }
        }
        Ok(crossing)
    }

    /// What crosses for Aᵀ·B: partial rows of C go to the rank of the columns for the nonzeros that are multiplied
    /// here, and rows of B for the others.
    fn transposed(&self, block: Option<Block>, foreign: Option<Foreign>) -> Result<Crossing> {
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

    /// Plans the products with peer `q`, and adds its messages.
    fn peer<T: DistScalar>(
        &self,
        q: usize,
        crossing: Crossing,
        exchange: &mut Exchange,
    ) -> Result<Peer<T::Accum>> {
        let Crossing {
            send_rows,
            send_values,
            rows_come,
            values_come,
            received,
            served,
            partial_rows,
        } = crossing;
        let n = self.problem.columns;
        let row_major = Layout::RowMajor;
        let len = send_rows.len() * n + send_values.len();
        let send = match len {
            0 => None,
            _ => Some(Send {
                message: exchange.add_outgoing::<T>(q, Tag::Operands, len)?,
                rows: send_rows,
                values: send_values,
            }),
        };
        let operands = match rows_come * n + values_come {
            0 => None,
            len => Some(exchange.add_incoming::<T>(q, Tag::Operands, len)?),
        };
        let received = received.filter(|_| n > 0).map(|(nonzeros, rows, values_come)| {
            let whole = rows.len() == self.rows_of_c;
            let layout = if whole { self.problem.layout_c } else { row_major };
            let product = self.product(nonzeros, (row_major, layout))?;
            Ok::<_, gustav_core::Error>(Received {
                product,
                rows: (!whole).then_some(rows),
                values_come,
            })
        });
        let served = served.filter(|_| n > 0).map(|(nonzeros, values_come)| {
            let rows = nonzeros.pattern.nrows();
            let product = self.product(nonzeros, (self.problem.layout_b, row_major))?;
            let message = exchange.add_outgoing::<T::Accum>(q, Tag::Partial, rows * n)?;
            Ok::<_, gustav_core::Error>(Served { product, message, rows, values_come })
        });
        let (received, served) = (received.transpose()?, served.transpose()?);
        let partial = match partial_rows.len() * n {
            0 => None,
            len => {
                let message = exchange.add_incoming::<T::Accum>(q, Tag::Partial, len)?;
                Some(Partial { message, rows: partial_rows })
            }
        };
        Ok(Peer { send, operands, rows_come, received, served, partial })
    }

    fn workspace<T: DistScalar>(
        &self,
        own: &Product<T::Accum>,
        peers: &[Peer<T::Accum>],
    ) -> Result<Workspace<T::Accum>> {
        let n = self.problem.columns;
        let widened = is_widened(T::DTYPE);
        let values = peers.iter().flat_map(Peer::products).chain([own]).map(Product::nnz);
        let partial = peers.iter().filter_map(|p| p.received.as_ref()?.rows.as_ref());
        let come = peers.iter().map(|p| if widened { p.rows_come * n } else { 0 });
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

/// What passes between this rank and another, before anything is planned.
#[derive(Default)]
struct Crossing {
    send_rows: Vec<u32>,
    send_values: Vec<usize>,
    rows_come: usize,
    values_come: usize,
    /// Nonzeros, the rows of C that they add to, and whether their values come.
    received: Option<(Nonzeros, Vec<u32>, bool)>,
    /// Nonzeros, and whether their values come.
    served: Option<(Nonzeros, bool)>,
    partial_rows: Vec<u32>,
}

impl Crossing {
    /// Nonzeros that are multiplied on this rank.
    fn nonzeros(&self) -> usize {
        let received = self.received.iter().map(|(nonzeros, ..)| nonzeros);
        let served = self.served.iter().map(|(nonzeros, _)| nonzeros);
        received.chain(served).map(|n| n.pattern.nnz()).sum()
    }
}

impl<A: CpuScalar> Peer<A> {
    fn products(&self) -> impl Iterator<Item = &Product<A>> {
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
