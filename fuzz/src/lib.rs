//! What the fuzz targets do with their bytes, one function per parser. No parser may panic,
//! take memory out of proportion, or return a value that breaks its invariants.

mod documents;
mod files;

pub use documents::{model, names, records, suite};
pub use files::{any, generator, matrix_market, npy, npz, smtx};
