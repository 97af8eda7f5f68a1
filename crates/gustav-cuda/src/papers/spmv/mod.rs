//! SpMV.

pub(crate) mod flattened;
pub mod merge_path;
pub mod nonzero_split;
pub mod row_split;
