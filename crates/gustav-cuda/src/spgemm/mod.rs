//! SpGEMM on the device: C = α·op(A)·B, everything in CSR.
//!
//! One file per algorithm; `catalog` lists them. All work is queued on the device's own stream, on
//! which C is allocated; the caller's stream waits for it. Aᵀ is multiplied as the CSR matrix that
//! it is, its values gathered at every execution.

pub(crate) mod catalog;
pub(crate) mod operands;
mod plan;
pub mod vendor;

pub use catalog::{Config, catalog};
pub use plan::{Options, SpgemmPlan, multiply};
