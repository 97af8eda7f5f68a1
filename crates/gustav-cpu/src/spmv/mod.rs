//! SpMV: y = α·op(A)·x ⊕ β·y, A in CSR.
//!
//! One file per algorithm. `lanes` holds the vector instruction sets, `rows` the sums over CSR
//! rows that the schedules share, `shares` the rows cut between workers, `epilogue` α and β,
//! `compiled` what is compiled in this crate rather than in the user's.

mod compiled;
mod compressed_index;
mod csb;
mod epilogue;
mod lanes;
mod merge_path;
mod nonzero_split;
mod row_split;
mod rows;
mod shares;

use std::ops::Range;

use gustav_core::{
    Buffer, CsrView, DType, Error, Index, IndexSlice, IndexType, Operation, Problem, Result,
    Scalar, Semiring, SemiringKind,
};
use gustav_plan::heuristics::{cpu_spmv, mean_row_length};
use gustav_plan::{Algorithm, Choice, Chooser, RowStats};

use crate::arch::Isa;
use crate::catalog::{Entry, autotune_elsewhere};
use crate::fingerprint::Fingerprint;
use crate::{Config, Options, Threads};
use compressed_index::{Columns, Compressed};
use epilogue::{Epilogue, Output};
use rows::{LONGEST, Operands, has_vectors};
use shares::{Parts, Shares};

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
        && problem.semiring == SemiringKind::PlusTimes
        && problem.index_type == IndexType::U32
        && problem.cols <= LONGEST;
    if !vectors {
        let reason = "only vector kernels read it: plus-times over f32 or f64, u32 column indices";
        return Err(refuse(reason, Algorithm::MergePath));
    }
    Ok(())
}

/// A plan for y = α·op(A)·x ⊕ β·y, for one pattern of A and any values.
///
/// Results are the same to the bit from run to run and for any number of threads, whether
/// [`Problem::deterministic`] asks for it or not.
pub struct SpmvPlan<T: Scalar, I: Index, O: Index> {
    problem: Problem,
    choice: Choice<Config>,
    threads: Threads,
    fingerprint: Fingerprint,
    transposed: Option<Transposed<I, O>>,
    method: Method<T::Accum, O>,
}

enum Method<A, O: Index> {
    Rows,
    Shares(Shares<A>),
    Blocks(csb::Blocks<A, O>),
    Compressed(Compressed<A>),
}

/// The pattern of Aᵀ, and where its entries are in A.
struct Transposed<I, O> {
    offsets: Buffer<O>,
    indices: Buffer<I>,
    source: Buffer<O>,
}

impl<T: Scalar, I: Index, O: Index> SpmvPlan<T, I, O> {
    /// Looks at the pattern of `a` once and chooses how to multiply by it.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when the algorithm named in `options` cannot compute `problem` or
    /// the machine lacks the instruction set named there, [`Error::Pattern`] when `problem` was
    /// made for another matrix, [`Error::OutOfMemory`].
    pub fn new(a: CsrView<'_, T, I, O>, problem: &Problem, options: &Options) -> Result<Self> {
        problem.check_a(a.nrows(), a.ncols(), a.nnz())?;
        let isa = options.isa()?;
        let (algorithm, reason) = choose(&a, problem, options)?;
        let transposed = (problem.transpose_a && algorithm != Algorithm::Csb)
            .then(|| Transposed::new(&a))
            .transpose()?;
        let offsets = transposed.as_ref().map_or(a.offsets(), |t| &t.offsets);
        let threads = options.threads.count();
        let method = match algorithm {
            Algorithm::NonzeroSplit => Method::Shares(nonzero_split::plan(offsets, threads)?),
            Algorithm::MergePath => Method::Shares(merge_path::plan(offsets, threads)?),
            Algorithm::Csb => {
                Method::Blocks(csb::Blocks::new(&a, problem.transpose_a, &options.threads)?)
            }
            Algorithm::CompressedIndex => {
                let IndexSlice::U32(indices) = IndexSlice::new(a.indices()) else {
                    return Err(no_algorithm(problem, algorithm));
                };
                let offsets = IndexSlice::new(a.offsets());
                Method::Compressed(Compressed::new(offsets, indices, T::DTYPE, isa, threads)?)
            }
            _ => Method::Rows,
        };
        let tile = match &method {
            Method::Blocks(blocks) => Some(blocks.block()),
            _ => None,
        };
        let config = Config { isa, threads, tile, streaming: false, ahead: 0 };
        Ok(SpmvPlan {
            problem: problem.clone(),
            choice: Choice { algorithm, config, reason },
            threads: options.threads.clone(),
            fingerprint: Fingerprint::new(&a, options.one_call, &options.threads),
            transposed,
            method,
        })
    }

    /// What was chosen, and why.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds beside the caller's arrays.
    pub fn workspace_bytes(&self) -> usize {
        let method = match &self.method {
            Method::Rows => 0,
            Method::Shares(shares) => shares.bytes(),
            Method::Blocks(blocks) => blocks.bytes(),
            Method::Compressed(compressed) => compressed.bytes(),
        };
        method + self.transposed.as_ref().map_or(0, Transposed::bytes)
    }

    /// Computes y = α·op(A)·x ⊕ β·y; allocates nothing. `a` has the pattern that the plan was
    /// made for, and any values. β equal to the semiring's zero leaves y unread.
    ///
    /// # Errors
    /// [`Error::Pattern`] when `a` has another pattern, [`Error::Shape`] when `x` or `y` is of
    /// the wrong length.
    ///
    /// Arrays at the addresses of the last call are only sampled for this: a program that writes
    /// another pattern over the old one makes a new plan, or it may get a wrong product.
    pub fn execute<S: Semiring<T::Accum>>(
        &mut self,
        _semiring: S,
        a: CsrView<'_, T, I, O>,
        alpha: T::Accum,
        x: &[T],
        beta: T::Accum,
        y: &mut [T],
    ) -> Result<()> {
        self.fingerprint.check("A", &a, &self.threads)?;
        check_length("x", self.problem.inner(), x.len())?;
        check_length("y", self.problem.output_rows(), y.len())?;
        let epilogue = Epilogue::<_, S>::new(alpha, beta);
        let operands = match &self.transposed {
            None => Operands {
                offsets: a.offsets(),
                indices: a.indices(),
                values: a.values(),
                source: None,
                x,
            },
            Some(t) => Operands {
                offsets: &t.offsets,
                indices: &t.indices,
                values: a.values(),
                source: Some(&t.source),
                x,
            },
        };
        let isa = self.choice.config.isa;
        match &mut self.method {
            Method::Rows => row_split::execute(&self.threads, isa, &operands, &epilogue, y),
            Method::Shares(shares) => {
                let y = Output::new(y);
                let job = Job { isa, operands, epilogue, columns: None, y };
                shares.execute(&self.threads, &job);
            }
            Method::Blocks(blocks) => {
                blocks.execute(&self.threads, a.values(), x, &epilogue, y);
            }
            Method::Compressed(compressed) => {
                let (y, columns) = (Output::new(y), Some(&compressed.columns));
                let job = Job { isa, operands, epilogue, columns, y };
                compressed.shares.execute(&self.threads, &job);
            }
        }
        Ok(())
    }
}

/// A product in shares: straight from CSR, or from compressed columns.
struct Job<'a, T: Scalar, I, O, S> {
    isa: Isa,
    operands: Operands<'a, T, I, O>,
    epilogue: Epilogue<T::Accum, S>,
    columns: Option<&'a Columns>,
    y: Output<'a, T>,
}

impl<T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>> Parts<T::Accum> for Job<'_, T, I, O, S> {
    fn dot(&self, entries: Range<usize>) -> T::Accum {
        self.operands.dot::<S>(self.isa, entries)
    }

    fn whole(&self, share: usize, rows: Range<usize>) {
        let Job { isa, operands, epilogue, columns, y } = self;
        // SAFETY: shares hold different rows of y; columns were made for vectors on `isa`, and
        // bound what is read of A and x by themselves.
        unsafe {
            match columns {
                Some(columns) if const { has_vectors::<T, I, S>() } => {
                    columns.multiply(*isa, share, operands, epilogue, *y);
                }
                _ => operands.multiply(*isa, rows, epilogue, *y),
            }
        }
    }

    fn add(&self, a: T::Accum, b: T::Accum) -> T::Accum {
        S::add(a, b)
    }

    fn finish(&self, row: usize, sum: T::Accum) {
        // SAFETY: a row of y, which no other thread is given.
        unsafe { self.epilogue.store(self.y, row, sum) }
    }

    fn empty(&self) -> T::Accum {
        S::zero()
    }
}

impl<I: Index, O: Index> Transposed<I, O> {
    fn new<T: Scalar>(a: &CsrView<'_, T, I, O>) -> Result<Self> {
        let (offsets, indices, source) = a.transpose_pattern()?;
        Ok(Transposed { offsets, indices, source })
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.offsets) + size_of_val(&*self.indices) + size_of_val(&*self.source)
    }
}

fn choose<T: Scalar, I: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
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
        _ => Ok(cpu_spmv::choose(&RowStats::new(a), problem)),
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
