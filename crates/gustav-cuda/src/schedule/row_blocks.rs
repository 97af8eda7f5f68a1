//! Blocks of neighbouring rows and the unions of their columns, computed on the device.

use gustav_core::{IndexType, Problem, Result};

use super::pattern::Pattern;
use crate::device::{DeviceBuffer, Stream};
use crate::jit::{Request, source};

const BLOCK: u32 = 64;

/// See `kernels/schedule/row_blocks.cuh`.
pub(crate) struct RowBlocks {
    /// Column and rows of each entry, of type `word`.
    pub entries: DeviceBuffer<u32>,
    /// For every chunk the position of each row in the values of A, of type `position`.
    pub positions: DeviceBuffer<u32>,
    /// Entries of each block.
    pub counts: DeviceBuffer<u32>,
    pub word: IndexType,
    pub position: IndexType,
}

parameter_block! {
    struct Arguments {
        offsets: *const Offset,
        indices: *const Index,
        entries: *mut Word,
        /// ROWS for each chunk.
        positions: *mut Position,
        /// Entries of a block.
        counts: *mut u32,
        rows: u64,
    }
}

impl RowBlocks {
    /// The source with its parameters.
    pub(crate) fn request(
        index: IndexType,
        offset: IndexType,
        word: IndexType,
        position: IndexType,
        rows: u32,
        chunk: u32,
    ) -> Request {
        request!("schedule/row_blocks.cu")
            .with_block::<Arguments>()
            .with("INDEX", index)
            .with("OFFSET", offset)
            .with("WORD", word)
            .with("POSITION", position)
            .with("BLOCK", BLOCK)
            .with("ROWS", rows)
            .with("CHUNK", chunk)
    }

    /// Queues the merge of every `height` rows of op(A) on the device's stream; the caller orders
    /// its uses. Positions are stored every `chunk` entries.
    pub(crate) fn new(p: &Pattern<'_>, problem: &Problem, height: u32, chunk: u32) -> Result<Self> {
        let device = p.device();
        let (rows, nnz) = (problem.output_rows(), problem.nnz);
        let word = source::narrowest((problem.inner() as u64) << height);
        let position = source::narrowest(nnz as u64);
        let words = |t: IndexType| if t == IndexType::U64 { 2 } else { 1 };
        let blocks = rows.div_ceil(height as usize);
        let chunks = nnz / chunk as usize + blocks + 1;
        let made = RowBlocks {
            entries: DeviceBuffer::queued(device, nnz * words(word), "entries of row blocks")?,
            positions: DeviceBuffer::queued(
                device,
                chunks * height as usize * words(position),
                "positions of row blocks",
            )?,
            counts: DeviceBuffer::queued(device, blocks, "lengths of row blocks")?,
            word,
            position,
        };
        let (index, offset) = (problem.index_type, problem.offset_type);
        let request = Self::request(index, offset, word, position, height, chunk);
        let kernel = device.module(&request)?.kernel(c"row_blocks")?;
        let arguments = Arguments {
            offsets: p.offsets,
            indices: p.indices,
            entries: made.entries.address(),
            positions: made.positions.address(),
            counts: made.counts.address(),
            rows: rows as u64,
        };
        let grid = ((blocks as u64).div_ceil(u64::from(BLOCK)), 1);
        // SAFETY: a block has no more entries than its rows
        // have nonzeros, nor more chunks than counted above; the buffers wait for the stream.
        unsafe { kernel.launch(device.stream(), grid, BLOCK, &arguments)? };
        Ok(made)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.entries.bytes() + self.positions.bytes() + self.counts.bytes()
    }

    pub(crate) fn used_on(&self, stream: &Stream) {
        for buffer in [&self.entries, &self.positions, &self.counts] {
            buffer.used_on(stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::matrix::DeviceCsr;
    use gustav_core::Csr;

    /// Checks that every nonzero of every row is in exactly one entry of the row's block, in the
    /// row's order.
    fn check(device: &Device, offsets: &[u32], indices: &[u32], height: u32, chunk: u32) {
        let (rows, nnz) = (offsets.len() - 1, indices.len());
        let a = Csr::<f32>::new(rows, 100, offsets.to_vec(), indices.to_vec(), vec![1.0; nnz])
            .expect("a matrix");
        let a = DeviceCsr::upload(device, &a.view()).expect("A");
        let pattern = Pattern::new(a.pattern()).expect("a pattern");
        let made =
            RowBlocks::new(&pattern, &a.pattern().spmm(1).problem, height, chunk).expect("blocks");
        let counts = made.counts.to_host().expect("counts");
        let (height, chunk) = (height as usize, chunk as usize);
        let column_bits = 32 - height;
        // Shared columns leave unused entries at the end of a block.
        let read = |from: &DeviceBuffer<u32>, first: usize, count: usize| {
            let mut words = vec![0; count];
            from.read_at(first, &mut words).expect("a block");
            words
        };
        for (block, count) in counts.iter().enumerate() {
            let start = offsets[block * height] as usize;
            let last = (block * height + height).min(rows);
            let mut next: Vec<u32> = offsets[block * height..last].to_vec();
            let entries = read(&made.entries, start, *count as usize);
            let chunks = entries.len().div_ceil(chunk);
            let positions =
                read(&made.positions, (start / chunk + block) * height, chunks * height);
            for (e, entry) in entries.into_iter().enumerate() {
                if e % chunk == 0 {
                    let at = e / chunk * height;
                    assert_eq!(positions[at..at + next.len()], next, "positions of a chunk");
                }
                let (column, having) = (entry & ((1 << column_bits) - 1), entry >> column_bits);
                assert!(having != 0, "an entry of no row");
                for (r, position) in
                    next.iter_mut().enumerate().filter(|(r, _)| having >> r & 1 == 1)
                {
                    assert!(*position < offsets[block * height + r + 1], "past the row's end");
                    assert_eq!(indices[*position as usize], column);
                    *position += 1;
                }
            }
            assert_eq!(next, offsets[block * height + 1..=last], "nonzeros without an entry");
        }
    }

    #[test]
    #[ignore = "needs a CUDA device"]
    fn entries_hold_every_nonzero_once() {
        let device = Device::cuda(0).expect("a CUDA device");
        let (mut offsets, mut indices) = (vec![0u32], Vec::new());
        for r in 0..203u32 {
            // Alike, empty, unsorted and repeating rows.
            let length = [9, 9, 0, 17, 30][r as usize % 5];
            indices
                .extend((0..length).map(|k| (r / 4 + k * if r % 7 == 0 { 61 } else { 3 }) % 100));
            offsets.push(indices.len() as u32);
        }
        for (height, chunk) in [(2, 8), (3, 4), (4, 32), (8, 16)] {
            check(&device, &offsets, &indices, height, chunk);
            check(&device, &[0], &[], height, chunk);
            check(&device, &[0, 0, 0], &[], height, chunk);
        }
    }
}
