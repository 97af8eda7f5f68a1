//! SpGEMM: C = α·op(A)·B ⊕ β·D, everything in CSR.
//!
//! One file per algorithm: `dense_naive`, `hash_rows`, `masked` and `gustavson`. The last is made of
//! `units` (which rows are mine), `clusters` (how columns lie), `row` (one row of C), `slots` (rows
//! in the order in which columns are met), `accumulator` (where sums are kept), `vector` (the
//! instruction sets), `assemble` (rows of C to their final place) and `refill` (new values under a
//! known pattern).

mod accumulator;
mod add;
mod assemble;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_sort;
mod clusters;
mod columns;
mod dense_naive;
mod gustavson;
mod hash_rows;
pub mod masked;
mod plan;
mod published;
mod radix;
mod refill;
mod row;
mod rows;
mod slots;
mod units;
mod vector;

use gustav_core::{Csr, CsrView, Error, Index, Operation, Problem, Result, Scalar, Semiring};
use gustav_plan::{Algorithm, Chooser};

use crate::Options;
use crate::catalog::{Entry, autotune_elsewhere};

pub use plan::SpgemmPlan;

/// The SpGEMM algorithms of this backend.
pub fn catalog() -> &'static [Entry] {
    &CATALOG
}

static CATALOG: [Entry; 3] = [
    Entry { algorithm: Algorithm::Gustavson, supports: any },
    Entry { algorithm: Algorithm::HashRows, supports: published::supports },
    Entry { algorithm: Algorithm::DenseNaive, supports: dense_naive::supports },
];

/// C = α·op(A)·B in one call, without a plan: the pattern of C is found while its values are
/// computed.
///
/// `a` is m × k (k × m when [`Problem::transpose_a`] is set), `b` k × n; C is m × n and holds
/// every entry that the patterns produce once, sums of exactly zero included unless
/// [`Options::drop_zeros`] is set. Rows come out sorted when [`Problem::sorted`] asks for it.
///
/// # Errors
/// [`Error::Shape`] when `a` and `b` do not fit together, [`Error::Pattern`] when `problem` was
/// made for others, [`Error::Unsupported`] when the algorithm named in `options` cannot compute
/// it, [`Error::Overflow`] when the entries of C outnumber the offset type, and
/// [`Error::OutOfMemory`].
pub fn multiply<S: Semiring<T::Accum>, T: Scalar, I: Index, O: Index>(
    semiring: S,
    a: CsrView<'_, T, I, O>,
    alpha: T::Accum,
    b: CsrView<'_, T, I, O>,
    problem: &Problem,
    options: &Options,
) -> Result<Csr<T, I, O>> {
    multiply_as(semiring, a, alpha, b, problem, options)
}

/// [`multiply`] with C's values in the type [`Problem::output`]: that of A's, or of their sums.
///
/// # Errors
/// As there, and [`Error::Pattern`] when `problem` asks for a C of another type.
pub fn multiply_as<S, U, T, I, O>(
    semiring: S,
    a: CsrView<'_, T, I, O>,
    alpha: T::Accum,
    b: CsrView<'_, T, I, O>,
    problem: &Problem,
    options: &Options,
) -> Result<Csr<U, I, O>>
where
    S: Semiring<T::Accum>,
    U: Scalar<Accum = T::Accum>,
    T: Scalar,
    I: Index,
    O: Index,
{
    SpgemmPlan::for_one_call(a, b, problem, options)?.execute_as(semiring, a, alpha, b)
}

fn any(problem: &Problem) -> Result<()> {
    if problem.operation == Operation::Spgemm {
        problem.check_output("the CPU's SpGEMM")?;
        return problem.without_epilogue("the CPU's SpGEMM");
    }
    Err(Error::Unsupported {
        problem: problem.to_string(),
        backend: "the CPU's SpGEMM".into(),
        reason: "it multiplies two sparse matrices".into(),
        nearest: "Problem::spgemm".into(),
    })
}

fn choose(problem: &Problem, options: &Options, products: u64) -> Result<(Algorithm, String)> {
    any(problem)?;
    let algorithm = match options.chooser {
        Chooser::Named(algorithm) => algorithm,
        Chooser::Autotune | Chooser::Predictor => return Err(autotune_elsewhere(problem)),
        _ => return Ok(gustav_plan::heuristics::cpu_spgemm::choose(problem, products)),
    };
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
