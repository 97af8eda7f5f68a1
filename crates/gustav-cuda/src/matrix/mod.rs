//! Matrices on a device, over owned memory or memory of another library.

pub(crate) mod columns;
pub(crate) mod compress;
mod csr;
mod dense;
mod facts;
pub(crate) mod gather;
pub(crate) mod layout;
mod pattern;
pub(crate) mod rows;
pub(crate) mod scan;
mod sparse;
pub(crate) mod transpose;
pub(crate) mod validate;
mod values;

pub use compress::Entries;
pub use csr::DeviceCsr;
pub use dense::DeviceDense;
pub(crate) use facts::PatternFacts;
pub use pattern::DevicePattern;
pub(crate) use pattern::{HeldPattern, WeakPattern};
pub use rows::RowList;
pub(crate) use sparse::Sparse;
pub use values::DeviceValues;
