//! A row order: rows distributed over the warps of a CTA.

use gustav_core::Result;
use gustav_core::buffer::try_vec;

use super::{Order, WarpShape};

/// The value of an empty slot: its warp has fewer rows than another.
pub const NO_ROW: u32 = u32::MAX;

/// Rows as an order arranges them, before they are distributed.
pub(super) enum Rows {
    /// One list: row k goes to warp k mod the number of warps.
    Striped(Vec<u32>),
    /// A list for each warp.
    PerWarp(Vec<Vec<u32>>),
}

/// The result of arranging the rows of a matrix.
pub(super) struct Arrangement {
    pub rows: Rows,
    /// Candidates in each neighbourhood of a greedy search, if it was bounded.
    pub bound: Option<usize>,
}

impl Arrangement {
    /// One list of rows, without a bounded search.
    pub fn striped(rows: Vec<u32>) -> Self {
        Arrangement { rows: Rows::Striped(rows), bound: None }
    }
}

/// Rows of a matrix distributed over the warps of a CTA: every row exactly once.
#[derive(Clone, Debug, PartialEq)]
pub struct RowOrder {
    order: Order,
    shape: WarpShape,
    rows: usize,
    bound: Option<usize>,
    slots: Vec<u32>,
}

impl RowOrder {
    pub(super) fn new(
        order: Order,
        shape: WarpShape,
        rows: usize,
        arrangement: Arrangement,
    ) -> Result<Self> {
        let (warps, bound) = (shape.warps, arrangement.bound);
        let deep = match &arrangement.rows {
            Rows::Striped(rows) => rows.len().div_ceil(warps),
            Rows::PerWarp(lists) => lists.iter().map(Vec::len).max().unwrap_or(0),
        };
        let slots = match arrangement.rows {
            Rows::Striped(mut rows) => {
                let missing = deep * warps - rows.len();
                rows.extend(std::iter::repeat_n(NO_ROW, missing));
                rows
            }
            Rows::PerWarp(lists) => {
                let mut slots = try_vec(deep.saturating_mul(warps), "an order of rows")?;
                for k in 0..deep {
                    slots.extend(lists.iter().map(|l| l.get(k).copied().unwrap_or(NO_ROW)));
                }
                slots
            }
        };
        Ok(RowOrder { order, shape, rows, bound, slots })
    }

    /// Which order it is.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The CTA that it was made for.
    pub fn shape(&self) -> WarpShape {
        self.shape
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Candidates in each neighbourhood of a bounded search; `None` if the order is exactly as
    /// defined.
    pub fn bound(&self) -> Option<usize> {
        self.bound
    }

    /// Slots of all warps: slot k belongs to warp k mod `shape().warps`, and holds a row or
    /// [`NO_ROW`]. All warps have the same number of slots.
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// The rows of a warp, in its order.
    pub fn warp(&self, warp: usize) -> impl Iterator<Item = u32> {
        let slots = self.slots.iter().skip(warp).step_by(self.shape.warps);
        slots.copied().filter(|row| *row != NO_ROW)
    }

    /// The rows as the CTA processes them: the first of every warp, the second of every warp, …
    pub fn sequence(&self) -> impl Iterator<Item = u32> {
        self.slots.iter().copied().filter(|row| *row != NO_ROW)
    }
}
