//! SpMM over ranks: C = scale(α, op(A)·B) ⊕ scale(β, C).

mod build;
mod copies;
mod gpu;
mod partial_rows;
mod rows;
mod run;

use gustav_core::{
    Batch, Buffer, DType, Dense, DenseView, DenseViewMut, Error, Index, Operation, PatternId,
    Problem, Result, Scalar, Scale, Values, with_pattern,
};
use gustav_cpu::{Config, CpuScalar, Threads};
use gustav_plan::Choice;

use crate::any_pattern::AnyDistPattern;
use crate::block_description::{RemoteBlock, describe};
use crate::blocks::Blocks;
use crate::device::{arguments, supports};
use crate::exchange::{Exchange, all_to_all};
use crate::fetch::{Forwards, Section};
use crate::gpu::chunks;
use crate::local::{DistScalar, Product, is_widened, local_rows};
use crate::ranks::Arguments;
use crate::routes::Routes;
use crate::volume::oblivious;
use crate::waiting::Waiting;
use crate::{Device, DistPattern, Explanation, ProductShape, Ranks};
use build::Builder;
pub use copies::{Copies, CopiesCandidate, GpuReplicatedSpmmPlan, Replicated, ReplicatedSpmmPlan};
pub use gpu::GpuSpmmPlan;
use partial_rows::PartialRows;
use rows::WholeRows;

/// A plan for sparse × dense products with one pattern over ranks, made by `pattern.spmm(columns).plan(&device)`.
///
/// Ranks have exchanged indices when it is made. An execution sends rows of B and partial rows of C, multiplies the
/// rank's own block meanwhile, and then what arrives: in the order of arrival or, where the request is deterministic,
/// in the order of ranks and with one level, which gives the same bits in every run on the same number of ranks,
/// whatever hosts they are on.
///
/// Making and executing it are collective. When arguments differ between ranks or are wrong on one, every rank gets
/// an error that names the rank, and nothing is sent.
pub struct SpmmPlan<T: DistScalar> {
    ranks: Ranks,
    number: u64,
    problem: Problem,
    pattern: PatternId,
    nnz: usize,
    rows_of_b: usize,
    rows_of_c: usize,
    threads: Threads,
    own: Own<T::Accum>,
    peers: Vec<Peer<Product<T::Accum>>>,
    exchange: Exchange,
    /// What each incoming message holds.
    incoming: Vec<Contents>,
    /// The products of peers, which wait for messages.
    products: Waiting,
    /// Messages of rows of B that go to another host once.
    relays: Vec<Send>,
    /// Messages of rows of B that this rank forwards.
    forwards: Forwards,
    partial_rows: PartialRows<Vec<u32>>,
    workspace: Workspace<T::Accum>,
    /// Whether a product of some rank can fail while others communicate: on a GPU.
    fallible: bool,
    explanation: Explanation,
}

/// What is multiplied for this rank's rows of C, besides products with peers.
enum Own<A: CpuScalar> {
    /// Nonzeros whose columns this rank has.
    Block(Product<A>),
    /// All nonzeros of this rank's rows.
    Rows(WholeRows<A>),
}

impl<A: CpuScalar> Own<A> {
    fn products(&self) -> impl Iterator<Item = &Product<A>> {
        let (block, rows) = match self {
            Own::Block(product) => (Some(product), None),
            Own::Rows(rows) => (None, Some(rows)),
        };
        block.into_iter().chain(rows.into_iter().flat_map(WholeRows::products))
    }

    fn choice(&self) -> &Choice<Config> {
        match self {
            Own::Block(product) => product.choice(),
            Own::Rows(rows) => rows.largest().choice(),
        }
    }

    /// Nonzeros that are multiplied before anything has arrived.
    fn early(&self) -> u64 {
        match self {
            Own::Block(product) => product.nnz() as u64,
            Own::Rows(rows) => rows.early(),
        }
    }

    fn bytes(&self) -> usize {
        let of_b = match self {
            Own::Block(_) => 0,
            Own::Rows(rows) => rows.bytes(),
        };
        self.products().map(Product::bytes).sum::<usize>() + of_b
    }
}

/// What an incoming message holds besides rows of B that are multiplied here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    /// Operands of the peer at this position: values after rows of B.
    Operands(usize),
    /// Partial rows of C of the peer at this position.
    Partial(usize),
    /// Rows of B, some of which are to be forwarded.
    ToRelay,
    /// Rows of B that were forwarded.
    Forwarded,
    /// Partial rows of C that this rank adds to its own.
    ToReduce,
}

/// What passes between this rank and another.
struct Peer<P> {
    send: Option<Send>,
    /// What is multiplied here with the rows of B that are received.
    received: Option<Received<P>>,
    /// What is multiplied here for that rank.
    served: Option<Served<P>>,
    partial: Option<Partial>,
}

/// Operands that go to another rank: rows of B, then values at these positions.
struct Send {
    message: usize,
    rows: Vec<u32>,
    values: Vec<usize>,
}

/// A product with rows of B that are received.
struct Received<P> {
    product: P,
    of_b: Section,
    /// Rows of C that it adds to; `None` for all of them, to which it adds directly.
    rows: Option<Vec<u32>>,
    values: Option<ReceivedValues>,
}

/// A product with this rank's B that gives partial rows of another rank's C.
struct Served<P> {
    product: P,
    /// Where these are in an outgoing message.
    to: Section,
    values: Option<ReceivedValues>,
}

/// Values of A that are received: those of a message from this one on. Products without them have this rank's.
#[derive(Clone, Copy)]
struct ReceivedValues {
    message: usize,
    first: usize,
}

/// Partial rows of C that are received.
struct Partial {
    message: usize,
    rows: Vec<u32>,
}

/// Memory besides messages.
struct Workspace<A: CpuScalar> {
    /// Values of a product.
    values: Buffer<A>,
    /// Partial rows of C.
    partial: Buffer<A>,
    /// Rows of B that were received, in the type of sums, where that is another.
    received: Buffer<A>,
    /// This rank's rows of B, likewise.
    b: Option<Dense<A>>,
    /// Sums, where C cannot hold them or α is applied to them later.
    sums: Option<Dense<A>>,
}

impl<A: CpuScalar> Workspace<A> {
    fn bytes(&self) -> usize {
        let dense = [&self.b, &self.sums].into_iter().flatten().map(|m| size_of_val(m.data()));
        let buffers = [&self.values, &self.partial, &self.received];
        dense.chain(buffers.iter().map(|b| size_of_val(&b[..]))).sum()
    }
}

/// What ranks know of each other's part of a product.
struct Described {
    number: u64,
    problem: Problem,
    shape: ProductShape,
    blocks: Blocks,
    /// What every rank describes of its block whose columns this rank has.
    remote: Vec<Option<RemoteBlock>>,
    /// Those of rows of B.
    routes: Routes,
    /// Those of partial rows of C, which go in the opposite direction: to the rank that has a row, through one that
    /// adds them up.
    sums: Routes,
    /// Whether some rank computes on a GPU.
    any_gpu: bool,
    /// The most bytes of a chunk of a message.
    limit: usize,
}

impl Described {
    /// Checks `problem` and exchanges what blocks are made of; `on_gpu` says that this rank computes on a GPU.
    /// Collective.
    fn new(
        pattern: &AnyDistPattern<'_>,
        dtype: DType,
        problem: &Problem,
        device: &Device,
        on_gpu: Result<bool>,
    ) -> Result<Self> {
        let ranks = pattern.ranks;
        let number = ranks.next_plan();
        let (index_type, offset_type) = pattern.local.index_types();
        let problem = Problem { dtype, output: dtype, index_type, offset_type, ..problem.clone() };
        let checked = supports(&problem, ranks.size()).and_then(|()| {
            problem.check_a(pattern.rows.rows(), pattern.columns.rows(), pattern.nnz)?;
            match problem.operation {
                Operation::Spmm | Operation::Spmv => Ok(()),
                _ => Err(Error::Unsupported {
                    problem: problem.to_string(),
                    backend: "the SpMM over ranks".into(),
                    reason: "it multiplies a sparse and a dense matrix".into(),
                    nearest: "DistPattern::spmm".into(),
                }),
            }
        });
        let checked = checked.and(on_gpu);
        let on_gpu = ranks.agree_on(arguments(number, &problem, pattern, device), checked)?;
        ranks.count_plan();

        let transpose = problem.transpose_a;
        let shape = ProductShape {
            columns: problem.columns,
            dtype,
            transpose_a: transpose,
            communication: device.communication,
        };
        let choose = |r: usize, c: usize, e: &[(u32, u32)]| shape.choose(r, c, e);
        let blocks = with_pattern!(&pattern.local, |local| {
            let local = local.view();
            Blocks::new(&local, 0..local.nrows(), pattern.columns, ranks.rank(), &choose)
        });
        let described = blocks.and_then(|blocks| {
            let mut words: Vec<Vec<u32>> = vec![Vec::new(); ranks.size()];
            for block in &blocks.others {
                words[block.peer] = describe(block)?;
            }
            Ok((blocks, words))
        });
        let (blocks, words) = ranks.together(described)?;
        let words: Vec<&[u32]> = words.iter().map(Vec::as_slice).collect();
        let words = all_to_all(ranks, &words)?;
        let columns = pattern.columns.count(ranks.rank());
        let read = |(q, words): (usize, &Vec<u32>)| match words.is_empty() {
            true => Ok(None),
            false => RemoteBlock::read(words, (ranks.rank(), q), columns).map(Some),
        };
        let remote = words.iter().enumerate().map(read).collect::<Result<Vec<_>>>();
        let remote = ranks.together(remote)?;
        // By rank: columns of this one that are multiplied there, and rows of this one that are.
        let columns =
            |of: &Option<RemoteBlock>| of.iter().flat_map(|f| f.columns.clone()).collect();
        let columns_there = || remote.iter().map(columns).collect();
        let rows_there = || {
            let mut rows: Vec<Vec<u32>> = vec![Vec::new(); ranks.size()];
            blocks.others.iter().for_each(|block| rows[block.peer] = block.there.rows.clone());
            rows
        };
        // The order of sums is that of ranks alone, wherever they are.
        let any = shape.columns > 0 && !problem.deterministic;
        let by_columns = Routes::new(ranks, device, any, columns_there)?;
        let by_rows = Routes::new(ranks, device, any, rows_there)?;
        let (routes, sums) = if transpose { (by_rows, by_columns) } else { (by_columns, by_rows) };
        let (any_gpu, limit) = chunks(ranks, on_gpu, &problem)?;
        Ok(Described { number, problem, shape, blocks, remote, routes, sums, any_gpu, limit })
    }

    /// Bytes if every rank sent all its rows of B to all others.
    fn oblivious(&self, pattern: &AnyDistPattern<'_>) -> u64 {
        let of_b = if self.shape.transpose_a { pattern.rows } else { pattern.columns };
        oblivious(of_b, &self.shape)
    }
}

impl<T: DistScalar> SpmmPlan<T> {
    /// Plans `problem` for `pattern`. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::Unsupported`] for what products over ranks do not have, [`Error::RanksDiffer`],
    /// [`Error::OtherRank`], and as [`gustav_cpu::SpmmPlan::new`].
    pub fn new<I: Index, O: Index>(
        pattern: &DistPattern<I, O>,
        problem: &Problem,
        device: &Device,
    ) -> Result<Self> {
        Self::of_any(&pattern.into(), problem, device)
    }

    fn of_any(pattern: &AnyDistPattern<'_>, problem: &Problem, device: &Device) -> Result<Self> {
        let ranks = pattern.ranks;
        let _lock = ranks.lock();
        let described = Described::new(pattern, T::DTYPE, problem, device, Ok(false))?;
        let all = described.oblivious(pattern);
        let built = ranks.hosts().and_then(|hosts| {
            Builder::new(pattern, &described).build(&device.options, described, hosts)
        });
        Explanation::complete(ranks, built, all, |plan: &mut Self| &mut plan.explanation)
    }

    /// What is computed, what ranks send, and how work is balanced.
    pub fn explain(&self) -> &Explanation {
        &self.explanation
    }

    /// Bytes that the plan holds on this rank besides its pattern.
    pub fn workspace_bytes(&self) -> usize {
        self.explanation.workspace_bytes
    }

    /// C = scale(α, op(A)·B) ⊕ scale(β, C), with this rank's values of A, rows of B and rows of C: a
    /// [`DistCsr`](crate::DistCsr) and [`DistDense`](crate::DistDense), or arrays of this rank. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::Pattern`] for values of another pattern, [`Error::Length`], [`Error::Shape`],
    /// [`Error::OutOfMemory`] for sums at the first α that is not the semiring's one, [`Error::OtherRank`],
    /// [`Error::RanksDiffer`] when α, β or the plan are not the same; also when a rank's GPU fails meanwhile, and C is
    /// undefined then. [`Error::Communication`] may be of this rank alone: the others wait for it then, until it ends.
    pub fn execute<'v>(
        &mut self,
        values: impl Into<Values<'v, T>>,
        b: impl Into<DenseView<'v, T>>,
        c: impl Into<DenseViewMut<'v, T>>,
        scale: impl Into<Scale<T::Accum>>,
    ) -> Result<()> {
        let ranks = self.ranks.clone();
        let _lock = ranks.lock();
        self.execute_locked(Ok(values.into()), b.into(), c.into(), scale.into())
    }

    /// The same, where the caller keeps other threads of this rank from communicating; with an error in place of values
    /// it is one of all ranks.
    fn execute_locked(
        &mut self,
        values: Result<Values<'_, T>>,
        b: DenseView<'_, T>,
        mut c: DenseViewMut<'_, T>,
        scale: Scale<T::Accum>,
    ) -> Result<()> {
        let ranks = self.ranks.clone();
        let factors = scale.over(self.problem.semiring);
        let ready = values.and_then(|values| self.prepare(values, &b, &mut c, factors.0));
        let (key, arguments) = call(&self.problem, self.number, factors);
        let (values, b, mut c) = ranks.agree(&key, arguments, ready)?;
        self.multiply_agreed(values, &b, &mut c, factors)
    }

    /// The product, once all ranks have agreed on it. Where the product of a rank can fail after that, ranks agree
    /// again.
    fn multiply_agreed(
        &mut self,
        values: &[T],
        b: &DenseView<'_, T>,
        c: &mut DenseViewMut<'_, T>,
        factors: (T::Accum, T::Accum),
    ) -> Result<()> {
        let (ranks, threads) = (self.ranks.clone(), self.threads.clone());
        // Packing and gathering as well.
        let multiplied = threads.run(|| self.multiply(values, b, c, factors));
        let multiplied = self.exchange.complete(ranks.communicator(), multiplied);
        if self.fallible { ranks.together(multiplied) } else { multiplied }
    }

    /// The operands in the planned layouts, if they fit.
    fn prepare<'v, 'c>(
        &mut self,
        values: Values<'v, T>,
        b: &DenseView<'v, T>,
        c: &'c mut DenseViewMut<'_, T>,
        alpha: T::Accum,
    ) -> Result<(&'v [T], DenseView<'v, T>, DenseViewMut<'c, T>)> {
        let p = &self.problem;
        let values = values.fit("A", self.pattern, self.nnz)?;
        let b = rows_of_b(p, self.rows_of_b).matrix(b, 0)?;
        let c = rows_of_c(p, self.rows_of_c).matrix_mut(c, 0)?;
        self.exchange.check_idle(self.ranks.rank())?;
        // Scaling the parts of a sum is not scaling the sum: not in max-times, not where sums overflow.
        if (alpha != p.semiring.one() || is_widened(T::DTYPE)) && self.workspace.sums.is_none() {
            self.workspace.sums = Some(Dense::zeros(self.rows_of_c, p.columns, p.layout_c)?);
        }
        Ok((values, b, c))
    }
}

/// What has to be the same on every rank for an execution by plan `number`: as a key, and in words.
fn call<A: Scalar>(
    problem: &Problem,
    number: u64,
    (alpha, beta): (A, A),
) -> ([u64; 3], impl Fn() -> Arguments) {
    let bits = |f: A| f.to_f64().to_bits() ^ (f.to_i64() as u64).rotate_left(32);
    let operation = problem.operation;
    let arguments = move || {
        vec![
            ("call", format!("{operation} by plan {number}")),
            ("alpha", alpha.to_string()),
            ("beta", beta.to_string()),
        ]
    };
    ([number, bits(alpha), bits(beta)], arguments)
}

/// This rank's rows of B.
fn rows_of_b(problem: &Problem, rows: usize) -> Batch {
    local_rows(problem, "B on this rank", rows, problem.layout_b)
}

/// This rank's rows of C.
fn rows_of_c(problem: &Problem, rows: usize) -> Batch {
    local_rows(problem, "C on this rank", rows, problem.layout_c)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use gustav_core::{Csr, DType, Dense, Error, Layout};
    use gustav_cpu::{Options, Threads};

    use super::{Described, SpmmPlan};
    use crate::{Communication, Device, DistPattern, Hosts, Partition, Ranks};

    const RANKS: usize = 3;
    const N: usize = 4;

    /// What every one of the ranks gives, within a minute: a rank that waits for ever fails the test.
    fn on_ranks<R: Send + 'static>(work: impl Fn(Ranks) -> R + Send + Sync + 'static) -> Vec<R> {
        let (done, results) = mpsc::channel();
        let work = Arc::new(work);
        // Two of them share a host, so that rows of B are forwarded.
        let ranks = Ranks::in_process_on(&Hosts::of_consecutive(RANKS, 2), 100);
        for (rank, of_rank) in ranks.into_iter().enumerate() {
            let (done, work) = (done.clone(), work.clone());
            std::thread::spawn(move || done.send((rank, work(of_rank))));
        }
        let mut found: Vec<Option<R>> = (0..RANKS).map(|_| None).collect();
        for _ in 0..RANKS {
            let (rank, result) =
                results.recv_timeout(Duration::from_secs(60)).expect("a rank waits for another");
            found[rank] = Some(result);
        }
        found.into_iter().flatten().collect()
    }

    /// This rank's two rows of a matrix without zeros.
    fn pattern(ranks: &Ranks) -> DistPattern {
        let size = 2 * RANKS;
        let indices = (0..2).flat_map(|_| 0..size as u32).collect::<Vec<_>>();
        let offsets = vec![0, size as u32, 2 * size as u32];
        let local = Csr::<f32>::new(2, size, offsets, indices, vec![1.0; 2 * size]).unwrap();
        DistPattern::new(ranks, &Partition::even(size, RANKS), local.pattern()).unwrap()
    }

    fn is_known(rank: usize, found: &Error, own: impl Fn(&Error) -> bool) {
        let other = matches!(found, Error::OtherRank { rank: 1, .. });
        assert!(if rank == 1 { own(found) } else { other }, "rank {rank}: {found}");
    }

    #[test]
    fn an_error_of_a_device_while_planning_is_on_every_rank() {
        let found = on_ranks(|ranks| {
            let a = pattern(&ranks);
            let lost = Error::Device { action: "taking memory", reason: "it is lost".into() };
            let here = if ranks.rank() == 1 { Err(lost) } else { Ok(false) };
            let problem = a.spmm(N).problem;
            Described::new(&(&a).into(), DType::F32, &problem, &Device::default(), here).map(drop)
        });
        for (rank, found) in found.into_iter().enumerate() {
            is_known(rank, &found.unwrap_err(), |e| matches!(e, Error::Device { .. }));
        }
    }

    /// The product of rank 1 fails once the ranks have agreed, as on a GPU that is lost: with a C of another shape.
    #[test]
    fn an_error_while_multiplying_is_on_every_rank() {
        for deterministic in [false, true] {
            for communication in Communication::ALL {
                let results = on_ranks(move |ranks| fails(&ranks, deterministic, communication));
                for (rank, (failed, c)) in results.into_iter().enumerate() {
                    is_known(rank, &failed, |e| matches!(e, Error::Shape { .. }));
                    // All messages were completed: the plan is as good as before.
                    assert_eq!(c, [2.0 * RANKS as f32; 2 * N], "{communication:?}");
                }
            }
        }
    }

    /// The error of an execution that fails on rank 1, and the C of the next.
    fn fails(
        ranks: &Ranks,
        deterministic: bool,
        communication: Communication,
    ) -> (Error, Vec<f32>) {
        let threads = Threads::new(1, false).unwrap();
        let device =
            Device::cpu(Options { threads, ..Options::default() }).communication(communication);
        let request = pattern(ranks).spmm(N).deterministic(deterministic);
        let mut plan: SpmmPlan<f32> = request.plan(&device).unwrap();
        plan.fallible = true;
        let values = [1.0; 4 * RANKS];
        let b = Dense::from_row_major(2, N, vec![1.0; 2 * N]).unwrap();
        let columns = if ranks.rank() == 1 { N - 1 } else { N };
        let mut wrong = Dense::zeros(2, columns, Layout::RowMajor).unwrap();
        let failed = plan
            .multiply_agreed(&values, &b.view(), &mut wrong.view_mut(), (1.0, 0.0))
            .unwrap_err();
        let mut c = Dense::zeros(2, N, Layout::RowMajor).unwrap();
        plan.execute(&values[..], &b, &mut c, ()).unwrap();
        (failed, c.data().to_vec())
    }
}
