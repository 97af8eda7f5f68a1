//! SpMV: y = α·op(A)·x ⊕ β·y, A in CSR.
//!
//! One file per algorithm. `lanes` holds the vector instruction sets, `rows` the sums over CSR rows
//! that the schedules share, `partitions` the rows cut between workers, `epilogue` α and β,
//! `compiled` the kernels that are compiled in this crate rather than in the user's.

mod compiled;
mod compressed_index;
mod csb;
mod epilogue;
mod lanes;
mod merge_path;
mod nonzero_split;
mod partitions;
mod row_split;
mod rows;

use std::ops::Range;
use std::sync::Arc;

use gustav_core::{
    AnyPattern, DType, Error, Index, IndexSlice, IndexType, Operation, Ops, PatternId, PatternRef,
    PatternView, PlusTimes, Problem, Result, Scalar, Scale, Semiring, TransposedPattern, Values,
    with_pattern,
};
use gustav_plan::heuristics::{cpu_spmv, mean_row_length};
use gustav_plan::{Algorithm, Choice, Chooser, RowStats};

use crate::arch::Isa;
use crate::catalog::{Entry, autotune_elsewhere};
use crate::offsets::Offsets;
use crate::profile::profile;
use crate::types::CpuScalar;
use crate::{Config, Options, Threads};
use compressed_index::{Columns, Compressed};
use epilogue::{Epilogue, Output};
use partitions::{Partitions, Parts};
use rows::{LONGEST, Operands, has_vectors};

/// The SpMV algorithms of this backend.
pub fn catalog() -> &'static [Entry] {
    &CATALOG
}

static CATALOG: [Entry; 5] = [
    Entry { algorithm: Algorithm::RowSplit, supports: any },
    Entry { algorithm: Algorithm::NonzeroSplit, supports: any },
    Entry { algorithm: Algorithm::MergePath, supports: any },
    Entry { algorithm: Algorithm::Csb, supports: any },
    Entry { algorithm: Algorithm::CompressedIndex, supports: in_vectors },
];

fn any(problem: &Problem) -> Result<()> {
    if problem.operation == Operation::Spmv {
        problem.without_output("the CPU's SpMV")?;
        return problem.without_epilogue("the CPU's SpMV");
    }
    Err(Error::Unsupported {
        problem: problem.to_string(),
        backend: "the CPU's SpMV".into(),
        reason: "it multiplies a matrix by one vector".into(),
        nearest: "Problem::spmv".into(),
    })
}

fn in_vectors(problem: &Problem) -> Result<()> {
    any(problem)?;
    let refuse = |reason: &str, nearest: Algorithm| Error::Unsupported {
        problem: problem.to_string(),
        backend: "compressed-index on the CPU".into(),
        reason: reason.into(),
        nearest: nearest.name().into(),
    };
    if problem.transpose_a {
        return Err(refuse("values are read in the order of A's rows", Algorithm::Csb));
    }
    let vectors = matches!(problem.dtype, DType::F32 | DType::F64)
        && problem.semiring == Semiring::PlusTimes
        && problem.index_type == IndexType::U32
        && problem.cols <= LONGEST;
    if !vectors {
        let reason = "only vector kernels read it: plus-times over f32 or f64, u32 column indices";
        return Err(refuse(reason, Algorithm::MergePath));
    }
    Ok(())
}

/// A plan for y = scale(α, op(A)·x) ⊕ scale(β, y) over the semiring of its [`Problem`], for one
/// pattern of A, which it holds or borrows, and any values.
///
/// Results are the same to the bit from run to run and for any number of threads, whether
/// [`Problem::deterministic`] is set or not.
pub struct SpmvPlan<'a, T: CpuScalar> {
    problem: Problem,
    choice: Choice<Config>,
    pattern: PatternId,
    method: Box<dyn Method<T> + 'a>,
}

/// A planned product, whatever the types of its indices.
trait Method<T: CpuScalar>: Send {
    /// Bytes that it holds.
    fn bytes(&self) -> usize;

    /// y = scale(α, op(A)·x) ⊕ scale(β, y), for arrays of the planned lengths.
    fn execute(&mut self, values: &[T], x: &[T], y: &mut [T], factors: (T::Accum, T::Accum));
}

impl<'a, T: CpuScalar> SpmvPlan<'a, T> {
    /// Analyses `pattern` and chooses the algorithm. `pattern` is a
    /// [`Pattern`](gustav_core::Pattern), of which the plan holds a clone, or a view, which it
    /// borrows.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when the algorithm named in `options` cannot compute `problem` or
    /// the machine lacks the instruction set named there, [`Error::Pattern`] when `problem` was
    /// made for a matrix of another size, [`Error::OutOfMemory`].
    pub fn new<I: Index, O: Index>(
        pattern: impl Into<PatternRef<'a, I, O>>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        T::plan_spmv(pattern.into().into(), problem, options)
    }

    pub(crate) fn of_any(
        pattern: AnyPattern<'a>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let problem = problem.bound::<T>(&pattern)?;
        let id = pattern.id();
        let (choice, method): (_, Box<dyn Method<T> + 'a>) = with_pattern!(pattern, |p| {
            let (choice, planned) = Planned::<T, _, _>::new(p, &problem, options)?;
            (choice, Box::new(planned))
        });
        Ok(SpmvPlan { problem, choice, pattern: id, method })
    }

    /// The chosen algorithm and configuration, and the reason.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds beside the caller's arrays.
    pub fn workspace_bytes(&self) -> usize {
        self.method.bytes()
    }

    /// Computes y = scale(α, op(A)·x) ⊕ scale(β, y) with `values` of A (a matrix of the plan's
    /// pattern, or a slice in the order of its nonzeros); allocates nothing.
    ///
    /// # Errors
    /// [`Error::Pattern`] for values of another pattern, [`Error::Length`] for another number of
    /// them, [`Error::Shape`] when `x` or `y` is of the wrong length.
    pub fn execute<'v>(
        &mut self,
        values: impl Into<Values<'v, T>>,
        x: &[T],
        y: &mut [T],
        scale: impl Into<Scale<T::Accum>>,
    ) -> Result<()> {
        let values = values.into().fit("A", self.pattern, self.problem.nnz)?;
        check_length("x", self.problem.inner(), x.len())?;
        check_length("y", self.problem.output_rows(), y.len())?;
        self.method.execute(values, x, y, scale.into().over(self.problem.semiring));
        Ok(())
    }
}

/// The state of an algorithm for a pattern.
struct Planned<'a, T: CpuScalar, I: Index, O: Index> {
    semiring: Semiring,
    isa: Isa,
    threads: Threads,
    pattern: PatternRef<'a, I, O>,
    transposed: Option<Arc<TransposedPattern<I, O>>>,
    state: State<T::Accum, O>,
}

enum State<A, O: Index> {
    Rows,
    Partitions(Partitions<A>),
    Blocks(csb::Blocks<A, O>),
    Compressed(Compressed<A>),
}

impl<'a, T: CpuScalar, I: Index, O: Index> Planned<'a, T, I, O> {
    fn new(
        pattern: PatternRef<'a, I, O>,
        problem: &Problem,
        options: &Options,
    ) -> Result<(Choice<Config>, Self)> {
        let isa = options.isa()?;
        let a = pattern.view();
        let (algorithm, reason) = choose(&a, problem, options)?;
        let transposed = (problem.transpose_a && algorithm != Algorithm::Csb)
            .then(|| pattern.transposed())
            .transpose()?;
        let offsets = transposed.as_ref().map_or(a.offsets(), |t| t.pattern().offsets());
        let threads = options.threads.count();
        let state = match algorithm {
            Algorithm::NonzeroSplit => State::Partitions(nonzero_split::plan(offsets, threads)?),
            Algorithm::MergePath => State::Partitions(merge_path::plan(offsets, threads)?),
            Algorithm::Csb => {
                State::Blocks(csb::Blocks::new(&a, problem.transpose_a, &options.threads)?)
            }
            Algorithm::CompressedIndex => {
                let IndexSlice::U32(indices) = IndexSlice::new(a.indices()) else {
                    return Err(no_algorithm(problem, algorithm));
                };
                let offsets = IndexSlice::new(a.offsets());
                State::Compressed(Compressed::new(offsets, indices, T::DTYPE, isa, threads)?)
            }
            _ => State::Rows,
        };
        let tile = match &state {
            State::Blocks(blocks) => Some(blocks.block()),
            _ => None,
        };
        let config = Config { isa, threads, tile, streaming: false, prefetch_distance: 0 };
        let (semiring, threads) = (problem.semiring, options.threads.clone());
        let planned = Planned { semiring, isa, threads, pattern, transposed, state };
        Ok((Choice { algorithm, config, reason }, planned))
    }

    fn execute_over<S: Ops<T::Accum>>(
        &mut self,
        values: &[T],
        x: &[T],
        y: &mut [T],
        factors: (T::Accum, T::Accum),
    ) {
        let s = S::of(self.semiring);
        let epilogue = Epilogue::new(s, factors);
        let (pattern, source) = match &self.transposed {
            None => (self.pattern.view(), None),
            Some(t) => (t.pattern().view(), Some(Offsets::new(t.permutation()))),
        };
        let operands = Operands {
            offsets: Offsets::new(pattern.offsets()),
            indices: pattern.indices(),
            values,
            source,
            x,
        };
        let isa = self.isa;
        match &mut self.state {
            State::Rows => row_split::execute(&self.threads, isa, &operands, &epilogue, y),
            State::Partitions(partitions) => {
                let y = Output::new(y);
                let job = Job { isa, operands, epilogue, columns: None, y };
                partitions.execute(&self.threads, &job);
            }
            State::Blocks(blocks) => {
                blocks.execute(&self.threads, values, x, &epilogue, y);
            }
            State::Compressed(compressed) => {
                let (y, columns) = (Output::new(y), Some(&compressed.columns));
                let job = Job { isa, operands, epilogue, columns, y };
                compressed.partitions.execute(&self.threads, &job);
            }
        }
    }
}

impl<T: CpuScalar, I: Index, O: Index> Method<T> for Planned<'_, T, I, O> {
    fn bytes(&self) -> usize {
        let state = match &self.state {
            State::Rows => 0,
            State::Partitions(partitions) => partitions.bytes(),
            State::Blocks(blocks) => blocks.bytes(),
            State::Compressed(compressed) => compressed.bytes(),
        };
        state + self.transposed.as_ref().map_or(0, |t| t.bytes())
    }

    fn execute(&mut self, values: &[T], x: &[T], y: &mut [T], factors: (T::Accum, T::Accum)) {
        if self.semiring == Semiring::PlusTimes && !T::DTYPE.is_integer() {
            return self.execute_over::<PlusTimes>(values, x, y, factors);
        }
        self.execute_over::<Semiring>(values, x, y, factors);
    }
}

/// A product in partitions: straight from CSR, or from compressed columns.
struct Job<'a, T: Scalar, I, S> {
    isa: Isa,
    operands: Operands<'a, T, I>,
    epilogue: Epilogue<T::Accum, S>,
    columns: Option<&'a Columns>,
    y: Output<'a, T>,
}

impl<T: Scalar, I: Index, S: Ops<T::Accum>> Parts<T::Accum> for Job<'_, T, I, S> {
    fn dot(&self, entries: Range<usize>) -> T::Accum {
        self.operands.dot(self.isa, self.epilogue.semiring, entries)
    }

    fn whole(&self, partition: usize, rows: Range<usize>) {
        let Job { isa, operands, epilogue, columns, y } = self;
        // SAFETY: partitions hold different rows of y; columns were encoded for vectors of `isa`,
        // and alone bound the reads of A and x.
        unsafe {
            match columns {
                Some(columns) if const { has_vectors::<T, I, S>() } => {
                    columns.multiply(*isa, partition, operands, epilogue, *y);
                }
                _ => operands.multiply(*isa, rows, epilogue, *y),
            }
        }
    }

    fn add(&self, a: T::Accum, b: T::Accum) -> T::Accum {
        self.epilogue.semiring.add(a, b)
    }

    fn finish(&self, row: usize, sum: T::Accum) {
        // SAFETY: a row of y, which no other thread accesses.
        unsafe { self.epilogue.store(self.y, row, sum) }
    }

    fn empty(&self) -> T::Accum {
        self.epilogue.semiring.zero()
    }
}

fn choose<I: Index, O: Index>(
    a: &PatternView<'_, I, O>,
    problem: &Problem,
    options: &Options,
) -> Result<(Algorithm, String)> {
    any(problem)?;
    match options.chooser {
        Chooser::Named(algorithm) => {
            let entry = CATALOG.iter().find(|e| e.algorithm == algorithm);
            let entry = entry.ok_or_else(|| no_algorithm(problem, algorithm))?;
            (entry.supports)(problem)?;
            Ok((algorithm, "named by the caller".into()))
        }
        Chooser::MeanRowLength => Ok(mean_row_length::choose(&RowStats::new(a))),
        Chooser::Autotune | Chooser::Predictor => Err(autotune_elsewhere(problem)),
        _ => {
            let profile = profile(options.threads.count(), options.isa()?);
            Ok(cpu_spmv::choose(&RowStats::new(a), problem, &profile))
        }
    }
}

fn no_algorithm(problem: &Problem, algorithm: Algorithm) -> Error {
    Error::Unsupported {
        problem: problem.to_string(),
        backend: format!("{algorithm} on the CPU"),
        reason: "it is not an algorithm for this product".into(),
        nearest: CATALOG.map(|e| e.algorithm.name()).join(", "),
    }
}

fn check_length(name: &str, expected: usize, found: usize) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Shape {
        op: "spmv",
        expected: format!("{name} of length {expected}"),
        found: format!("length {found}"),
    })
}
