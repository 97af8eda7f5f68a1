//! SpMV on the device: y = α·op(A)·x ⊕ β·y, A in CSR.
//!
//! One file per algorithm; `catalog` lists them. Aᵀ is multiplied as the CSR matrix that it is, its
//! values gathered at every execution.

mod auto;
mod catalog;
pub mod even_shares;
pub(crate) mod flattened;
pub mod merge_path;
pub mod nonzero_split;
mod plan;
pub mod row_split;
pub mod segmented;
pub mod vendor;

pub use catalog::{Config, catalog};
pub use plan::{Options, SpmvPlan};
