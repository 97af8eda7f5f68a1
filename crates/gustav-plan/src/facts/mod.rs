//! Facts about a matrix.

mod bands;
pub mod row_lengths;
mod row_stats;

pub use bands::Bands;
pub use row_lengths::{RowLengths, RowSimilarity};
pub use row_stats::RowStats;
