//! SpMM on the device: C = α·op(A)·B ⊕ β·C, A in CSR.
//!
//! One file per algorithm; `catalog` lists them. A column-major B or C passes through a row-major
//! workspace; Aᵀ is multiplied as the CSR matrix that it is, its values gathered at every execution.

mod auto;
pub mod b_stationary;
pub(crate) mod catalog;
pub(crate) mod checks;
pub mod column_panel;
pub mod dcsr;
pub mod dense;
pub mod ell_r;
pub mod even_shares;
pub(crate) mod flattened;
pub(crate) mod group;
pub mod heavy_light;
pub(crate) mod left;
pub mod merge_path;
pub mod nonzero_split;
pub(crate) mod operands;
pub(crate) mod ordered;
pub mod output_stationary;
pub(crate) mod padded;
pub(crate) mod papers;
pub(crate) mod pattern;
mod plan;
pub mod row_block;
pub mod row_split;
pub mod segmented;
pub mod sell_p;
pub(crate) mod stationary;
pub mod tensor;
pub mod thread_row;
mod tile;
pub mod vendor;

use gustav_core::{Error, Problem};

pub(crate) use crate::source::bits;

pub use catalog::{Config, catalog};
pub use ordered::takes_orders;
pub use plan::{Options, SpmmPlan};

/// A refusal with its reason and the nearest thing that works.
pub(crate) fn unsupported(problem: &Problem, backend: &str, reason: &str, nearest: &str) -> Error {
    Error::Unsupported {
        problem: problem.to_string(),
        backend: backend.into(),
        reason: reason.into(),
        nearest: nearest.into(),
    }
}

/// Everything that SpMM asks for, and nothing else.
pub(crate) fn only_spmm(problem: &Problem, backend: &str) -> gustav_core::Result<()> {
    if problem.operation == gustav_core::Operation::Spmm {
        return Ok(());
    }
    Err(unsupported(problem, backend, "it multiplies by a dense matrix", "Problem::spmm"))
}
