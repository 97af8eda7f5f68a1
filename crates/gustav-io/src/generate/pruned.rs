//! Weights of a pruned network.

use std::fmt::Display;

use gustav_core::{Index, Result};

use super::args::Args;
use super::rows::{Pattern, pattern};
use super::{Family, Kind};

/// Random columns at a mean density of 1 − `sparsity`, the density of each row lying anywhere
/// from a quarter to seven quarters of that: the moderate imbalance that magnitude pruning
/// leaves (Gale, Zaharia, Young and Elsen 2020, §2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pruned {
    /// Rows.
    pub nrows: usize,
    /// Columns.
    pub ncols: usize,
    /// Expected share of elements that are zero, in [0, 1].
    pub sparsity: f64,
}

impl Display for Pruned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{},{}", self.nrows, self.ncols, self.sparsity)
    }
}

impl Family for Pruned {
    const KIND: Kind = Kind {
        name: "pruned",
        usage: "pruned:ROWSxCOLS,SPARSITY",
        about: "pruned weights: random columns, rows of varied density",
    };

    fn parse(args: &mut Args<'_>) -> Result<Self> {
        let [nrows, ncols] = args.dimensions("the shape")?;
        Ok(Pruned { nrows, ncols, sparsity: args.real("SPARSITY", 0.0..=1.0)? })
    }

    fn shape(&self) -> Result<(usize, usize)> {
        Ok((self.nrows, self.ncols))
    }

    fn entries(&self) -> Option<u128> {
        let elements = self.nrows as u128 * self.ncols as u128;
        Some((elements as f64 * (1.0 - self.sparsity)) as u128)
    }

    fn pattern<I: Index, O: Index>(&self, seed: u64) -> Result<Pattern<I, O>> {
        let mean = (1.0 - self.sparsity) * self.ncols as f64;
        pattern(self.nrows, self.entries(), seed, &|_, stream, columns| {
            let length = mean * (0.25 + 1.5 * stream.unit());
            stream.distinct((length + 0.5) as usize, self.ncols, columns);
        })
    }
}
