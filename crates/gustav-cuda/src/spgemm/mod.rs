//! SpGEMM on the device: C = α·op(A)·B ⊕ β·D, everything in CSR.
//!
//! One file per algorithm; `catalog` lists them. All work is queued on the device's own stream, on
//! which C is allocated; the caller's stream waits for it. Aᵀ is multiplied as a CSR matrix, whose
//! values are gathered in every execution.

pub(crate) mod add;
pub mod binned;
mod canonical;
mod catalog;
pub mod dense_output;
mod dense_plan;
pub mod masked;
mod one_shot;
mod patterns;
mod plan;
#[cfg(test)]
mod tests;
pub mod tiled;
mod tiles;
pub(crate) mod types;

pub use crate::papers::spgemm::{dense_naive, pipeline, shared_row};
pub use crate::vendor::spgemm as vendor;
pub use catalog::{Config, catalog};
pub use dense_plan::DensePlan;
pub use plan::{Options, SpgemmPlan, multiply};
