//! Mostly empty rows.

use std::fmt::Display;
use std::ops::Range;

use gustav_core::{Index, Result};

use super::args::Args;
use super::rows::{Pattern, pattern};
use super::{Family, Kind};

/// Every row is empty with probability `fraction`, otherwise it has `per_row` random columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Empty {
    /// Rows.
    pub nrows: usize,
    /// Columns.
    pub ncols: usize,
    /// Entries of a row that is not empty.
    pub per_row: usize,
    /// Expected fraction of empty rows, in [0, 1].
    pub fraction: f64,
}

impl Display for Empty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{},{},{}", self.nrows, self.ncols, self.per_row, self.fraction)
    }
}

impl Family for Empty {
    const KIND: Kind = Kind {
        name: "empty",
        usage: "empty:ROWSxCOLS,PER_ROW,FRACTION",
        about: "rows of PER_ROW random columns, each row empty with probability FRACTION",
    };

    fn parse(args: &mut Args<'_>) -> Result<Self> {
        let [nrows, ncols] = args.dimensions("the shape")?;
        let per_row = args.size_up_to("PER_ROW", ncols, "columns")?;
        Ok(Empty { nrows, ncols, per_row, fraction: args.real("FRACTION", 0.0..=1.0)? })
    }

    fn shape(&self) -> Result<(usize, usize)> {
        Ok((self.nrows, self.ncols))
    }

    fn entries(&self) -> Option<u128> {
        let filled = self.nrows as f64 * (1.0 - self.fraction);
        Some((filled * self.per_row.min(self.ncols) as f64) as u128)
    }

    fn pattern<I: Index, O: Index>(&self, rows: Range<usize>, seed: u64) -> Result<Pattern<I, O>> {
        pattern(rows, (self.nrows, self.entries()), seed, &|_, stream, columns| {
            if stream.unit() >= self.fraction {
                stream.distinct(self.per_row, self.ncols, columns);
            }
        })
    }
}
