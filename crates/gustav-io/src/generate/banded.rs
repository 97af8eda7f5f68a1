//! Banded and diagonal matrices.

use std::fmt::Display;
use std::ops::Range;

use gustav_core::{Index, Result};

use super::args::Args;
use super::rows::{Pattern, pattern};
use super::{Family, Kind};

/// Every element (i, j) with |i − j| ≤ `half`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Banded {
    /// Rows and columns.
    pub n: usize,
    /// Diagonals on each side of the main one.
    pub half: usize,
}

/// The main diagonal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diagonal {
    /// Rows and columns.
    pub n: usize,
}

impl Display for Banded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{}", self.n, self.half)
    }
}

impl Family for Banded {
    const KIND: Kind = Kind {
        name: "banded",
        usage: "banded:N,HALF",
        about: "full band of HALF diagonals on each side of the main one",
    };

    fn parse(args: &mut Args<'_>) -> Result<Self> {
        let n = args.size("N")?;
        let half = args.size_up_to("HALF", n.saturating_sub(1), "diagonals on a side")?;
        Ok(Banded { n, half })
    }

    fn shape(&self) -> Result<(usize, usize)> {
        Ok((self.n, self.n))
    }

    fn entries(&self) -> Option<u128> {
        let n = self.n as u128;
        let half = (self.half as u128).min(n.saturating_sub(1));
        // The full band minus the elements that the first and the last `half` rows lack.
        Some((n * half).saturating_mul(2).saturating_sub(half * (half + 1)).saturating_add(n))
    }

    fn pattern<I: Index, O: Index>(&self, rows: Range<usize>, seed: u64) -> Result<Pattern<I, O>> {
        pattern(rows, (self.n, self.entries()), seed, &|row, _, columns| {
            let end = row.saturating_add(self.half).saturating_add(1).min(self.n);
            columns.extend(row.saturating_sub(self.half)..end);
        })
    }
}

impl Display for Diagonal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.n)
    }
}

impl Family for Diagonal {
    const KIND: Kind =
        Kind { name: "diagonal", usage: "diagonal:N", about: "the main diagonal alone" };

    fn parse(args: &mut Args<'_>) -> Result<Self> {
        Ok(Diagonal { n: args.size("N")? })
    }

    fn shape(&self) -> Result<(usize, usize)> {
        Ok((self.n, self.n))
    }

    fn entries(&self) -> Option<u128> {
        Some(self.n as u128)
    }

    fn pattern<I: Index, O: Index>(&self, rows: Range<usize>, seed: u64) -> Result<Pattern<I, O>> {
        pattern(rows, (self.n, self.entries()), seed, &|row, _, columns| columns.push(row))
    }
}
