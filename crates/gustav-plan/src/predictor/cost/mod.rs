//! Simulated times of the candidates of the row orders study: unlike the study's features, they
//! combine load balance and cache reuse under a row order into one time.
//!
//! The simulation covers one CTA of `output-stationary` on a multiprocessor of its own, with cold
//! caches: 32 warps that process their rows, each with its chain of dependent loads (order,
//! offsets, indices and values, B), and for every load whether it hits L1, L2 or memory. All CTAs
//! read the same A at the same pace, so one represents all of them if there are no more CTAs than
//! multiprocessors.

mod caches;
mod constants;
mod strip;

use gustav_core::buffer::try_vec;
use gustav_core::{Index, PatternView, Result};

pub use self::constants::CtaCosts;
use super::Candidate;
use crate::orders::{NO_ROW, Search, WarpShape};
use crate::{Algorithm, RowOrder};

/// Whether the time of a candidate can be simulated: the study's kernel in its default
/// configuration, with rows as stored, nonempty rows alone, or a row order.
pub fn simulates(candidate: &Candidate) -> bool {
    let Candidate { algorithm, config, order } = candidate;
    match algorithm {
        Some(Algorithm::OutputStationary) => config.is_none(),
        Some(Algorithm::Dcsr) => config.is_none() && order.is_none(),
        _ => false,
    }
}

/// Candidates to simulate on a matrix, with their row orders.
pub struct Simulation<'a, I: Index, O: Index> {
    pattern: PatternView<'a, I, O>,
    candidates: Vec<SlotRows>,
}

impl<'a, I: Index, O: Index> Simulation<'a, I, O> {
    /// Computes the row orders of `candidates`; `None` if one of them cannot be simulated
    /// ([`simulates`]).
    ///
    /// # Errors
    /// As [`Order::of`](crate::Order::of).
    pub fn new(pattern: PatternView<'a, I, O>, candidates: &[Candidate]) -> Result<Option<Self>> {
        if !candidates.iter().all(simulates) {
            return Ok(None);
        }
        let slot_rows = |candidate| SlotRows::new(&pattern, candidate);
        let candidates = candidates.iter().map(slot_rows).collect::<Result<_>>()?;
        Ok(Some(Simulation { pattern, candidates }))
    }

    /// Estimated cycles of each candidate for one column of B with values of four bytes.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn cycles(&self, costs: &CtaCosts) -> Result<Vec<f64>> {
        self.candidates.iter().map(|rows| strip::cycles(&self.pattern, rows, costs)).collect()
    }
}

/// The row of each slot.
enum SlotRows {
    /// Slot k holds row k.
    Stored(usize),
    /// The nonempty rows, which have offsets of their own.
    Filled(Vec<u32>),
    /// By a row order.
    Ordered(RowOrder),
}

impl SlotRows {
    fn new<I: Index, O: Index>(a: &PatternView<'_, I, O>, candidate: &Candidate) -> Result<Self> {
        Ok(match candidate.order {
            Some(order) => SlotRows::Ordered(order.of(a, WarpShape::default(), Search::Auto)?),
            None if candidate.algorithm == Some(Algorithm::Dcsr) => {
                let mut filled = try_vec::<u32>(a.nrows(), "rows that hold nonzeros")?;
                filled.extend((0..a.nrows() as u32).filter(|row| a.row_len(*row as usize) > 0));
                SlotRows::Filled(filled)
            }
            None => SlotRows::Stored(a.nrows()),
        })
    }

    fn slots(&self) -> usize {
        match self {
            SlotRows::Stored(rows) => *rows,
            SlotRows::Filled(rows) => rows.len(),
            SlotRows::Ordered(order) => order.slots().len(),
        }
    }

    /// The row of a slot, if it holds one.
    fn row(&self, slot: usize) -> Option<usize> {
        let row = match self {
            SlotRows::Stored(_) => return Some(slot),
            SlotRows::Filled(rows) => rows[slot],
            SlotRows::Ordered(order) => order.slots()[slot],
        };
        (row != NO_ROW).then_some(row as usize)
    }

    /// Whether slots are read from a list.
    fn is_listed(&self) -> bool {
        !matches!(self, SlotRows::Stored(_))
    }

    /// Index of the row offset of `row`, which is in `slot`.
    fn offset(&self, slot: usize, row: usize) -> usize {
        if matches!(self, SlotRows::Filled(_)) { slot } else { row }
    }
}
