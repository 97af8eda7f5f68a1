//! The pattern of op(A) on a device, of any index types, with facts that are computed on first use.

use std::cell::OnceCell;

use gustav_core::buffer::try_vec;
use gustav_core::{Index, IndexType, Result};
use gustav_plan::{RowLengths, RowOrder, RowSimilarity, TileReuse};

use super::lengths::{self, Wanted};
use crate::device::{Device, DeviceBuffer};
use crate::matrix::transpose::TransposedPattern;
use crate::matrix::{DevicePattern, PatternFacts};

/// Row offsets and column indices of op(A).
pub(crate) struct Pattern<'a> {
    device: &'a Device,
    /// Address of the row offsets.
    pub offsets: u64,
    /// Address of the column indices.
    pub indices: u64,
    pub offset_type: IndexType,
    pub index_type: IndexType,
    pub rows: usize,
    pub nnz: usize,
    read: Box<dyn Fn() -> Result<Vec<u64>> + 'a>,
    host: OnceCell<Vec<u64>>,
    facts: &'a PatternFacts,
    order: Option<&'a RowOrder>,
}

impl<'a> Pattern<'a> {
    /// That of A, for reads on the device's stream.
    pub(crate) fn new<I: Index, O: Index>(pattern: &'a DevicePattern<I, O>) -> Result<Self> {
        Self::of(pattern.offsets(), pattern.indices(), pattern.facts())
    }

    /// That of Aᵀ, for reads on the device's stream.
    pub(crate) fn transposed<I: Index, O: Index>(
        pattern: &'a TransposedPattern<I, O>,
    ) -> Result<Self> {
        Self::of(&pattern.offsets, &pattern.indices, &pattern.facts)
    }

    fn of<I: Index, O: Index>(
        offsets: &'a DeviceBuffer<O>,
        indices: &'a DeviceBuffer<I>,
        facts: &'a PatternFacts,
    ) -> Result<Self> {
        let read = move || {
            let found = offsets.to_host()?;
            let mut wide = try_vec(found.len(), "row offsets")?;
            wide.extend(found.iter().map(|o| o.to_usize() as u64));
            Ok(wide)
        };
        offsets.join()?;
        indices.join()?;
        Ok(Pattern {
            device: offsets.device(),
            offsets: offsets.address(),
            indices: indices.address(),
            offset_type: O::TYPE,
            index_type: I::TYPE,
            rows: offsets.len() - 1,
            nnz: indices.len(),
            read: Box::new(read),
            host: OnceCell::new(),
            facts,
            order: None,
        })
    }

    /// The same with the row order `order`.
    pub(crate) fn ordered(self, order: Option<&'a RowOrder>) -> Self {
        Pattern { order, ..self }
    }

    /// The row order, if one was given.
    pub(crate) fn order(&self) -> Option<&'a RowOrder> {
        self.order
    }

    /// The device.
    pub(crate) fn device(&self) -> &Device {
        self.device
    }

    /// The row offsets on the host, copied in the first call.
    pub(crate) fn host_offsets(&self) -> Result<&[u64]> {
        if self.host.get().is_none() {
            let offsets = (self.read)()?;
            return Ok(self.host.get_or_init(|| offsets));
        }
        Ok(self.host.get().map_or(&[], Vec::as_slice))
    }

    /// Counts those facts that are not known yet: row lengths, row similarity, and how tiles of so many rows of B
    /// divide the rows. All of it takes one wait, where the getters below take one each.
    pub(crate) fn count(&self, tiles: &[u64]) -> Result<()> {
        let unknown = |tile: &u64| self.facts.per_segment(*tile).is_none();
        let mut tiles: Vec<u64> = tiles.iter().copied().filter(unknown).collect();
        tiles.sort_unstable();
        tiles.dedup();
        self.add_facts(Wanted {
            lengths: self.facts.lengths.get().is_none(),
            similarity: self.facts.similarity.get().is_none(),
            tiles: &tiles,
        })
    }

    fn add_facts(&self, wanted: Wanted<'_>) -> Result<()> {
        if !wanted.lengths && !wanted.similarity && wanted.tiles.is_empty() {
            return Ok(());
        }
        let counted = lengths::count(self, wanted)?;
        // If another thread was faster, its equal result stays.
        if let Some(lengths) = counted.lengths {
            self.facts.lengths.get_or_init(|| lengths);
        }
        if let Some(similarity) = counted.similarity {
            self.facts.similarity.get_or_init(|| similarity);
        }
        self.facts.keep_per_segment(wanted.tiles, &counted.per_segment);
        Ok(())
    }

    /// Row lengths, counted in the first call for the pattern.
    pub(crate) fn lengths(&self) -> Result<&RowLengths> {
        if self.facts.lengths.get().is_none() {
            self.add_facts(Wanted { lengths: true, ..Wanted::default() })?;
        }
        Ok(self.facts.lengths.get().expect("lengths were counted"))
    }

    /// How tiles of `tile` of the `inner` rows of B would divide the rows, sampled in the first call for the pattern.
    pub(crate) fn tile_reuse(&self, inner: usize, tile: u64) -> Result<TileReuse> {
        let tile = tile.max(1);
        if self.facts.per_segment(tile).is_none() {
            self.add_facts(Wanted { tiles: &[tile], ..Wanted::default() })?;
        }
        let per_segment = self.facts.per_segment(tile).expect("segments were counted");
        Ok(TileReuse { per_segment, tiles: (inner as u64).div_ceil(tile) })
    }

    /// The columns that neighbouring rows have in common, sampled in the first call for the pattern.
    pub(crate) fn similarity(&self) -> Result<RowSimilarity> {
        if self.facts.similarity.get().is_none() {
            self.add_facts(Wanted { similarity: true, ..Wanted::default() })?;
        }
        Ok(*self.facts.similarity.get().expect("blocks were counted"))
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;
    use gustav_plan::cost::{Facts, HostFacts};

    use super::*;
    use crate::matrix::DeviceCsr;

    #[test]
    #[ignore = "needs a CUDA device"]
    fn facts_are_those_of_the_host_and_are_counted_once_for_a_pattern() {
        let device = Device::cuda(0).expect("a CUDA device");
        // Rows of 0 to 12 nonzeros, two of which follow each other with the same columns.
        let columns = |row: usize| (0..row % 13).map(move |k| (row / 2 * 7 + k * 31) % 5000);
        let (mut offsets, mut indices) = (vec![0u32], Vec::new());
        for row in 0..900 {
            let mut of_row: Vec<_> = columns(row).map(|column| column as u32).collect();
            of_row.sort_unstable();
            indices.extend(of_row);
            offsets.push(indices.len() as u32);
        }
        let values = vec![1.0; indices.len()];
        let a = Csr::<f32>::new(900, 5000, offsets, indices, values).expect("a matrix");
        let on = DeviceCsr::upload(&device, &a.view()).expect("A");
        let host = HostFacts::new(a.pattern().view());

        let first = Pattern::new(on.pattern()).expect("a pattern");
        first.count(&[1, 64, 64, 5000]).expect("facts");
        let lengths = first.lengths().expect("lengths");
        assert_eq!(format!("{lengths:?}"), format!("{:?}", host.lengths().expect("lengths")));
        let similarity = host.similarity().expect("similarity");
        assert_eq!(first.similarity().expect("similarity").distinct, similarity.distinct);
        for tile in [1, 64, 500, 5000] {
            let found = first.tile_reuse(5000, tile).expect("reuse");
            assert_eq!(found, host.tile_reuse(5000, tile).expect("reuse"), "{tile}");
        }

        let second = Pattern::new(on.pattern()).expect("a pattern");
        assert!(std::ptr::eq(lengths, second.lengths().expect("lengths")));
        let without = on.pattern().without_facts();
        let third = Pattern::new(&without).expect("a pattern");
        assert!(!std::ptr::eq(lengths, third.lengths().expect("lengths")));
    }
}
