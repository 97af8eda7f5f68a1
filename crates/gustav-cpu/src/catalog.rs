//! The algorithms that the planner may choose from.

use gustav_core::{Error, Problem, Result};
use gustav_plan::Algorithm;

/// One algorithm of the CPU backend.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Whether it can compute a product.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the reason and the nearest
    /// thing that works.
    pub supports: fn(&Problem) -> Result<()>,
}

/// The error for a request to autotune: making a plan of this backend runs no trials.
pub(crate) fn autotune_elsewhere(problem: &Problem) -> Error {
    Error::Unsupported {
        problem: problem.to_string(),
        backend: "autotune or a predictor in a plan of the CPU".into(),
        reason: "making such a plan runs nothing".into(),
        nearest: "a plan of gustav::Device, which times every algorithm or uses a predictor".into(),
    }
}
