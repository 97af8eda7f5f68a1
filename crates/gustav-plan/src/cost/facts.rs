//! What the model asks of a pattern, counted by a backend on its device or here on a host.

use std::cell::OnceCell;

use gustav_core::{Index, PatternView, Result};

use crate::facts::row_lengths::{COUNTS, add};
use crate::{RowLengths, RowSimilarity, TileReuse};

/// Facts about a pattern.
pub trait Facts {
    /// The lengths of its rows.
    ///
    /// # Errors
    /// Those of a device.
    fn lengths(&self) -> Result<&RowLengths>;

    /// The columns that neighbouring rows share, from a sample.
    ///
    /// # Errors
    /// Those of a device.
    fn similarity(&self) -> Result<RowSimilarity>;

    /// How tiles of `tile` of the `inner` rows of B would divide the rows, from a sample.
    ///
    /// # Errors
    /// Those of a device.
    fn tile_reuse(&self, inner: usize, tile: u64) -> Result<TileReuse>;
}

/// Facts about a pattern in host memory.
pub struct HostFacts<'a, I: Index, O: Index> {
    pattern: PatternView<'a, I, O>,
    lengths: RowLengths,
    similarity: OnceCell<RowSimilarity>,
}

// Samples, and most distinct columns of a block and most nonzeros of a row that are read of each, as on a GPU.
const BLOCKS: usize = 2048;
const MOST_DISTINCT: usize = 96;
const ROWS: usize = 1024;
const MOST_NONZEROS: usize = 1024;
// Rows are cut at whole chunks of so many nonzeros.
const ALIGNMENT: u64 = 8;

impl<'a, I: Index, O: Index> HostFacts<'a, I, O> {
    /// Counts the row lengths of `pattern`.
    pub fn new(pattern: PatternView<'a, I, O>) -> Self {
        let mut counts = vec![0u64; COUNTS];
        for ends in pattern.offsets().windows(2) {
            let [first, last] = [ends[0], ends[1]].map(|offset| offset.to_usize() as u64);
            add(&mut counts, last - first, last - first / ALIGNMENT * ALIGNMENT, 1);
        }
        let lengths = RowLengths::new(pattern.nrows(), pattern.nnz(), counts);
        let lengths = lengths.expect("as many counts as there are bins");
        HostFacts { pattern, lengths, similarity: OnceCell::new() }
    }

    /// Nonzeros and distinct columns of sampled blocks of `height` rows.
    fn distinct(&self, height: usize) -> (u64, u64) {
        let rows = self.pattern.nrows();
        let samples = BLOCKS.min(rows);
        let (mut nonzeros, mut distinct) = (0, 0);
        for sample in 0..samples {
            let first = sample * (rows / samples) / height * height;
            let of_row = |r: usize| self.pattern.row(r).iter().map(|c| c.to_usize());
            let mut columns: Vec<_> = (first..rows.min(first + height)).flat_map(of_row).collect();
            columns.sort_unstable();
            let runs = columns.chunk_by(|a, b| a == b).take(MOST_DISTINCT);
            for run in runs {
                (nonzeros, distinct) = (nonzeros + run.len() as u64, distinct + 1);
            }
        }
        (nonzeros, distinct)
    }
}

impl<I: Index, O: Index> Facts for HostFacts<'_, I, O> {
    fn lengths(&self) -> Result<&RowLengths> {
        Ok(&self.lengths)
    }

    fn similarity(&self) -> Result<RowSimilarity> {
        let counted = || RowSimilarity::new([2, 3, 4, 8].map(|height| self.distinct(height)));
        Ok(*self.similarity.get_or_init(counted))
    }

    fn tile_reuse(&self, inner: usize, tile: u64) -> Result<TileReuse> {
        let (rows, tile) = (self.pattern.nrows(), tile.max(1));
        let samples = ROWS.min(rows);
        let (mut nonzeros, mut segments) = (0usize, 0usize);
        for sample in 0..samples {
            let columns = self.pattern.row(sample * rows / samples);
            let columns = &columns[..columns.len().min(MOST_NONZEROS)];
            let tile_of = |column: &I| column.to_usize() as u64 / tile;
            nonzeros += columns.len();
            segments += columns.chunk_by(|a, b| tile_of(a) == tile_of(b)).count();
        }
        let per_segment = if segments == 0 { 0.0 } else { nonzeros as f64 / segments as f64 };
        Ok(TileReuse { per_segment, tiles: (inner as u64).div_ceil(tile) })
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;

    #[test]
    fn facts_of_rows_in_pairs() {
        let offsets: Vec<u32> = (0..=8).map(|row| row * 3).collect();
        let indices: Vec<u32> = (0..8).flat_map(|row| [0, 1, 2].map(|k| row / 2 * 3 + k)).collect();
        let a = Csr::<f32>::new(8, 12, offsets, indices, vec![1.0; 24]).expect("a matrix");
        let view = a.pattern().view();
        let facts = HostFacts::new(view);
        assert_eq!(facts.lengths().expect("lengths").max(), 3);
        let similarity = facts.similarity().expect("similarity");
        assert_eq!((similarity.distinct[0], similarity.distinct[2]), (0.5, 0.5));
        let reuse = facts.tile_reuse(12, 6).expect("reuse");
        assert_eq!((reuse.per_segment, reuse.tiles), (3.0, 2));
    }
}
