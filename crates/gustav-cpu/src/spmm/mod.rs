//! SpMM on the CPU: C = scale(α, op(A)·B) ⊕ scale(β, C), A in CSR, B and C dense.

mod carry;
mod catalog;
mod column_panel;
mod csb;
mod kernel;
mod layout;
mod merge_path;
mod nonzero_split;
mod operands;
mod plan;
mod row_block;
mod row_split;
mod transposed;
mod vector;
mod workspace;

pub use catalog::catalog;
pub use plan::SpmmPlan;

/// Scalars with SpMM kernels: all of [`gustav_core::Scalar`]'s types. `f32` and `f64`, and `f16`
/// and `bf16` summed in `f32`, have hand-written vectors for plus-times.
pub trait CpuScalar: crate::arch::vector::Dispatch {}

impl<T: crate::arch::vector::Dispatch> CpuScalar for T {}
