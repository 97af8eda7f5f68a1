//! SpMV on the device: y = α·op(A)·x ⊕ β·y, A in CSR.
//!
//! One file per algorithm; `catalog` lists them. Aᵀ is multiplied as a CSR matrix, whose values are
//! gathered in every execution.

mod auto;
mod catalog;
mod cost;
pub mod even_shares;
mod plan;
pub mod segmented;

pub use crate::papers::spmv::{merge_path, nonzero_split, row_split};
pub use crate::vendor::spmv as vendor;
pub use catalog::{Config, catalog};
pub use cost::bounds;
pub use plan::{Options, SpmvPlan};
