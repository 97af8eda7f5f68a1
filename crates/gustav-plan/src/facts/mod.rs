//! Facts about a matrix.

mod bands;
pub(crate) mod cache_lines;
mod density;
pub mod features;
pub mod row_lengths;
mod row_stats;

pub use bands::Bands;
pub use cache_lines::CacheLines;
pub use density::Density;
pub use features::{Features, SampledFeatures};
pub use row_lengths::{RowLengths, RowSimilarity, TileReuse};
pub use row_stats::RowStats;
