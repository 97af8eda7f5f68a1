//! SpMM.

pub mod dcsr;
pub mod dense;
pub mod ell_r;
pub(crate) mod flattened;
pub mod heavy_light;
pub mod merge_path;
pub mod nonzero_split;
pub mod output_stationary;
pub(crate) mod padded;
pub mod row_split;
pub mod sell_p;
pub(crate) mod stationary;
pub mod thread_row;
