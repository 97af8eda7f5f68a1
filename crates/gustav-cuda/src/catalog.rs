//! What this backend offers the planner.

use gustav_core::{Problem, Result};
use gustav_plan::Algorithm;

/// One algorithm of the CUDA backend.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Whether it can compute a product.
    ///
    /// # Errors
    /// [`Error::Unsupported`](gustav_core::Error::Unsupported) with the reason and the nearest
    /// thing that works.
    pub supports: fn(&Problem) -> Result<()>,
}
