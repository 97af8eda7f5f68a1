//! The pattern of op(A) on a device, of any index types, with facts that are computed on first use.

use std::cell::OnceCell;

use gustav_core::buffer::try_vec;
use gustav_core::{Index, IndexType, Result};
use gustav_plan::{RowLengths, RowOrder, RowSimilarity, TileReuse};

use super::lengths;
use crate::device::{Device, DeviceBuffer};

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
    lengths: OnceCell<RowLengths>,
    similarity: OnceCell<RowSimilarity>,
    order: Option<&'a RowOrder>,
}

impl<'a> Pattern<'a> {
    /// The pattern of these arrays, for reads on the device's stream.
    pub(crate) fn new<I: Index, O: Index>(
        offsets: &'a DeviceBuffer<O>,
        indices: &'a DeviceBuffer<I>,
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
            lengths: OnceCell::new(),
            similarity: OnceCell::new(),
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

    /// Row lengths, counted in the first call.
    pub(crate) fn lengths(&self) -> Result<&RowLengths> {
        if let Some(found) = self.lengths.get() {
            return Ok(found);
        }
        let found = lengths::row_lengths(self)?;
        Ok(self.lengths.get_or_init(|| found))
    }

    /// How tiles of `tile` of the `inner` rows of B would divide the rows, sampled.
    pub(crate) fn tile_reuse(&self, inner: usize, tile: u64) -> Result<TileReuse> {
        lengths::tile_reuse(self, inner, tile)
    }

    /// How many columns neighbouring rows share, sampled in the first call.
    pub(crate) fn similarity(&self) -> Result<RowSimilarity> {
        if let Some(found) = self.similarity.get() {
            return Ok(*found);
        }
        let found = lengths::row_similarity(self)?;
        Ok(*self.similarity.get_or_init(|| found))
    }
}
