//! The SpMM algorithms of this backend, and what each supports.

use gustav_core::{Error, Operation, Problem, Result};
use gustav_plan::Algorithm;

use crate::Entry;

/// Every SpMM algorithm of this backend, the safest choice first.
pub fn catalog() -> &'static [Entry] {
    &CATALOG
}

static CATALOG: [Entry; 6] = [
    entry(Algorithm::RowSplit),
    entry(Algorithm::NonzeroSplit),
    entry(Algorithm::MergePath),
    entry(Algorithm::Csb),
    entry(Algorithm::ColumnPanel),
    entry(Algorithm::RowBlock),
];

const fn entry(algorithm: Algorithm) -> Entry {
    Entry { algorithm, supports: is_spmm }
}

/// Refuses problems of another operation. All else is supported by every algorithm: any types,
/// layouts, semiring, transposition, and `deterministic`.
fn is_spmm(problem: &Problem) -> Result<()> {
    if problem.operation == Operation::Spmm {
        problem.without_output("SpMM on the CPU")?;
        return problem.without_epilogue("SpMM on the CPU");
    }
    Err(Error::Unsupported {
        problem: problem.to_string(),
        backend: "SpMM on the CPU".into(),
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
