//! Matrices generated from a description: seeded, in parallel, and the same on every machine and
//! for any number of threads.
//!
//! For that, every row (or fixed number of consecutive entries) draws from a PCG stream of its own,
//! seeded by a hash of seed, purpose and number; only integer arithmetic and the correctly rounded
//! operations + − × ÷ √ are used, never library functions whose last digit differs between
//! platforms. Columns and values come from different streams, so that a matrix has the same pattern
//! for all scalar types. All matrices are canonical: columns of every row increase.
//!
//! Values have magnitudes uniform in [0.5, 1.5) and random signs; for integer types magnitudes are
//! 1 to 9.
//!
//! ```
//! use gustav_io::generate::Generator;
//!
//! let grid: Generator = "grid5:100x100".parse()?;
//! let a = grid.build::<f32, u32, u32>(7)?;
//! assert_eq!((a.nrows(), a.nnz()), (10_000, 49_600));
//! # Ok::<(), gustav_core::Error>(())
//! ```

mod args;
mod banded;
mod block;
mod density;
mod empty;
mod fem;
mod grid;
mod hubs;
mod power_law;
mod pruned;
mod rmat;
mod road;
mod rows;
mod sparse;
mod stream;
mod uniform;
mod values;

use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;

use gustav_core::{Buffer, Csr, Error, Index, Result, Scalar};

pub use banded::{Banded, Diagonal};
pub use block::Block;
pub use density::Density;
pub use empty::Empty;
pub use fem::Fem;
pub use grid::{Grid5, Grid27};
pub use hubs::Hubs;
pub use power_law::PowerLaw;
pub use pruned::Pruned;
pub use rmat::Rmat;
pub use road::Road;
pub use sparse::Sparse;
pub use uniform::Uniform;

use args::Args;
use rows::Pattern;

/// Name and arguments of a family of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The name before the colon.
    pub name: &'static str,
    /// The whole description with its arguments in capitals; optional ones in brackets.
    pub usage: &'static str,
    /// One line about the matrix.
    pub about: &'static str,
}

/// One family of matrices.
trait Family: Display + Sized + Sync {
    const KIND: Kind;
    /// Reads the arguments after the colon.
    fn parse(args: &mut Args<'_>) -> Result<Self>;
    /// Rows and columns.
    ///
    /// # Errors
    /// [`Error::Overflow`] when they do not fit 64 bits.
    fn shape(&self) -> Result<(usize, usize)>;
    /// The number of entries, or its expectation; `None` if it is known only after building.
    fn entries(&self) -> Option<u128>;
    /// Row offsets, counted from the first of `rows`, and column indices of these rows. Index types
    /// have been checked against the columns.
    fn pattern<I: Index, O: Index>(&self, rows: Range<usize>, seed: u64) -> Result<Pattern<I, O>>;
}

macro_rules! generators {
    ($($(#[$doc:meta])* $family:ident,)*) => {
        /// A description of a matrix, as `KIND:ARGUMENTS`; see [`Generator::KINDS`].
        #[non_exhaustive]
        #[derive(Clone, Debug, PartialEq)]
        pub enum Generator {
            $($(#[$doc])* $family($family),)*
        }

        impl Generator {
            /// Every family: name, usage, description.
            pub const KINDS: &[Kind] = &[$($family::KIND,)*];

            /// Rows and columns.
            ///
            /// # Errors
            /// [`Error::Overflow`] when they do not fit 64 bits.
            pub fn shape(&self) -> Result<(usize, usize)> {
                match self { $(Generator::$family(f) => f.shape(),)* }
            }

            /// The number of entries, or its expectation; `None` if it is known only after
            /// building.
            pub fn entries(&self) -> Option<u128> {
                match self { $(Generator::$family(f) => f.entries(),)* }
            }

            fn pattern<I: Index, O: Index>(&self, rows: Range<usize>, seed: u64) -> Result<Pattern<I, O>> {
                match self { $(Generator::$family(f) => f.pattern(rows, seed),)* }
            }
        }

        impl Display for Generator {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Generator::$family(family) => write!(f, "{}:{family}", $family::KIND.name),)*
                }
            }
        }

        impl FromStr for Generator {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                let (name, rest) = text.split_once(':').unwrap_or((text, ""));
                $(if name == $family::KIND.name {
                    let mut args = Args::new(text, rest, $family::KIND.usage);
                    let family = $family::parse(&mut args)?;
                    args.end()?;
                    return Ok(Generator::$family(family));
                })*
                let names: Vec<_> = Self::KINDS.iter().map(|k| k.name).collect();
                Err(Error::Argument {
                    name: "generator",
                    found: format!("{text:?}"),
                    expected: format!("one of {}, then its arguments", names.join(", ")),
                })
            }
        }
    };
}

generators! {
    /// 5-point stencil on a grid in the plane.
    Grid5,
    /// 27-point stencil on a grid in space.
    Grid27,
    /// 27-point stencil with several degrees of freedom at every node.
    Fem,
    /// Recursive matrix graph.
    Rmat,
    /// The same number of random columns in every row.
    Uniform,
    /// Every element nonzero with the same probability.
    Sparse,
    /// Dense blocks on the diagonal.
    Block,
    /// Planar graph of low degree.
    Road,
    /// Row lengths from a power law.
    PowerLaw,
    /// Every element near the diagonal.
    Banded,
    /// The diagonal.
    Diagonal,
    /// A few very long rows.
    Hubs,
    /// Many rows without entries.
    Empty,
    /// Pruned weights of a network.
    Pruned,
}

impl Generator {
    /// Builds the matrix.
    ///
    /// # Errors
    /// [`Error::Overflow`] when columns or entries do not fit the index types,
    /// [`Error::OutOfMemory`].
    pub fn build<T: Scalar, I: Index, O: Index>(&self, seed: u64) -> Result<Csr<T, I, O>> {
        let (nrows, ncols) = self.shape()?;
        I::try_from_usize(ncols.saturating_sub(1), "column index")?;
        if let Some(need) = self.entries().filter(|n| *n > u128::from(O::MAX)) {
            return Err(Error::Overflow { what: "row offset", need, index_type: O::TYPE });
        }
        let Pattern { offsets, indices } = self.pattern::<I, O>(0..nrows, seed)?;
        let values = values::values::<T>(0, indices.len(), seed)?;
        Csr::new(nrows, ncols, offsets, indices, values)
    }

    /// The pattern of rows `rows` alone, over all columns: those of the whole matrix that
    /// [`Generator::build`] gives, without the memory of the others. R-MAT draws all edges for it;
    /// other families draw these rows alone.
    ///
    /// # Errors
    /// [`Error::Argument`] for rows that there are not, and as [`Generator::build`].
    pub fn pattern_of_rows<I: Index, O: Index>(
        &self,
        rows: Range<usize>,
        seed: u64,
    ) -> Result<gustav_core::Pattern<I, O>> {
        let (nrows, ncols) = self.shape()?;
        if rows.start > rows.end || rows.end > nrows {
            return Err(Error::Argument {
                name: "rows to generate",
                found: format!("{rows:?}"),
                expected: format!("some of {nrows} rows"),
            });
        }
        I::try_from_usize(ncols.saturating_sub(1), "column index")?;
        let len = rows.len();
        let Pattern { offsets, indices } = self.pattern::<I, O>(rows, seed)?;
        gustav_core::Pattern::new(len, ncols, offsets, indices)
    }

    /// The values of entries `first` to `first + len` − 1 of the whole matrix, counted row by row:
    /// those of rows that [`Generator::pattern_of_rows`] gives, where `first` entries are in rows
    /// before them.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn values_of_entries<T: Scalar>(
        &self,
        first: usize,
        len: usize,
        seed: u64,
    ) -> Result<Buffer<T>> {
        values::values(first, len, seed)
    }
}
