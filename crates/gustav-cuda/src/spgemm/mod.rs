//! SpGEMM on the device: C = α·op(A)·B ⊕ β·D, everything in CSR.
//!
//! One file per algorithm; `catalog` lists them. All work is queued on the device's own stream, on
//! which C is allocated; the caller's stream waits for it. Aᵀ is multiplied as the CSR matrix that
//! it is, its values gathered at every execution.

pub(crate) mod add;
pub mod binned;
mod canonical;
pub(crate) mod catalog;
pub mod dense_naive;
pub mod dense_output;
mod dense_plan;
pub(crate) mod dense_rows;
pub mod masked;
mod one_shot;
pub(crate) mod operands;
mod papers;
mod patterns;
pub mod pipeline;
mod plan;
pub mod shared_row;
#[cfg(test)]
mod tests;
pub mod tiled;
pub(crate) mod types;
pub mod vendor;

pub use catalog::{Config, catalog};
pub use dense_plan::DensePlan;
pub use plan::{Options, SpgemmPlan, multiply};
