//! R-MAT: Chakrabarti, Zhan and Faloutsos, "R-MAT: a recursive model for graph mining", 2004.

use std::fmt::Display;
use std::ops::Range;

use gustav_core::{Buffer, Error, Index, IndexType, Result, buffer::try_vec, parallel};

use super::args::Args;
use super::rows::Pattern;
use super::stream::{Purpose, Stream};
use super::{Family, Kind};

/// Edges drawn from one stream.
const RUN: usize = 1 << 14;
/// The largest scale: both ends of an edge fit in 64 bits.
const MAX_SCALE: usize = 32;

/// A graph of 2^`scale` vertices. Each of `edge_factor`·2^`scale` edges falls into a quadrant of
/// the matrix with the probabilities `quadrants` (upper left, upper right, lower left, lower
/// right), then into a quadrant of that, down to one element. Repeated edges are stored once;
/// vertices are not renumbered, so those of high degree come first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rmat {
    /// Logarithm of the number of vertices, at most 32.
    pub scale: usize,
    /// Edges per vertex, before repeated ones are removed.
    pub edge_factor: usize,
    /// a, b, c, d; they add up to 1.
    pub quadrants: [f64; 4],
}

impl Rmat {
    /// The quadrants of the Graph500 benchmark.
    pub const GRAPH500: [f64; 4] = [0.57, 0.19, 0.19, 0.05];

    fn edges(&self) -> u128 {
        (self.edge_factor as u128) << self.scale
    }

    /// Row and column of one edge, packed in one number.
    fn edge(&self, stream: &mut Stream, bounds: [u64; 3]) -> u64 {
        let (mut row, mut col) = (0, 0);
        for level in 0..self.scale {
            let draw = stream.bits() >> 32;
            // A draw above a: not upper left; above a + b: lower; above a + b + c: lower right.
            let lower = u64::from(draw >= bounds[1]);
            let right = u64::from(draw >= bounds[0]) - lower + u64::from(draw >= bounds[2]);
            let bit = self.scale - 1 - level;
            row |= lower << bit;
            col |= right << bit;
        }
        row << self.scale | col
    }
}

impl Display for Rmat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{}", self.scale, self.edge_factor)?;
        if self.quadrants != Self::GRAPH500 {
            let [a, b, c, d] = self.quadrants;
            write!(f, ",{a},{b},{c},{d}")?;
        }
        Ok(())
    }
}

impl Family for Rmat {
    const KIND: Kind = Kind {
        name: "rmat",
        usage: "rmat:SCALE,EDGE_FACTOR[,A,B,C,D]",
        about: "recursive matrix graph of 2^SCALE vertices, repeated edges removed",
    };

    fn parse(args: &mut Args<'_>) -> Result<Self> {
        let scale = args.size("SCALE")?;
        if scale > MAX_SCALE {
            return Err(args.error(&format!("SCALE must be at most {MAX_SCALE}")));
        }
        let edge_factor = args.size("EDGE_FACTOR")?;
        let mut quadrants = Self::GRAPH500;
        if !args.is_done() {
            for (q, name) in quadrants.iter_mut().zip(["A", "B", "C", "D"]) {
                *q = args.real(name, 0.0..=1.0)?;
            }
            let sum: f64 = quadrants.iter().sum();
            if (sum - 1.0).abs() > 1e-9 {
                return Err(args.error("A, B, C and D must add up to 1"));
            }
        }
        Ok(Rmat { scale, edge_factor, quadrants })
    }

    fn shape(&self) -> Result<(usize, usize)> {
        Ok((1 << self.scale, 1 << self.scale))
    }

    fn entries(&self) -> Option<u128> {
        // An upper bound, which is close unless the graph is dense.
        (self.scale >= 16).then(|| self.edges())
    }

    fn pattern<I: Index, O: Index>(&self, rows: Range<usize>, seed: u64) -> Result<Pattern<I, O>> {
        let count = usize::try_from(self.edges()).map_err(|_| Error::Overflow {
            what: "edges",
            need: self.edges(),
            index_type: IndexType::U64,
        })?;
        let [a, b, c, _] = self.quadrants;
        let bounds = [a, a + b, a + b + c].map(|p| (p * 2f64.powi(32)) as u64);
        let nrows = self.shape()?.0;
        let draw = |run: usize, edges: &mut dyn FnMut(u64)| {
            let mut stream = Stream::new(seed, Purpose::Edges, run as u64);
            let drawn = (count - run * RUN).min(RUN);
            (0..drawn).for_each(|_| edges(self.edge(&mut stream, bounds)));
        };
        let mut edges: Buffer<u64>;
        if rows == (0..nrows) {
            edges = Buffer::<u64>::zeroed(count, "edges")?;
            parallel::chunks_mut(&mut edges, RUN, |run, edges| {
                let mut at = 0;
                draw(run, &mut |edge| {
                    edges[at] = edge;
                    at += 1;
                });
            });
        } else {
            // All edges are drawn, and those of other rows dropped.
            let of_rows = |run: usize| {
                let mut own = Vec::new();
                draw(run, &mut |edge| {
                    if rows.contains(&((edge >> self.scale) as usize)) {
                        own.push(edge);
                    }
                });
                own
            };
            let parts: Vec<Vec<u64>> = parallel::map(count.div_ceil(RUN), of_rows);
            let len = parts.iter().map(Vec::len).sum();
            let mut own = try_vec::<u64>(len, "edges")?;
            parts.iter().for_each(|part| own.extend_from_slice(part));
            edges = own.into();
        }
        parallel::sort(&mut edges);
        let mut offsets = try_vec::<O>(rows.len() + 1, "row offsets")?;
        let mut indices = try_vec::<I>(edges.len(), "column indices")?;
        let mut last = None;
        offsets.push(O::default());
        for &edge in edges.iter() {
            if last.replace(edge) == Some(edge) {
                continue;
            }
            let row = (edge >> self.scale) as usize - rows.start;
            let end = O::truncate(indices.len());
            offsets.resize(row + 1, end);
            indices.push(I::truncate((edge & ((1 << self.scale) - 1)) as usize));
        }
        O::try_from_usize(indices.len(), "row offset")?;
        offsets.resize(rows.len() + 1, O::truncate(indices.len()));
        Ok(Pattern { offsets, indices: indices.into() })
    }
}
