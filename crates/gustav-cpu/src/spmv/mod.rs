//! SpMV: y = α·op(A)·x ⊕ β·y, A in CSR.
//!
//! One file per algorithm. `lanes` holds the vector instruction sets, `rows` the sums over CSR
//! rows that the schedules share, `shares` the rows cut between workers, `epilogue` α and β.

mod compressed_index;
mod csb;
mod epilogue;
mod lanes;
mod merge_path;
mod nonzero_split;
mod row_split;
mod rows;
mod shares;

use gustav_core::{Buffer, CsrView, Error, Index, Operation, Problem, Result, Scalar, Semiring};
use gustav_plan::heuristics::{cpu_spmv, mean_row_length};
use gustav_plan::{Algorithm, Choice, Chooser, RowStats};

use crate::catalog::Entry;
use crate::{Config, Options, Threads};
use epilogue::Epilogue;
use rows::Operands;
use shares::Shares;

/// The SpMV algorithms of this backend.
pub fn catalog() -> &'static [Entry] {
    &CATALOG
}

static CATALOG: [Entry; 5] = [
    Entry { algorithm: Algorithm::RowSplit, supports: any },
    Entry { algorithm: Algorithm::NonzeroSplit, supports: any },
    Entry { algorithm: Algorithm::MergePath, supports: any },
    Entry { algorithm: Algorithm::Csb, supports: any },
    Entry { algorithm: Algorithm::CompressedIndex, supports: not_transposed },
];

fn any(problem: &Problem) -> Result<()> {
    if problem.operation == Operation::Spmv {
        return Ok(());
    }
    Err(Error::Unsupported {
        problem: problem.to_string(),
        backend: "the CPU's SpMV".into(),
        reason: "it multiplies a matrix by one vector".into(),
        nearest: "Problem::spmv".into(),
    })
}

fn not_transposed(problem: &Problem) -> Result<()> {
    any(problem)?;
    if !problem.transpose_a {
        return Ok(());
    }
    Err(Error::Unsupported {
        problem: problem.to_string(),
        backend: "compressed-index on the CPU".into(),
        reason: "values are read in the order of A's rows".into(),
        nearest: "csb".into(),
    })
}

/// A plan for y = α·op(A)·x ⊕ β·y, for one pattern of A and any values.
///
/// Results are the same to the bit from run to run and for any number of threads, whether
/// [`Problem::deterministic`] asks for it or not.
pub struct SpmvPlan<T: Scalar, I: Index, O: Index> {
    problem: Problem,
    choice: Choice<Config>,
    threads: Threads,
    transposed: Option<Transposed<I, O>>,
    method: Method<T::Accum, O>,
}

enum Method<A, O: Index> {
    Rows,
    Shares(Shares<A>),
    Blocks(csb::Blocks<A, O>),
    Compressed(compressed_index::Compressed<A>),
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
        check_pattern(problem, &a)?;
        let isa = options.isa()?;
        let (algorithm, reason) = choose(&a, problem, options)?;
        let transposed = (problem.transpose_a && algorithm != Algorithm::Csb)
            .then(|| Transposed::new(&a))
            .transpose()?;
        let offsets = transposed.as_ref().map_or(a.offsets(), |t| &t.offsets);
        let method = match algorithm {
            Algorithm::NonzeroSplit => Method::Shares(nonzero_split::plan(offsets)?),
            Algorithm::MergePath => Method::Shares(merge_path::plan(offsets)?),
            Algorithm::Csb => {
                Method::Blocks(csb::Blocks::new(&a, problem.transpose_a, &options.threads)?)
            }
            Algorithm::CompressedIndex => {
                Method::Compressed(compressed_index::Compressed::new(&a, isa)?)
            }
            _ => Method::Rows,
        };
        let tile = match &method {
            Method::Blocks(blocks) => Some(blocks.block()),
            _ => None,
        };
        let config = Config { isa, threads: options.threads.count(), tile, streaming: false };
        Ok(SpmvPlan {
            problem: problem.clone(),
            choice: Choice { algorithm, config, reason },
            threads: options.threads.clone(),
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
    /// [`Error::Pattern`] when `a` has another shape or number of entries, [`Error::Shape`] when
    /// `x` or `y` is of the wrong length.
    pub fn execute<S: Semiring<T::Accum>>(
        &mut self,
        _semiring: S,
        a: CsrView<'_, T, I, O>,
        alpha: T::Accum,
        x: &[T],
        beta: T::Accum,
        y: &mut [T],
    ) -> Result<()> {
        check_pattern(&self.problem, &a)?;
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
                shares.execute(&self.threads, isa, &operands, &epilogue, y, |_, rows, y| {
                    // SAFETY: shares hold different rows.
                    unsafe { operands.multiply(isa, rows, &epilogue, y) }
                });
            }
            Method::Blocks(blocks) => {
                blocks.execute(&self.threads, a.values(), x, &epilogue, y);
            }
            Method::Compressed(compressed) => {
                compressed.execute(&self.threads, isa, &operands, &epilogue, y);
            }
        }
        Ok(())
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
            let entry = entry.ok_or_else(|| Error::Unsupported {
                problem: problem.to_string(),
                backend: format!("{algorithm} on the CPU"),
                reason: "it is not an algorithm for this product".into(),
                nearest: CATALOG.map(|e| e.algorithm.name()).join(", "),
            })?;
            (entry.supports)(problem)?;
            Ok((algorithm, "named by the caller".into()))
        }
        Chooser::MeanRowLength => Ok(mean_row_length::choose(&RowStats::new(a))),
        _ => Ok(cpu_spmv::choose(&RowStats::new(a), problem)),
    }
}

fn check_pattern<T: Scalar, I: Index, O: Index>(
    problem: &Problem,
    a: &CsrView<'_, T, I, O>,
) -> Result<()> {
    if (problem.rows, problem.cols, problem.nnz) == (a.nrows(), a.ncols(), a.nnz()) {
        return Ok(());
    }
    let name = |rows, cols, nnz| format!("{rows} x {cols} with {nnz} nonzeros");
    Err(Error::Pattern {
        expected: name(problem.rows, problem.cols, problem.nnz),
        found: name(a.nrows(), a.ncols(), a.nnz()),
    })
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
