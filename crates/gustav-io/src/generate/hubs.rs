//! A few very long rows among short ones.

use std::fmt::Display;
use std::ops::Range;

use gustav_core::{Index, Result};

use super::args::Args;
use super::rows::{Pattern, pattern};
use super::{Family, Kind};

/// `per_row` random columns in every row but `hubs` of them, spread evenly, which have
/// `hub_length`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hubs {
    /// Rows.
    pub nrows: usize,
    /// Columns.
    pub ncols: usize,
    /// Entries of an ordinary row.
    pub per_row: usize,
    /// Number of long rows.
    pub hubs: usize,
    /// Entries of a long row.
    pub hub_length: usize,
}

impl Hubs {
    /// The number of long rows before row `row`; gaps between long rows are as equal as possible.
    fn before(&self, row: usize) -> u128 {
        let hubs = self.hubs.min(self.nrows) as u128;
        (row as u128 * hubs + self.nrows as u128 / 2) / (self.nrows as u128).max(1)
    }
}

impl Display for Hubs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Hubs { nrows, ncols, per_row, hubs, hub_length } = self;
        write!(f, "{nrows}x{ncols},{per_row},{hubs},{hub_length}")
    }
}

impl Family for Hubs {
    const KIND: Kind = Kind {
        name: "hubs",
        usage: "hubs:ROWSxCOLS,PER_ROW,HUBS,HUB_LENGTH",
        about: "HUBS rows of HUB_LENGTH entries among rows of PER_ROW",
    };

    fn parse(args: &mut Args<'_>) -> Result<Self> {
        let [nrows, ncols] = args.dimensions("the shape")?;
        let per_row = args.size_up_to("PER_ROW", ncols, "columns")?;
        let hubs = args.size_up_to("HUBS", nrows, "rows")?;
        let hub_length = args.size_up_to("HUB_LENGTH", ncols, "columns")?;
        Ok(Hubs { nrows, ncols, per_row, hubs, hub_length })
    }

    fn shape(&self) -> Result<(usize, usize)> {
        Ok((self.nrows, self.ncols))
    }

    fn entries(&self) -> Option<u128> {
        let hubs = self.hubs.min(self.nrows);
        let length = |l: usize| l.min(self.ncols) as u128;
        Some(
            hubs as u128 * length(self.hub_length)
                + (self.nrows - hubs) as u128 * length(self.per_row),
        )
    }

    fn pattern<I: Index, O: Index>(&self, rows: Range<usize>, seed: u64) -> Result<Pattern<I, O>> {
        pattern(rows, (self.nrows, self.entries()), seed, &|row, stream, columns| {
            let hub = self.before(row + 1) > self.before(row);
            let length = if hub { self.hub_length } else { self.per_row };
            stream.distinct(length, self.ncols, columns);
        })
    }
}
