//! Row lengths from a power law.

use std::fmt::Display;
use std::ops::Range;

use gustav_core::{Index, Result};

use super::args::Args;
use super::rows::{Pattern, pattern};
use super::stream::power;
use super::{Family, Kind};

/// Row lengths with density proportional to length^−`exponent` from `shortest` up, cut off at
/// the number of columns; columns are random and distinct.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerLaw {
    /// Rows.
    pub nrows: usize,
    /// Columns.
    pub ncols: usize,
    /// The shortest row, at least 1.
    pub shortest: usize,
    /// The exponent, above 1.
    pub exponent: f64,
}

impl Display for PowerLaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{},{},{}", self.nrows, self.ncols, self.shortest, self.exponent)
    }
}

impl Family for PowerLaw {
    const KIND: Kind = Kind {
        name: "power-law",
        usage: "power-law:ROWSxCOLS,SHORTEST,EXPONENT",
        about: "row lengths from a power law, from SHORTEST up",
    };

    fn parse(args: &mut Args<'_>) -> Result<Self> {
        let [nrows, ncols] = args.dimensions("the shape")?;
        let shortest = args.size_up_to("SHORTEST", ncols, "columns")?;
        if shortest == 0 {
            return Err(args.error("SHORTEST must be above 0"));
        }
        // For an exponent of 1 the distribution is not normalisable; 1.01 is close to it.
        Ok(PowerLaw { nrows, ncols, shortest, exponent: args.real("EXPONENT", 1.01..=100.0)? })
    }

    fn shape(&self) -> Result<(usize, usize)> {
        Ok((self.nrows, self.ncols))
    }

    fn entries(&self) -> Option<u128> {
        None
    }

    fn pattern<I: Index, O: Index>(&self, rows: Range<usize>, seed: u64) -> Result<Pattern<I, O>> {
        let tail = 1.0 / (self.exponent - 1.0);
        pattern(rows, (self.nrows, self.entries()), seed, &|_, stream, columns| {
            // Inversion: P(length > x) = (shortest / x)^(exponent − 1); 1 − unit is never 0.
            let length = self.shortest as f64 / power(1.0 - stream.unit(), tail);
            // The cast saturates, an infinite length included.
            stream.distinct(length as usize, self.ncols, columns);
        })
    }
}
