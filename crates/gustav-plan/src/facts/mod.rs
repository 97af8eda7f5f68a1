//! Facts about a matrix.

mod row_stats;

pub use row_stats::RowStats;
