//! Rows cut at the boundaries of tiles of B's rows, see `kernels/schedule/tile_list.cu`.

use gustav_core::buffer::try_vec;
use gustav_core::{Index, IndexType, Problem, Result};

use super::Target;
use super::pattern::Pattern;
use super::segments::{LENGTH_BITS, Segments};
use crate::device::DeviceBuffer;
use crate::jit::Request;

const BLOCK: u32 = 256;
// Rows of a CTA: many if it counts segments in shared memory, else one for every warp.
const WINDOW: u64 = 256;
const NARROW: u64 = BLOCK as u64 / 32;
// Most bins that a CTA counts in shared memory.
const MOST_BINS: u64 = 1024;

/// Classes of segment lengths.
pub(crate) const CLASSES: usize = 16;

/// Parameters of cutting rows into segments, and of listing these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cutting {
    /// Most nonzeros of a segment.
    pub most: u32,
    /// Whether segments are listed by tile and by [`CLASSES`] of their length. Otherwise those of
    /// unsorted rows are listed last, and tiles are enlarged until shared memory has a counter for
    /// each.
    pub by_class: bool,
    /// The target that parts of a cut row name.
    pub target: Target,
}

/// A list of segments by tile on the device.
pub(crate) struct TileSegments {
    pub segments: Segments,
    /// Number of segments of each class of each tile, the longest first.
    pub counts: Vec<u64>,
}

parameter_block! {
    struct Arguments {
        offsets: *const Offset,
        indices: *const Index,
        list: *mut u64,
        cut_rows: *mut u64,
        /// The cut row of each slot, if parts name their slot.
        slot_rows: *mut u64,
        /// Number of segments of each row; the highest bit marks unsorted columns.
        segments: *mut u32,
        /// Next slot, next cut row, next entry of each bin.
        cursors: *mut u64,
        rows: u64,
        /// Rows of B in a tile.
        tile: u64,
        tiles: u32,
    }
}

impl Cutting {
    /// For tiles that stay in L2: segments of one class, combined through slots.
    pub(crate) const IN_L2: Cutting = Cutting { most: 1024, by_class: false, target: Target::Slot };

    fn window(counted: bool) -> u64 {
        if counted { WINDOW } else { NARROW }
    }

    fn classes(&self) -> usize {
        if self.by_class { CLASSES } else { 1 }
    }

    /// The source with its parameters; `counted` if shared memory counts all bins.
    pub(crate) fn request(&self, index: IndexType, offset: IndexType, counted: bool) -> Request {
        request!("schedule/tile_list.cu")
            .with_block::<Arguments>()
            .with("INDEX", index)
            .with("OFFSET", offset)
            .with("LENGTH_BITS", LENGTH_BITS)
            .with("BLOCK", BLOCK)
            .with("WINDOW", Self::window(counted))
            .with("MOST", self.most)
            .with("MOST_BINS", MOST_BINS)
            .with("CLASSES", self.classes())
            .with("BY_CLASS", self.by_class)
            .with("COUNTED", counted)
            .with("TARGET", self.target as u32)
    }

    /// Queues the list of segments by tiles of `tile` rows of B; the caller orders its uses.
    pub(crate) fn list(
        &self,
        p: &Pattern<'_>,
        problem: &Problem,
        tile: u64,
    ) -> Result<TileSegments> {
        let device = p.device();
        let (rows, inner) = (problem.output_rows(), problem.inner() as u64);
        Segments::check_rows(rows)?;
        let least = if self.by_class { 1 } else { inner.div_ceil(MOST_BINS) };
        let tile = tile.max(least).max(1);
        let tiles = inner.div_ceil(tile).max(1) as usize;
        let bins = tiles * self.classes();
        // With few rows, as many CTAs as possible.
        let counted = bins as u64 <= MOST_BINS && rows as u64 > MOST_BINS;
        let module = device.module(&self.request(p.index_type, p.offset_type, counted))?;
        let of_rows = DeviceBuffer::<u32>::queued(device, rows, "segments of rows")?;
        let mut cursors = DeviceBuffer::<u64>::queued(device, 2 + bins, "segments of tiles")?;
        cursors.fill(0, device.stream())?;
        let mut arguments = Arguments {
            offsets: p.offsets,
            indices: p.indices,
            list: 0,
            cut_rows: 0,
            slot_rows: 0,
            segments: of_rows.address(),
            cursors: cursors.address(),
            rows: rows as u64,
            tile,
            tiles: u32::try_from_usize(tiles, "tile of B")?,
        };
        let grid = ((rows as u64).div_ceil(Self::window(counted)), 1);
        // SAFETY: there is a count for every row and bin.
        unsafe { module.kernel(c"tile_count")?.launch(device.stream(), grid, BLOCK, &arguments)? };
        let mut found = try_vec(2 + bins, "segments of tiles")?;
        found.resize(2 + bins, 0u64);
        cursors.read(&mut found)?;
        let mut counts = try_vec(bins, "segments of tiles")?;
        counts.extend_from_slice(&found[2..]);
        let (slots, cut) = (found[0] as usize, found[1] as usize);
        // Slots and cut rows are counted again; bins begin where the previous ones end.
        found[..2].fill(0);
        let mut count = 0;
        for bin in &mut found[2..] {
            count += std::mem::replace(bin, count);
        }
        cursors.write(&found)?;
        let slots = if self.target == Target::Slot { slots } else { 0 };
        Segments::check_slots(slots)?;
        let segments = Segments {
            list: DeviceBuffer::queued(device, 2 * count as usize, "segments")?,
            cut_rows: DeviceBuffer::queued(device, cut, "cut rows")?,
            slot_rows: DeviceBuffer::queued(device, 2 * slots, "parts of cut rows")?,
            count: count as usize,
            long: count as usize,
        };
        arguments.list = segments.list.address();
        arguments.cut_rows = segments.cut_rows.address();
        arguments.slot_rows = segments.slot_rows.address();
        // SAFETY: as above; the list has an entry for every segment that was counted, and freed
        // buffers wait for the stream.
        unsafe { module.kernel(c"tile_list")?.launch(device.stream(), grid, BLOCK, &arguments)? };
        Ok(TileSegments { segments, counts })
    }
}

#[cfg(test)]
mod tests {
    use super::super::segments::tests::check_list;
    use super::*;
    use crate::device::Device;
    use crate::matrix::DeviceCsr;
    use gustav_core::Csr;

    #[test]
    #[ignore = "needs a CUDA device"]
    fn segments_hold_every_nonzero_once_tile_after_tile() {
        // Shared memory counts segments only for many rows.
        for rows in [700, 1500] {
            check(rows, 5000);
        }
    }

    fn check(rows: usize, inner: usize) {
        let device = Device::cuda(0).expect("a CUDA device");
        let (mut offsets, mut indices) = (vec![0u32], Vec::new());
        for r in 0..rows {
            // Empty, short, long and unsorted rows.
            let length = [0, 3, 40, 2500][r % 4];
            let row = (0..length).map(|k| ((r + k * inner / length.max(1)) % inner) as u32);
            let mut row: Vec<u32> = row.collect();
            if r % 3 > 0 {
                row.sort_unstable();
            }
            indices.extend(row);
            offsets.push(indices.len() as u32);
        }
        let nnz = indices.len();
        let a = Csr::<f32>::new(rows, inner, offsets.clone(), indices.clone(), vec![1.0; nnz])
            .expect("a matrix");
        let a = DeviceCsr::upload(&device, &a.view()).expect("A");
        let by_class = |target| Cutting { most: 64, by_class: true, target };
        let cuttings = [
            Cutting::IN_L2,
            by_class(Target::Slot),
            by_class(Target::Row),
            by_class(Target::CutRow),
        ];
        for (tile, cutting) in [1, 64, 999, 5000, 1 << 40]
            .into_iter()
            .flat_map(|tile| cuttings.map(|cutting| (tile, cutting)))
        {
            let pattern = crate::schedule::pattern::Pattern::new(a.pattern()).expect("a pattern");
            let segments =
                cutting.list(&pattern, &a.pattern().spmm(1).problem, tile).expect("segments");
            let s = &segments.segments;
            check_list(s, &offsets, cutting.most, cutting.target);
            assert_eq!(segments.counts.iter().sum::<u64>(), s.count as u64);
            let least = if cutting.by_class { 1 } else { inner.div_ceil(MOST_BINS as usize) };
            let tile = tile.max(least as u64);
            let list = s.list.to_host().expect("the list");
            let last = (inner as u64 - 1) / tile;
            let of = |k: usize| u64::from(indices[k]) / tile;
            let mut reached = 0;
            for pair in list.chunks_exact(2) {
                let (first, length) = (pair[0] as usize, pair[1] & ((1 << LENGTH_BITS) - 1));
                let segment = first..first + length as usize;
                // A segment of a sorted row lies in one tile; those of unsorted rows are last.
                let tiles = segment.map(of);
                let (low, high) = (tiles.clone().min().unwrap_or(0), tiles.max().unwrap_or(0));
                assert!(low == high || !cutting.by_class, "in two tiles");
                let own = if low == high { low } else { last };
                assert!(own >= reached || low == high && reached == last, "out of order");
                reached = reached.max(own);
            }
        }
    }
}
