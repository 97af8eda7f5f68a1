//! Finite elements with several unknowns at every node.

use std::fmt::Display;
use std::ops::Range;

use gustav_core::{Index, Result};

use super::args::{Args, product};
use super::rows::{Pattern, pattern};
use super::{Family, Grid27, Kind};

/// The 27-point stencil with a dense block of `dof` × `dof` for every pair of nodes, the unknowns
/// of a node numbered one after another: each group of `dof` consecutive rows has the same columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fem {
    /// The nodes.
    pub grid: Grid27,
    /// Unknowns at every node.
    pub dof: usize,
}

impl Display for Fem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{}", self.grid, self.dof)
    }
}

impl Family for Fem {
    const KIND: Kind = Kind {
        name: "fem",
        usage: "fem:NXxNYxNZ,DOF",
        about: "27-point stencil with DOF unknowns at every node",
    };

    fn parse(args: &mut Args<'_>) -> Result<Self> {
        let (grid, dof) = (Grid27::parse(args)?, args.size("DOF")?);
        if dof == 0 {
            return Err(args.error("DOF must be above 0"));
        }
        Ok(Fem { grid, dof })
    }

    fn shape(&self) -> Result<(usize, usize)> {
        let n = product("unknowns", &[self.grid.points()?, self.dof])?;
        Ok((n, n))
    }

    fn entries(&self) -> Option<u128> {
        let block = (self.dof as u128).saturating_mul(self.dof as u128);
        Some(self.grid.pairs().saturating_mul(block))
    }

    fn pattern<I: Index, O: Index>(&self, rows: Range<usize>, seed: u64) -> Result<Pattern<I, O>> {
        let dof = self.dof;
        pattern(rows, (self.shape()?.0, self.entries()), seed, &|row, _, columns| {
            self.grid.around(row / dof, |node| columns.extend(node * dof..(node + 1) * dof));
        })
    }
}
