//! Arguments of the families that keep a random fraction of the elements of a dense matrix.

use std::fmt::Display;

use gustav_core::Result;

use super::args::Args;

/// A shape and the fraction of its elements that are zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Density {
    /// Rows.
    pub nrows: usize,
    /// Columns.
    pub ncols: usize,
    /// Expected fraction of elements that are zero, in [0, 1].
    pub sparsity: f64,
}

impl Density {
    pub(crate) fn parse(args: &mut Args<'_>) -> Result<Self> {
        let [nrows, ncols] = args.dimensions("the shape")?;
        Ok(Density { nrows, ncols, sparsity: args.real("SPARSITY", 0.0..=1.0)? })
    }

    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.nrows, self.ncols)
    }

    /// Expected number of entries.
    pub(crate) fn entries(&self) -> Option<u128> {
        let elements = self.nrows as u128 * self.ncols as u128;
        Some((elements as f64 * (1.0 - self.sparsity)) as u128)
    }
}

impl Display for Density {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{},{}", self.nrows, self.ncols, self.sparsity)
    }
}
