//! The nonzeros of every tile of positions, listed on the device. See
//! `kernels/schedule/tile_nonzeros.cu`.

use gustav_core::{IndexType, Problem, Result};

use super::pattern::Pattern;
use crate::device::{DeviceBuffer, Stream};
use crate::jit::{Request, source};
use crate::matrix::scan::Scan;

const BLOCK: u32 = 256;

/// Nonzeros by tile; tiles have `rows` x `columns` positions, at most 65536, and are numbered row
/// by row.
pub(crate) struct TileNonzeros {
    /// First entry of every tile, and their number.
    pub begins: DeviceBuffer<u64>,
    /// Position of each nonzero in the values, of type `position`.
    pub positions: DeviceBuffer<u32>,
    /// Position of each nonzero in its tile: row * columns + column.
    pub places: DeviceBuffer<u16>,
    pub position: IndexType,
    /// Tiles side by side.
    pub across: usize,
    pub tiles: usize,
}

parameter_block! {
    struct Arguments {
        offsets: *const Offset,
        indices: *const Index,
        begins: *mut u64,
        /// For every tile the next entry to write.
        next: *mut u64,
        positions: *mut Position,
        places: *mut u16,
        rows: u64,
        nonzeros: u64,
        /// Tiles side by side.
        across: u64,
    }
}

impl TileNonzeros {
    /// The source with its parameters.
    pub(crate) fn request(
        index: IndexType,
        offset: IndexType,
        position: IndexType,
        rows: u32,
        columns: u32,
    ) -> Request {
        request!("schedule/tile_nonzeros.cu")
            .with_block::<Arguments>()
            .with("INDEX", index)
            .with("OFFSET", offset)
            .with("POSITION", position)
            .with("BLOCK", BLOCK)
            .with("ROWS", rows)
            .with("COLUMNS", columns)
    }

    /// Lists the nonzeros on the device's stream; the caller orders its uses.
    pub(crate) fn new(p: &Pattern<'_>, problem: &Problem, rows: u32, columns: u32) -> Result<Self> {
        let device = p.device();
        let nnz = problem.nnz;
        let across = problem.inner().div_ceil(columns as usize);
        let tiles = problem.output_rows().div_ceil(rows as usize).saturating_mul(across);
        let position = source::narrowest(nnz as u64);
        let words = if position == IndexType::U64 { 2 } else { 1 };
        let mut begins =
            DeviceBuffer::queued(device, tiles.saturating_add(1), "tiles of nonzeros")?;
        begins.fill(0, device.stream())?;
        let positions = DeviceBuffer::queued(device, nnz * words, "positions of nonzeros")?;
        let places = DeviceBuffer::queued(device, nnz, "places of nonzeros in tiles")?;
        let made = TileNonzeros { begins, positions, places, position, across, tiles };
        if nnz == 0 {
            return Ok(made);
        }
        let request = Self::request(p.index_type, p.offset_type, position, rows, columns);
        let module = device.module(&request)?;
        let mut arguments = Arguments {
            offsets: p.offsets,
            indices: p.indices,
            begins: made.begins.address(),
            next: 0,
            positions: made.positions.address(),
            places: made.places.address(),
            rows: problem.output_rows() as u64,
            nonzeros: nnz as u64,
            across: across as u64,
        };
        let grid = ((nnz as u64).div_ceil(u64::from(BLOCK)), 1);
        // SAFETY: there is a count for every tile.
        unsafe {
            module.kernel(c"count_nonzeros")?.launch(device.stream(), grid, BLOCK, &arguments)?;
        }
        Scan::new(device, IndexType::U64)?.sum(device, &made.begins)?;
        let mut next = DeviceBuffer::<u64>::queued(device, tiles + 1, "tiles of nonzeros")?;
        next.copy_from(&made.begins, device.stream())?;
        arguments.next = next.address();
        // SAFETY: as above; the lists have an entry for every nonzero that was counted, and freed
        // buffers wait for the stream.
        unsafe {
            module.kernel(c"list_nonzeros")?.launch(device.stream(), grid, BLOCK, &arguments)?;
        }
        Ok(made)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.begins.bytes() + self.positions.bytes() + self.places.bytes()
    }

    pub(crate) fn used_on(&self, stream: &Stream) {
        self.begins.used_on(stream);
        self.positions.used_on(stream);
        self.places.used_on(stream);
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;
    use crate::device::Device;
    use crate::matrix::DeviceCsr;

    #[test]
    #[ignore = "needs a CUDA device"]
    fn every_nonzero_is_listed_once_in_its_tile() {
        let device = Device::cuda(0).expect("a CUDA device");
        let (mut offsets, mut indices) = (vec![0u32], Vec::new());
        for r in 0..301u32 {
            // Empty, unsorted and repeating rows.
            let length = [0, 3, 40, 170][r as usize % 4];
            indices
                .extend((0..length).map(|k| (r / 4 + k * if r % 3 == 0 { 61 } else { 1 }) % 200));
            offsets.push(indices.len() as u32);
        }
        let nnz = indices.len();
        let a = Csr::<f32>::new(301, 200, offsets.clone(), indices.clone(), vec![1.0; nnz])
            .expect("a matrix");
        let a = DeviceCsr::upload(&device, &a.view()).expect("A");
        let pattern = Pattern::new(a.pattern()).expect("a pattern");
        for (rows, columns) in [(64, 64), (128, 64), (32, 256)] {
            let problem = a.pattern().sddmm(1).problem;
            let made = TileNonzeros::new(&pattern, &problem, rows, columns).expect("lists");
            let begins = made.begins.to_host().expect("begins");
            let positions = made.positions.to_host().expect("positions");
            let places = made.places.to_host().expect("places");
            assert_eq!((begins.len(), made.tiles), (made.tiles + 1, begins.len() - 1));
            assert_eq!((begins[0], begins[made.tiles]), (0, nnz as u64));
            let mut found = vec![0; nnz];
            for (tile, range) in begins.windows(2).enumerate() {
                for entry in range[0] as usize..range[1] as usize {
                    let (p, place) = (positions[entry], u32::from(places[entry]));
                    let row = offsets.partition_point(|o| *o <= p) - 1;
                    let tile_row = (tile / made.across) as u32 * rows + place / columns;
                    assert_eq!(tile_row as usize, row);
                    let tile_column = (tile % made.across) as u32 * columns + place % columns;
                    assert_eq!(tile_column, indices[p as usize]);
                    found[p as usize] += 1;
                }
            }
            assert!(found.iter().all(|times| *times == 1), "{rows} x {columns}");
        }
    }
}
