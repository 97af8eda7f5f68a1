//! The SpMM algorithms of this backend, and what each supports.

use gustav_core::{Epilogue, Error, Operation, Problem, Result};
use gustav_plan::Algorithm;

use crate::Entry;

/// Every SpMM algorithm of this backend, the safest choice first.
pub fn catalog() -> &'static [Entry] {
    &CATALOG
}

static CATALOG: [Entry; 6] = [
    Entry { algorithm: Algorithm::RowSplit, supports: any_reduction },
    Entry { algorithm: Algorithm::NonzeroSplit, supports: sums },
    Entry { algorithm: Algorithm::MergePath, supports: sums },
    Entry { algorithm: Algorithm::Csb, supports: plain_sums },
    Entry { algorithm: Algorithm::ColumnPanel, supports: sums },
    Entry { algorithm: Algorithm::RowBlock, supports: sums },
];

const BACKEND: &str = "SpMM on the CPU";

/// Sums, means, max and min.
fn any_reduction(problem: &Problem) -> Result<()> {
    is_spmm(problem)?;
    problem.check_extremum(BACKEND)?;
    if problem.extremum.is_some() {
        return Ok(());
    }
    sums(problem)
}

/// Sums and means.
fn sums(problem: &Problem) -> Result<()> {
    is_spmm(problem)?;
    let mean = Epilogue { mean: true, ..Epilogue::default() };
    if problem.epilogue == mean {
        problem.without_extremum(BACKEND)?;
        return problem.check_epilogue(BACKEND);
    }
    problem.without_epilogue(BACKEND)
}

/// Sums alone.
fn plain_sums(problem: &Problem) -> Result<()> {
    is_spmm(problem)?;
    problem.without_epilogue("csb on the CPU")
}

/// Refuses problems of another operation. All else is supported by every algorithm: any types,
/// layouts, semiring, transposition, and `deterministic`.
fn is_spmm(problem: &Problem) -> Result<()> {
    if problem.operation == Operation::Spmm {
        return problem.without_output(BACKEND);
    }
    Err(Error::Unsupported {
        problem: problem.to_string(),
        backend: BACKEND.into(),
        reason: "the problem is of another operation".into(),
        nearest: "Problem::spmm".into(),
    })
}

/// The entry of `algorithm`.
///
/// # Errors
/// [`Error::Unsupported`] when the algorithm does not do SpMM on the CPU.
pub(super) fn find(algorithm: Algorithm, problem: &Problem) -> Result<Entry> {
    catalog().iter().copied().find(|e| e.algorithm == algorithm).ok_or_else(|| {
        let names: Vec<_> = catalog().iter().map(|e| e.algorithm.name()).collect();
        Error::Unsupported {
            problem: problem.to_string(),
            backend: format!("{algorithm} on the CPU"),
            reason: "it is not an SpMM algorithm of this backend".into(),
            nearest: names.join(", "),
        }
    })
}
