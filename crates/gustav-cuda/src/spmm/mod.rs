//! SpMM on the device: C = α·op(A)·B ⊕ β·C, A in CSR.
//!
//! One file per algorithm; `catalog` lists them. A column-major B or C is converted in a row-major
//! workspace; Aᵀ is multiplied as a CSR matrix, whose values are gathered in every execution.

mod auto;
pub mod b_stationary;
mod catalog;
pub mod column_panel;
mod cost;
pub mod even_shares;
pub(crate) mod group;
mod plan;
pub mod row_block;
pub mod segmented;
pub mod tensor;
pub(crate) mod winner_gradients;

pub use crate::papers::spmm::{
    dcsr, dense, ell_r, heavy_light, merge_path, nonzero_split, output_stationary, row_split,
    sell_p, thread_row,
};
pub use crate::product::orders::takes_orders;
pub use crate::vendor::spmm as vendor;
pub use catalog::{Config, catalog};
pub use cost::bounds;
pub use plan::{Options, SpmmPlan};
pub use winner_gradients::WinnerGradients;
