//! Rows of equal length with random columns.

use std::fmt::Display;
use std::ops::Range;

use gustav_core::{Index, Result};

use super::args::Args;
use super::rows::{Pattern, pattern};
use super::{Family, Kind};

/// `per_row` distinct random columns in every row (all of them when there are fewer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uniform {
    /// Rows.
    pub nrows: usize,
    /// Columns.
    pub ncols: usize,
    /// Entries of every row.
    pub per_row: usize,
}

impl Display for Uniform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{},{}", self.nrows, self.ncols, self.per_row)
    }
}

impl Family for Uniform {
    const KIND: Kind = Kind {
        name: "uniform",
        usage: "uniform:ROWSxCOLS,PER_ROW",
        about: "PER_ROW random columns in every row",
    };

    fn parse(args: &mut Args<'_>) -> Result<Self> {
        let [nrows, ncols] = args.dimensions("the shape")?;
        Ok(Uniform { nrows, ncols, per_row: args.size_up_to("PER_ROW", ncols, "columns")? })
    }

    fn shape(&self) -> Result<(usize, usize)> {
        Ok((self.nrows, self.ncols))
    }

    fn entries(&self) -> Option<u128> {
        Some(self.nrows as u128 * self.per_row.min(self.ncols) as u128)
    }

    fn pattern<I: Index, O: Index>(&self, rows: Range<usize>, seed: u64) -> Result<Pattern<I, O>> {
        pattern(rows, (self.nrows, self.entries()), seed, &|_, stream, columns| {
            stream.distinct(self.per_row, self.ncols, columns);
        })
    }
}
