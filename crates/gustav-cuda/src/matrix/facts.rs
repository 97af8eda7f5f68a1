//! Facts about a pattern that plans counted, kept with it.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use gustav_plan::{RowLengths, RowSimilarity};

/// Facts about a pattern, each counted by the first plan that needs it.
#[derive(Debug, Default)]
pub(crate) struct PatternFacts {
    /// How many rows have each length.
    pub lengths: OnceLock<RowLengths>,
    /// The columns that neighbouring rows have in common.
    pub similarity: OnceLock<RowSimilarity>,
    // Mean nonzeros of a segment, by the rows of B in a tile.
    per_segment: Mutex<BTreeMap<u64, f64>>,
}

impl PatternFacts {
    /// Mean nonzeros of a segment with tiles of `tile` rows of B, if they were counted.
    pub fn per_segment(&self, tile: u64) -> Option<f64> {
        self.per_segment.lock().unwrap_or_else(PoisonError::into_inner).get(&tile).copied()
    }

    /// Keeps what was counted with `tiles`.
    pub fn keep_per_segment(&self, tiles: &[u64], counted: &[f64]) {
        let found = tiles.iter().copied().zip(counted.iter().copied());
        self.per_segment.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
    }
}
