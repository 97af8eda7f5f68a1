//! Facts about a matrix.

mod bands;
mod row_stats;

pub use bands::Bands;
pub use row_stats::RowStats;
