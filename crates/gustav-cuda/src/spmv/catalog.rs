//! The SpMV algorithms of this backend.

use gustav_core::{Error, Problem, Result};
use gustav_plan::Algorithm;

use super::{even_shares, merge_path, nonzero_split, row_split, segmented, vendor};
use crate::catalog::Entry;
use crate::spmm::catalog::{Method, algorithms};
use crate::spmm::pattern::Pattern;
use crate::spmm::unsupported;

algorithms! {
    Segmented => segmented,
    EvenShares => even_shares,
    RowSplit => row_split,
    NonzeroSplit => nonzero_split,
    MergePath => merge_path,
    Vendor => vendor,
}

/// The SpMV algorithms of this backend.
pub fn catalog() -> &'static [Entry] {
    CATALOG
}

/// `algorithm` is in the catalog and computes `problem`.
pub(super) fn check(problem: &Problem, algorithm: Algorithm) -> Result<()> {
    match CATALOG.iter().find(|e| e.algorithm == algorithm) {
        Some(entry) => (entry.supports)(problem),
        None => Err(no_kernel(problem, algorithm)),
    }
}

fn no_kernel(problem: &Problem, algorithm: Algorithm) -> Error {
    let backend = format!("{algorithm} on CUDA");
    let nearest: Vec<_> = CATALOG.iter().map(|e| e.algorithm.name()).collect();
    unsupported(problem, &backend, "it has no kernel for this product", &nearest.join(", "))
}
