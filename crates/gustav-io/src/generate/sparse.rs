//! Dense matrices with most elements removed at random.

use std::fmt::Display;
use std::ops::Range;

use gustav_core::{Index, Result};

use super::args::Args;
use super::density::Density;
use super::rows::{Pattern, pattern};
use super::stream::Stream;
use super::{Family, Kind};

/// Every element is an entry with probability 1 − sparsity, independently of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sparse(pub Density);

impl Display for Sparse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Family for Sparse {
    const KIND: Kind = Kind {
        name: "sparse",
        usage: "sparse:ROWSxCOLS,SPARSITY",
        about: "every element zero with probability SPARSITY",
    };

    fn parse(args: &mut Args<'_>) -> Result<Self> {
        Density::parse(args).map(Sparse)
    }

    fn shape(&self) -> Result<(usize, usize)> {
        Ok(self.0.shape())
    }

    fn entries(&self) -> Option<u128> {
        self.0.entries()
    }

    fn pattern<I: Index, O: Index>(&self, rows: Range<usize>, seed: u64) -> Result<Pattern<I, O>> {
        let Density { nrows, ncols, sparsity } = self.0;
        let gaps = Gaps::new(sparsity);
        pattern(rows, (nrows, self.entries()), seed, &|_, stream, columns| {
            let mut column = gaps.draw(stream, ncols);
            while column < ncols {
                columns.push(column);
                column += 1 + gaps.draw(stream, ncols - column - 1);
            }
        })
    }
}

/// Numbers of zeros between two entries: geometric, by inversion of a table.
struct Gaps {
    /// `table[g]`: probability that the gap is longer than g, times 2⁶⁴; decreasing.
    table: Vec<u64>,
}

impl Gaps {
    /// Longer gaps are drawn as a sum: the geometric distribution is memoryless.
    const LENGTH: usize = 256;

    fn new(sparsity: f64) -> Self {
        let mut longer = 1.0;
        let probability = |_| {
            longer *= sparsity;
            // Saturates at 2⁶⁴ − 1 for a sparsity of 1.
            (longer * 2f64.powi(64)) as u64
        };
        Gaps { table: (0..Self::LENGTH).map(probability).collect() }
    }

    /// Draws a gap; values of at least `limit` mean that the row has ended.
    fn draw(&self, stream: &mut Stream, limit: usize) -> usize {
        let mut gap = 0;
        while gap < limit {
            let u = stream.bits();
            let piece = self.table.partition_point(|longer| u < *longer);
            gap += piece;
            if piece < Self::LENGTH {
                break;
            }
        }
        gap
    }
}
