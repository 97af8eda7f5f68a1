//! Weights of a pruned network.

use std::fmt::Display;
use std::ops::Range;

use gustav_core::{Index, Result};

use super::args::Args;
use super::density::Density;
use super::rows::{Pattern, pattern};
use super::{Family, Kind};

/// Random columns at a mean density of 1 − sparsity, the density of each row lying anywhere
/// from a quarter to seven quarters of that: the moderate imbalance that magnitude pruning
/// leaves (Gale, Zaharia, Young and Elsen 2020, §2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pruned(pub Density);

impl Display for Pruned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Family for Pruned {
    const KIND: Kind = Kind {
        name: "pruned",
        usage: "pruned:ROWSxCOLS,SPARSITY",
        about: "pruned weights: random columns, rows of varied density",
    };

    fn parse(args: &mut Args<'_>) -> Result<Self> {
        Density::parse(args).map(Pruned)
    }

    fn shape(&self) -> Result<(usize, usize)> {
        Ok(self.0.shape())
    }

    fn entries(&self) -> Option<u128> {
        self.0.entries()
    }

    fn pattern<I: Index, O: Index>(&self, rows: Range<usize>, seed: u64) -> Result<Pattern<I, O>> {
        let Density { nrows, ncols, sparsity } = self.0;
        let mean = (1.0 - sparsity) * ncols as f64;
        pattern(rows, (nrows, self.entries()), seed, &|_, stream, columns| {
            let length = mean * (0.25 + 1.5 * stream.unit());
            stream.distinct((length + 0.5) as usize, ncols, columns);
        })
    }
}
