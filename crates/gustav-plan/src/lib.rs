//! The choice of algorithms: facts about a matrix, the catalog of algorithms, and the rules that
//! choose among them. Nothing here runs on a device; backends describe their devices and
//! measurements as values.

pub mod algorithm;
pub mod autotune;
pub mod choice;
pub mod cost;
pub mod facts;
pub mod heuristics;
mod installed;
mod mix;
pub mod orders;
pub mod predictor;
pub mod profile;

pub use algorithm::Algorithm;
pub use choice::{Choice, Chooser};
pub use facts::{Bands, Density, Features, RowLengths, RowSimilarity, RowStats, TileReuse};
pub use orders::{Order, RowOrder};
pub use profile::DeviceProfile;
