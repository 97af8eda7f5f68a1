//! The input of row orders.

use gustav_core::buffer::try_vec;
use gustav_core::{Error, Index, IndexType, PatternView, Result, parallel};

use crate::facts::CacheLines;

/// The CTA that an order is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct WarpShape {
    /// Warps of a CTA, the source's Nw.
    pub warps: usize,
    /// Lanes of a warp, the source's Nt.
    pub lanes: usize,
    /// Values of a column of B in a cache line.
    pub line: usize,
}

impl Default for WarpShape {
    /// The values of the study: 32 warps, 32 lanes, 32 values of 4 bytes in a line of 128.
    fn default() -> Self {
        WarpShape { warps: 32, lanes: 32, line: 32 }
    }
}

impl WarpShape {
    /// # Errors
    /// [`Error::Argument`] for a 0.
    pub(crate) fn check(self) -> Result<Self> {
        if self.warps > 0 && self.lanes > 0 && self.line > 0 {
            return Ok(self);
        }
        Err(Error::Argument {
            name: "shape of a CTA",
            found: format!("{self:?}"),
            expected: "warps, lanes and a line of at least 1".into(),
        })
    }

    /// Warp load of a row with `length` nonzeros: the most nonzeros that one lane has of it.
    pub(crate) fn load(self, length: usize) -> u64 {
        length.div_ceil(self.lanes) as u64
    }
}

/// How a greedy order searches for the row that is most similar to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Search {
    /// Among all rows if that takes about a second at most, else bounded by 8 candidates.
    #[default]
    Auto,
    /// Among all remaining rows, as the orders are defined: quadratic in the worst case.
    Exact,
    /// Among at most this many remaining rows on each side in each of a few neighbourhoods: the
    /// stored order, the rows with the fewest lines, and rows whose sets of lines have the same
    /// min-hashes. Near-linear; exact when the bound is the number of rows.
    Bounded(usize),
}

/// A matrix, the CTA it is ordered for, and how to search.
pub(super) struct RowView<'a, 'm, I: Index, O: Index> {
    pub a: &'a PatternView<'m, I, O>,
    pub shape: WarpShape,
    pub search: Search,
}

impl<'a, 'm, I: Index, O: Index> RowView<'a, 'm, I, O> {
    pub fn new(a: &'a PatternView<'m, I, O>, shape: WarpShape, search: Search) -> Result<Self> {
        if a.nrows() >= u32::MAX as usize {
            return Err(Error::Overflow {
                what: "rows of an order, and one number for no row",
                need: a.nrows() as u128 + 1,
                index_type: IndexType::U32,
            });
        }
        if search == Search::Bounded(0) {
            return Err(Error::Argument {
                name: "bound of a search",
                found: "0".into(),
                expected: "at least 1 candidate".into(),
            });
        }
        Ok(RowView { a, shape: shape.check()?, search })
    }

    /// Warp load of each row.
    pub fn loads(&self) -> Result<Vec<u64>> {
        let mut loads = try_vec(self.a.nrows(), "warp loads")?;
        loads.resize(self.a.nrows(), 0);
        parallel::each_mut(&mut loads, 1 << 12, |row, load| {
            *load = self.shape.load(self.a.row_len(row));
        });
        Ok(loads)
    }

    /// Cache lines of each row.
    pub fn lines(&self) -> Result<CacheLines> {
        CacheLines::new(self.a, self.shape.line)
    }
}

/// `rows` by ascending `key`, stable.
pub(super) fn sorted_by<K: Ord + Send>(rows: usize, key: impl Fn(u32) -> K) -> Result<Vec<u32>> {
    let mut keyed = try_vec(rows, "rows to sort")?;
    keyed.extend((0..rows as u32).map(|row| (key(row), row)));
    parallel::sort(&mut keyed);
    let mut sorted = try_vec(rows, "an order of rows")?;
    sorted.extend(keyed.into_iter().map(|(_, row)| row));
    Ok(sorted)
}
