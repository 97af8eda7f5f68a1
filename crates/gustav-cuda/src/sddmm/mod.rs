//! SDDMM on the device: `values[p] = α·⟨X[row p], Y[column p]⟩ + β·values[p]` for every nonzero p
//! of a pattern.

mod auto;
pub mod b_stationary;
mod catalog;
pub mod dense_tiles;
pub(crate) mod lanes;
pub mod nonzero_split;
pub(crate) mod nonzeros;
mod plan;
pub mod row_block;

pub use crate::vendor::sddmm as vendor;
pub use catalog::{Config, catalog};
pub use plan::{Options, SddmmPlan};
