//! Graphs like road networks.

use std::fmt::Display;
use std::ops::Range;

use gustav_core::{Index, Result};

use super::args::{Args, product};
use super::grid::streets;
use super::rows::{Pattern, pattern};
use super::stream::{Purpose, hash};
use super::{Family, Kind};

/// Crossings on an `nx` × `ny` grid, each street between two neighbours present with probability
/// 0.7: planar, symmetric pattern, no diagonal, mean degree 2.8 inside, long detours. x runs
/// fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Road {
    /// Crossings along x.
    pub nx: usize,
    /// Crossings along y.
    pub ny: usize,
}

/// 0.7 in units of 2⁻⁶⁴.
const EDGE_THRESHOLD: u64 = 0xb333_3333_3333_3333;

impl Display for Road {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.nx, self.ny)
    }
}

impl Family for Road {
    const KIND: Kind = Kind {
        name: "road",
        usage: "road:NXxNY",
        about: "planar graph like a road network, mean degree 2.8",
    };

    fn parse(args: &mut Args<'_>) -> Result<Self> {
        let [nx, ny] = args.dimensions("the grid")?;
        Ok(Road { nx, ny })
    }

    fn shape(&self) -> Result<(usize, usize)> {
        let n = product("crossings", &[self.nx, self.ny])?;
        Ok((n, n))
    }

    fn entries(&self) -> Option<u128> {
        Some(streets(self.nx, self.ny) / 10 * 14)
    }

    fn pattern<I: Index, O: Index>(&self, rows: Range<usize>, seed: u64) -> Result<Pattern<I, O>> {
        let Road { nx, ny } = *self;
        // A street is identified by the number of its lower end: even along x, odd along y.
        let street = |lower: usize, along_y: bool| {
            let number = (lower as u64).wrapping_mul(2) | u64::from(along_y);
            hash(seed, Purpose::Edges, number) < EDGE_THRESHOLD
        };
        pattern(rows, (self.shape()?.0, self.entries()), seed, &|row, _, columns| {
            let (x, y) = (row % nx, row / nx);
            let neighbours = [
                (y > 0 && street(row.wrapping_sub(nx), true)).then(|| row - nx),
                (x > 0 && street(row.wrapping_sub(1), false)).then(|| row - 1),
                (x + 1 < nx && street(row, false)).then(|| row + 1),
                (y + 1 < ny && street(row, true)).then(|| row + nx),
            ];
            columns.extend(neighbours.into_iter().flatten());
        })
    }
}
