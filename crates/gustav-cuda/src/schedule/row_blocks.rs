//! Blocks of neighbouring rows and the unions of their columns, made on the device.

use gustav_core::{IndexType, Problem, Result};

use crate::DeviceBuffer;
use crate::jit::Request;
use crate::source;
use crate::spmm::pattern::Pattern;
use crate::stream::Stream;

const BLOCK: u32 = 64;

/// See `kernels/schedule/row_blocks.cuh`.
pub(crate) struct RowBlocks {
    /// Column and rows of each entry, `word` wide.
    pub entries: DeviceBuffer<u32>,
    /// Where each row is in the values of A at every chunk, `position` wide.
    pub positions: DeviceBuffer<u32>,
    /// Entries of each block.
    pub counts: DeviceBuffer<u32>,
    pub word: IndexType,
    pub position: IndexType,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Arguments {
    offsets: u64,
    indices: u64,
    entries: u64,
    positions: u64,
    counts: u64,
    rows: u64,
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
        Request::new("schedule/row_blocks.cu", include_str!("../../kernels/schedule/row_blocks.cu"))
            .with("INDEX", index)
            .with("OFFSET", offset)
            .with("WORD", word)
            .with("POSITION", position)
            .with("BLOCK", BLOCK)
            .with("ROWS", rows)
            .with("CHUNK", chunk)
    }

    /// Merges every `height` rows of op(A); positions are kept every `chunk` entries.
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
        // SAFETY: `Arguments` is the kernel's parameter; a block has no more entries than its rows
        // have nonzeros, nor more chunks than counted above; the buffers outlive the wait.
        unsafe { kernel.launch(device.stream(), grid, BLOCK, &arguments)? };
        device.stream().synchronize()?;
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
