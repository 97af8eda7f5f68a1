//! Rows cut where tiles of B's rows begin, see `kernels/schedule/tile_list.cu`.

use gustav_core::{IndexType, Problem, Result};

use super::segments::{LENGTH_BITS, Segments};
use crate::DeviceBuffer;
use crate::jit::Request;
use crate::spmm::pattern::Pattern;

const BLOCK: u32 = 256;
// Rows of a CTA.
const WINDOW: u64 = 256;
// Entries of a piece at most.
const MOST: u32 = 1024;
/// Tiles at most: a CTA counts the pieces of all of them.
pub(crate) const MOST_TILES: u64 = 1024;

#[repr(C)]
#[derive(Clone, Copy)]
struct Arguments {
    offsets: u64,
    indices: u64,
    list: u64,
    cut_rows: u64,
    slot_rows: u64,
    pieces: u64,
    cursors: u64,
    rows: u64,
    tile: u64,
    tiles: u64,
}

/// The source with its parameters.
pub(crate) fn request(index: IndexType, offset: IndexType) -> Request {
    Request::new("schedule/tile_list.cu", include_str!("../../kernels/schedule/tile_list.cu"))
        .with("INDEX", index)
        .with("OFFSET", offset)
        .with("LENGTH_BITS", LENGTH_BITS)
        .with("BLOCK", BLOCK)
        .with("WINDOW", WINDOW)
        .with("MOST", MOST)
        .with("MOST_TILES", MOST_TILES)
}

/// Queues a list of segments, tile after tile of `tile` rows of B, to be waited for by the caller.
pub(crate) fn segments(p: &Pattern<'_>, problem: &Problem, tile: u64) -> Result<Segments> {
    let device = p.device();
    let rows = problem.output_rows();
    Segments::check_rows(rows)?;
    let tile = tile.max((problem.inner() as u64).div_ceil(MOST_TILES)).max(1);
    let tiles = (problem.inner() as u64).div_ceil(tile).max(1) as usize;
    let module = device.module(&request(p.index_type, p.offset_type))?;
    let pieces = DeviceBuffer::<u32>::queued(device, rows, "pieces of rows")?;
    let mut cursors = DeviceBuffer::<u64>::queued(device, 2 + tiles, "pieces of tiles")?;
    cursors.fill(0, device.stream())?;
    let mut arguments = Arguments {
        offsets: p.offsets,
        indices: p.indices,
        list: 0,
        cut_rows: 0,
        slot_rows: 0,
        pieces: pieces.address(),
        cursors: cursors.address(),
        rows: rows as u64,
        tile,
        tiles: tiles as u64,
    };
    let grid = ((rows as u64).div_ceil(WINDOW), 1);
    // SAFETY: `Arguments` is the kernel's parameter; there is a count for every row and tile.
    unsafe { module.kernel(c"tile_count")?.launch(device.stream(), grid, BLOCK, &arguments)? };
    let mut counts = vec![0u64; 2 + tiles];
    cursors.read(&mut counts)?;
    let (slots, cut) = (counts[0] as usize, counts[1] as usize);
    // Slots and cut rows are counted anew; tiles begin where the ones before them end.
    counts[..2].fill(0);
    let mut count = 0;
    for place in &mut counts[2..] {
        count += std::mem::replace(place, count);
    }
    cursors.write(&counts)?;
    let made = Segments {
        list: DeviceBuffer::queued(device, 2 * count as usize, "segments")?,
        cut_rows: DeviceBuffer::queued(device, 3 * cut, "cut rows")?,
        slot_rows: DeviceBuffer::queued(device, slots, "parts of cut rows")?,
        count: count as usize,
        long: count as usize,
    };
    arguments.list = made.list.address();
    arguments.cut_rows = made.cut_rows.address();
    arguments.slot_rows = made.slot_rows.address();
    // SAFETY: as above; every piece that was counted has its place, and freed buffers wait for the
    // stream.
    unsafe { module.kernel(c"tile_list")?.launch(device.stream(), grid, BLOCK, &arguments)? };
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::super::segments::tests::check_list;
    use super::*;
    use crate::schedule::Target;
    use crate::{Device, DeviceCsr};
    use gustav_core::Csr;

    #[test]
    #[ignore = "needs a CUDA device"]
    fn pieces_hold_every_nonzero_once_tile_after_tile() {
        let device = Device::cuda(0).expect("a CUDA device");
        let (rows, inner) = (700, 5000);
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
        for tile in [1, 64, 999, 5000, 1 << 40] {
            let pattern =
                crate::spmm::pattern::Pattern::new(a.offsets(), a.indices()).expect("a pattern");
            let s = segments(&pattern, &a.spmm(), tile).expect("segments");
            check_list(&s, &offsets, MOST, Target::Slot);
            let tile = tile.max(inner.div_ceil(MOST_TILES as usize) as u64);
            let list = s.list.to_host().expect("the list");
            let last = (inner as u64 - 1) / tile;
            let of = |k: usize| u64::from(indices[k]) / tile;
            let mut reached = 0;
            for pair in list.chunks_exact(2) {
                let (first, length) = (pair[0] as usize, pair[1] & ((1 << LENGTH_BITS) - 1));
                let piece = first..first + length as usize;
                // A piece of a sorted row lies in one tile; those of unsorted rows are last.
                let tiles = piece.map(of);
                let (low, high) = (tiles.clone().min().unwrap_or(0), tiles.max().unwrap_or(0));
                let own = if low == high { low } else { last };
                assert!(own >= reached || low == high && reached == last, "out of order");
                reached = reached.max(own);
            }
        }
    }
}
