//! Stencils on regular grids.

use std::fmt::Display;
use std::ops::Range;

use gustav_core::{Index, Result};

use super::args::{Args, product};
use super::rows::{Pattern, pattern};
use super::{Family, Kind};

/// Every point of an `nx` × `ny` grid coupled to itself and its four neighbours; x runs fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid5 {
    /// Points along x.
    pub nx: usize,
    /// Points along y.
    pub ny: usize,
}

/// Every point of an `nx` × `ny` × `nz` grid coupled to itself and its 26 neighbours; x runs
/// fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid27 {
    /// Points along x.
    pub nx: usize,
    /// Points along y.
    pub ny: usize,
    /// Points along z.
    pub nz: usize,
}

/// Number of pairs of neighbours on an `nx` × `ny` grid.
pub(super) fn streets(nx: usize, ny: usize) -> u128 {
    let along = |n: usize, m: usize| n.saturating_sub(1) as u128 * m as u128;
    along(nx, ny).saturating_add(along(ny, nx))
}

impl Display for Grid5 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.nx, self.ny)
    }
}

impl Family for Grid5 {
    const KIND: Kind = Kind {
        name: "grid5",
        usage: "grid5:NXxNY",
        about: "5-point stencil on a grid in the plane",
    };

    fn parse(args: &mut Args<'_>) -> Result<Self> {
        let [nx, ny] = args.dimensions("the grid")?;
        Ok(Grid5 { nx, ny })
    }

    fn shape(&self) -> Result<(usize, usize)> {
        let n = product("grid points", &[self.nx, self.ny])?;
        Ok((n, n))
    }

    fn entries(&self) -> Option<u128> {
        let points = self.nx as u128 * self.ny as u128;
        Some(streets(self.nx, self.ny).saturating_mul(2).saturating_add(points))
    }

    fn pattern<I: Index, O: Index>(&self, rows: Range<usize>, seed: u64) -> Result<Pattern<I, O>> {
        let Grid5 { nx, ny } = *self;
        pattern(rows, (self.shape()?.0, self.entries()), seed, &|row, _, columns| {
            let (x, y) = (row % nx, row / nx);
            let neighbours = [
                (y > 0).then(|| row - nx),
                (x > 0).then(|| row - 1),
                Some(row),
                (x + 1 < nx).then(|| row + 1),
                (y + 1 < ny).then(|| row + nx),
            ];
            columns.extend(neighbours.into_iter().flatten());
        })
    }
}

impl Grid27 {
    /// Visits the points around and at `point`, in increasing order.
    pub(super) fn around(&self, point: usize, mut visit: impl FnMut(usize)) {
        let Grid27 { nx, ny, nz } = *self;
        let (x, y, z) = (point % nx, point / nx % ny, point / nx / ny);
        let span = |at: usize, n: usize| at.saturating_sub(1)..(at + 2).min(n);
        for k in span(z, nz) {
            for j in span(y, ny) {
                span(x, nx).for_each(|i| visit((k * ny + j) * nx + i));
            }
        }
    }

    /// Number of grid points.
    pub(super) fn points(&self) -> Result<usize> {
        product("grid points", &[self.nx, self.ny, self.nz])
    }

    /// Number of ordered pairs of neighbours, including every point with itself.
    pub(super) fn pairs(&self) -> u128 {
        let along = |n: usize| (3 * n as u128).saturating_sub(2);
        along(self.nx).saturating_mul(along(self.ny)).saturating_mul(along(self.nz))
    }
}

impl Display for Grid27 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}x{}", self.nx, self.ny, self.nz)
    }
}

impl Family for Grid27 {
    const KIND: Kind = Kind {
        name: "grid27",
        usage: "grid27:NXxNYxNZ",
        about: "27-point stencil on a grid in space",
    };

    fn parse(args: &mut Args<'_>) -> Result<Self> {
        let [nx, ny, nz] = args.dimensions("the grid")?;
        Ok(Grid27 { nx, ny, nz })
    }

    fn shape(&self) -> Result<(usize, usize)> {
        let n = self.points()?;
        Ok((n, n))
    }

    fn entries(&self) -> Option<u128> {
        Some(self.pairs())
    }

    fn pattern<I: Index, O: Index>(&self, rows: Range<usize>, seed: u64) -> Result<Pattern<I, O>> {
        pattern(rows, (self.points()?, self.entries()), seed, &|row, _, columns| {
            self.around(row, |c| columns.push(c));
        })
    }
}
