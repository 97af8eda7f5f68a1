//! SpMM on the CPU: C = scale(α, op(A)·B) ⊕ scale(β, C), A in CSR, B and C dense.

mod carry;
mod catalog;
mod column_panel;
mod csb;
mod extremum;
mod kernel;
mod layout;
mod merge_path;
mod nonzero_split;
mod operands;
mod plan;
mod row_block;
mod row_split;
mod vector;
mod winner_gradients;
mod workspace;

pub use catalog::catalog;
pub use plan::{SpmmCall, SpmmPlan};
pub use winner_gradients::WinnerGradients;
