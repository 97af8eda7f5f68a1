//! SpGEMM: C = α·op(A)·B ⊕ β·D, everything in CSR.
//!
//! A plan (`plan`) is made for two patterns (`setup`) and compiled once for every type of values
//! (`compiled`). `gustavson` is made of `units` (rows cut into units of work), `columns` (32-bit
//! labels), `clusters` (whether columns lie close together), `row` (one row of C), `slots` (rows in
//! the order in which columns occur), `accumulator` (partial sums), `vector` (the instruction
//! sets), `assemble` (copies finished rows to C) and `refill` (new values for a known pattern).
//! `masked` computes products under a mask, `add` the sum with D.

mod accumulator;
mod add;
mod assemble;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_sort;
mod clusters;
mod columns;
pub(crate) mod compiled;
mod gustavson;
mod masked;
mod operands;
mod plan;
mod radix;
mod refill;
mod row;
mod rows;
mod setup;
mod slots;
mod units;
mod vector;

use gustav_core::{Csr, CsrView, Error, Index, Operation, Problem, Result, Scalar};
use gustav_plan::{Algorithm, Chooser};

use crate::catalog::{Entry, autotune_elsewhere};
use crate::{Options, papers};

pub use compiled::SpgemmKernels;
pub use plan::{SpgemmCall, SpgemmPlan};

/// The SpGEMM algorithms of this backend.
pub fn catalog() -> &'static [Entry] {
    &CATALOG
}

static CATALOG: [Entry; 3] = [
    Entry { algorithm: Algorithm::Gustavson, supports: any },
    Entry { algorithm: Algorithm::HashRows, supports: papers::supports },
    Entry { algorithm: Algorithm::DenseNaive, supports: papers::dense_naive_supports },
];

/// C = α·op(A)·B ⊕ β·D in one call: a [`SpgemmPlan`] for one product.
///
/// `a` is m × k (k × m when [`Problem::transpose_a`] is set), `b` k × n; C is m × n.
///
/// # Errors
/// Those of [`SpgemmPlan::new`] and [`SpgemmPlan::execute`].
pub fn multiply<'a, T, U, I, O>(
    a: impl Into<CsrView<'a, T, I, O>>,
    b: impl Into<CsrView<'a, T, I, O>>,
    problem: &Problem,
    options: &Options,
    call: SpgemmCall<'_, T, U, I, O>,
) -> Result<Csr<U, I, O>>
where
    T: SpgemmKernels,
    U: Scalar<Accum = T::Accum>,
    I: Index,
    O: Index,
{
    let (a, b) = (a.into(), b.into());
    SpgemmPlan::new(a.pattern(), b.pattern(), problem, options)?.execute(a, b, call)
}

pub(crate) fn any(problem: &Problem) -> Result<()> {
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
