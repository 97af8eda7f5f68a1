//! The rows of B that a rank multiplies with: its own, and ghost rows.

use std::ops::Range;

use gustav_core::buffer::try_vec;
use gustav_core::{Error, Index, Operation, Problem, Result};

use crate::blocks::fits;
use crate::device::{arguments, supports};
use crate::exchange::{Exchange, all_to_all};
use crate::fetch::Fetch;
use crate::ghosts::Ghosts;
use crate::gpu::chunks;
use crate::local::DistScalar;
use crate::routes::Routes;
use crate::row_parts::{RowPart, largest, nonzeros_of, row_parts};
use crate::volume::Counted;
use crate::waiting::Waiting;
use crate::{Communication, Device, DistPattern};

// Fewest intermediate products that are worth a product of their own while messages are in flight.
const LEAST_EARLY: u64 = 1 << 14;
const LEAST_EARLY_ON_GPU: u64 = 1 << 18;

/// The rows of B that this rank multiplies with, in the order of all rows: ghosts of ranks before this one, its own,
/// ghosts of those after it.
pub struct Gathered<I: Index> {
    pub number: u64,
    pub problem: Problem,
    /// Which of the rows each nonzero of A needs.
    pub of_a: Vec<u32>,
    /// This rank's rows of A, in the parts that are multiplied together.
    pub parts: Vec<RowPart>,
    /// The number of the part with the most intermediate products.
    pub largest: usize,
    /// Offsets of the rows, and their columns among all.
    pub offsets: Vec<u64>,
    pub columns: Vec<I>,
    /// The first row, and the first value, of this rank.
    pub own_row: usize,
    pub own_at: usize,
    pub exchange: Exchange,
    /// Messages of values.
    pub fetch: Fetch<u64>,
    /// The first value of each rank.
    pub firsts: Vec<usize>,
    /// Which parts wait for messages.
    pub waiting: Waiting,
}

impl<I: Index> Gathered<I> {
    /// Checks `problem` and exchanges the patterns of rows; `on_gpu` says that this rank computes on a GPU. Parts of
    /// rows of A are multiplied before others' values arrive from a number of intermediate products on. Collective.
    ///
    /// # Errors
    /// On every rank, as [`SpgemmPlan::new`](crate::SpgemmPlan::new).
    pub fn new<T: DistScalar, O: Index>(
        [a, b]: [&DistPattern<I, O>; 2],
        problem: &Problem,
        device: &Device,
        on_gpu: bool,
    ) -> Result<Self> {
        let ranks = a.ranks();
        let number = ranks.next_plan();
        let (dtype, index_type, offset_type) = (T::DTYPE, I::TYPE, O::TYPE);
        let problem = Problem { dtype, output: dtype, index_type, offset_type, ..problem.clone() };
        let device = &device.clone().communication(Communication::RowsOfB);
        let mut agreed = arguments(number, &problem, &a.into(), device);
        agreed.push(("partition of rows of B", b.rows().description()));
        agreed.push(("partition of columns of B", b.columns().description()));
        ranks.agree_on(agreed, check(a, b, &problem))?;
        ranks.count_plan();

        let ghosts = Ghosts::new(&a.into())?;
        // Positions of the values that every rank needs.
        let local = b.local().view();
        let requested: Vec<Vec<u64>> =
            of_rows(&ghosts.requested, |row| local.row_range(row).map(|at| at as u64));
        let narrow = |positions: &Vec<u64>| match is_relayed(local.nnz()) {
            true => positions.iter().map(|at| *at as u32).collect(),
            false => Vec::new(),
        };
        let routes = Routes::new(ranks, device, true, || requested.iter().map(narrow).collect())?;
        let (_, limit) = chunks(ranks, on_gpu, &problem)?;
        // Lengths of rows, then their columns.
        let lengths: Vec<Vec<u64>> = of_rows(&ghosts.requested, |row| [local.row_len(row) as u64]);
        let columns: Vec<Vec<I>> = of_rows(&ghosts.requested, |row| local.row(row).iter().copied());
        let lengths = all_to_all(ranks, &lengths.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        let columns = all_to_all(ranks, &columns.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        let least_early = if on_gpu { LEAST_EARLY_ON_GPU } else { LEAST_EARLY };
        let described = (number, problem, limit, least_early);
        let routed = (&routes, &requested[..]);
        ranks.together(Self::build::<T, O>(
            [a, b],
            described,
            &ghosts,
            routed,
            (&lengths, &columns),
        ))
    }

    fn build<T: DistScalar, O: Index>(
        [a, b]: [&DistPattern<I, O>; 2],
        (number, problem, limit, least_early): (u64, Problem, usize, u64),
        ghosts: &Ghosts,
        (routes, requested): (&Routes, &[Vec<u64>]),
        (lengths, received): (&[Vec<u64>], &[Vec<I>]),
    ) -> Result<Self> {
        let ranks = a.ranks();
        let (rank, local) = (ranks.rank(), b.local().view());
        let own = local.nrows();
        let rows = own + ghosts.count();
        fits("rows and ghost rows of B", rows)?;
        let remote = received.iter().map(Vec::len).sum::<usize>();
        let mut columns = try_vec::<I>(local.nnz() + remote, "columns of rows of B")?;
        let mut offsets = try_vec::<u64>(rows + 1, "row offsets of B")?;
        offsets.push(0);
        let (mut firsts, mut needed) = (Vec::new(), Vec::new());
        for q in 0..ranks.size() {
            let ends = |lengths: &mut dyn Iterator<Item = u64>, offsets: &mut Vec<u64>| {
                for len in lengths {
                    offsets.push(offsets[offsets.len() - 1] + len);
                }
            };
            firsts.push(columns.len());
            if q == rank {
                ends(&mut (0..own).map(|r| local.row_len(r) as u64), &mut offsets);
                columns.extend_from_slice(local.indices());
            } else {
                needed.push((q, received[q].len()));
                ends(&mut lengths[q].iter().copied(), &mut offsets);
                columns.extend_from_slice(&received[q]);
            }
        }
        if offsets.len() != rows + 1 || offsets[rows] != columns.len() as u64 {
            return Err(Error::Communication {
                rank,
                peer: None,
                action: "reading rows of B",
                reason: "they are not those that were requested".into(),
            });
        }
        let first_row = |q: usize| ghosts.first_row(q, rank, own);
        let of_a = ghosts.rows_of_nonzeros(a.local().nnz(), rank, first_row)?;
        let len = |row: &u32| offsets[*row as usize + 1] - offsets[*row as usize];
        let products = |rows: &Range<usize>| {
            of_a[nonzeros_of(rows, a.local().offsets())].iter().map(len).sum::<u64>()
        };
        let mut exchange = Exchange::with_limit(limit);
        let fetch = Fetch::new::<T>(&mut exchange, routes, rank, (&needed, requested), 1)?;
        // Without values to wait for, parts are worth nothing.
        let least = if fetch.arrivals.is_empty() { u64::MAX } else { least_early };
        let parts = row_parts(&ghosts.blocks, a.local().nrows(), least, &products);
        let largest = largest(parts.iter().map(|part| products(&part.rows) as usize));
        let messages_of =
            |part: &RowPart| part.needs.iter().filter_map(|q| fetch.message_of(*q)).collect();
        let waiting = Waiting::new(parts.iter().map(messages_of));
        Ok(Gathered {
            number,
            problem,
            of_a,
            largest,
            parts,
            offsets,
            columns,
            own_row: first_row(rank),
            own_at: firsts[rank],
            exchange,
            fetch,
            firsts,
            waiting,
        })
    }

    /// Bytes if every rank sent all its values of B to all others.
    pub fn oblivious<T: DistScalar, O: Index>(&self, b: &DistPattern<I, O>) -> u64 {
        (b.nnz() * (b.ranks().size() - 1) * size_of::<T>()) as u64
    }

    /// The number of values of the ranks that `of` accepts.
    fn needed(&self, of: impl Fn(usize) -> bool) -> u64 {
        let arrivals = self.fetch.arrivals.iter().filter(|(q, _)| of(*q));
        arrivals.map(|(_, arrival)| arrival.rows() as u64).sum()
    }

    /// What this rank multiplies and sends: of A·B, intermediate products and values; and how many of the products it
    /// multiplies before anything has arrived.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`](crate::Communicator).
    pub fn count<T: DistScalar, O: Index>(&self, a: &DistPattern<I, O>) -> Result<(Counted, u64)> {
        let (ranks, value) = (a.ranks(), size_of::<T>() as u64);
        let hosts = ranks.hosts()?;
        let len = |row: &u32| self.offsets[*row as usize + 1] - self.offsets[*row as usize];
        let products = |nonzeros: &[u32]| nonzeros.iter().map(len).sum::<u64>();
        let nonzeros = products(&self.of_a);
        let of_part = |part: usize| self.parts[part].nonzeros(a.local().offsets());
        let early = self.waiting.early().map(|part| products(&self.of_a[of_part(part)])).sum();
        let mut counted = Counted { nonzeros, ..Counted::default() };
        counted.add_messages(&self.exchange, ranks.rank(), hosts);
        counted.rows_of_b_bytes = self.needed(|_| true) * value;
        counted.direct_network_bytes = self.needed(|q| hosts.differ(q, ranks.rank())) * value;
        Ok((counted, early))
    }
}

/// Whether values of a rank that has so many are forwarded within hosts: their positions are u32 then. Others are all
/// sent directly.
pub fn is_relayed(values: usize) -> bool {
    u32::try_from(values).is_ok()
}

/// What `of` gives for the rows that each rank needs.
fn of_rows<W, Ws: IntoIterator<Item = W>>(
    requested: &[Vec<u32>],
    of: impl Fn(usize) -> Ws,
) -> Vec<Vec<W>> {
    requested.iter().map(|rows| rows.iter().flat_map(|r| of(*r as usize)).collect()).collect()
}

fn check<I: Index, O: Index>(
    a: &DistPattern<I, O>,
    b: &DistPattern<I, O>,
    problem: &Problem,
) -> Result<()> {
    supports(problem, a.ranks().size())?;
    if problem.operation != Operation::Spgemm
        || problem.transpose_a
        || problem.output != problem.dtype
    {
        return Err(Error::Unsupported {
            problem: problem.to_string(),
            backend: "the SpGEMM over ranks".into(),
            reason: "it computes A*B in the type of the operands".into(),
            nearest: "DistPattern::spgemm without transposition".into(),
        });
    }
    if !a.ranks().same(b.ranks()) {
        return Err(Error::Argument {
            name: "B",
            found: format!("a pattern over {:?}", b.ranks()),
            expected: "one over the ranks of A".into(),
        });
    }
    if a.columns() != b.rows() {
        return Err(Error::Shape {
            op: "spgemm",
            expected: format!("rows of B spread as columns of A: {}", a.columns().description()),
            found: b.rows().description(),
        });
    }
    Ok(())
}
