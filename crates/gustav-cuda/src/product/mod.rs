//! The common part of the products: options of a call, operands, checks, and catalogs of
//! algorithms.

pub(crate) mod call;
pub mod catalog;
pub(crate) mod checks;
pub(crate) mod method;
pub(crate) mod op_a;
pub(crate) mod operands;
pub(crate) mod orders;
pub(crate) mod sampled;
pub(crate) mod slices;
pub(crate) mod sparse_method;
pub(crate) mod sparse_operands;
pub(crate) mod tile;
pub(crate) mod winners;

use gustav_core::{Error, Operation, Problem, Result};

pub use call::{Call, SddmmCall, SpgemmCall};
pub use winners::{DeviceWinners, DeviceWinnersMut};

/// An [`Error::Unsupported`] with its reason and the nearest thing that works.
pub(crate) fn unsupported(problem: &Problem, backend: &str, reason: &str, nearest: &str) -> Error {
    Error::Unsupported {
        problem: problem.to_string(),
        backend: backend.into(),
        reason: reason.into(),
        nearest: nearest.into(),
    }
}

/// An error for a configuration without a kernel, unless it `fits`; `expected` says what would.
pub(crate) fn check_config(
    name: &'static str,
    config: &impl std::fmt::Debug,
    fits: bool,
    expected: impl Into<String>,
) -> Result<()> {
    if fits {
        return Ok(());
    }
    Err(Error::Argument { name, found: format!("{config:?}"), expected: expected.into() })
}

/// Checks that the problem is an SpMM.
pub(crate) fn only_spmm(problem: &Problem, algorithm: &str) -> Result<()> {
    if problem.operation == Operation::Spmm {
        return Ok(());
    }
    let backend = format!("{algorithm} on CUDA");
    Err(unsupported(problem, &backend, "it multiplies by a dense matrix", "Problem::spmm"))
}

/// Checks that the problem is an SpMV.
pub(crate) fn only_spmv(problem: &Problem, algorithm: &str) -> Result<()> {
    if problem.operation == Operation::Spmv {
        return Ok(());
    }
    let backend = format!("{algorithm} on CUDA");
    Err(unsupported(problem, &backend, "it multiplies by a vector", "Problem::spmv"))
}
