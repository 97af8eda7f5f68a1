//! Block-diagonal matrices.

use std::fmt::Display;
use std::ops::Range;

use gustav_core::{Index, Result};

use super::args::Args;
use super::rows::{Pattern, pattern};
use super::{Family, Kind};

/// Dense blocks of `size` × `size` on the diagonal; the last one is smaller when `n` is not a
/// multiple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Rows and columns.
    pub n: usize,
    /// Rows and columns of a block, above 0.
    pub size: usize,
}

impl Display for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{}", self.n, self.size)
    }
}

impl Family for Block {
    const KIND: Kind = Kind {
        name: "block",
        usage: "block:N,SIZE",
        about: "dense SIZE x SIZE blocks on the diagonal of an N x N matrix",
    };

    fn parse(args: &mut Args<'_>) -> Result<Self> {
        let (n, size) = (args.size("N")?, args.size("SIZE")?);
        if size == 0 {
            return Err(args.error("SIZE must be above 0"));
        }
        Ok(Block { n, size })
    }

    fn shape(&self) -> Result<(usize, usize)> {
        Ok((self.n, self.n))
    }

    fn entries(&self) -> Option<u128> {
        let (whole, rest) = ((self.n / self.size) as u128, (self.n % self.size) as u128);
        let size = self.size as u128;
        Some(whole.saturating_mul(size * size) + rest * rest)
    }

    fn pattern<I: Index, O: Index>(&self, rows: Range<usize>, seed: u64) -> Result<Pattern<I, O>> {
        pattern(rows, (self.n, self.entries()), seed, &|row, _, columns| {
            let first = row - row % self.size;
            columns.extend(first..first.saturating_add(self.size).min(self.n));
        })
    }
}
