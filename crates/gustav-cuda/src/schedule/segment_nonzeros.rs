//! The nonzeros of a list of segments, as one list. See `kernels/schedule/segment_nonzeros.cu`.

use gustav_core::{IndexType, Problem, Result};

use super::pattern::Pattern;
use super::segments::{LENGTH_BITS, Segments};
use crate::device::{DeviceBuffer, Stream};
use crate::jit::{Request, source};
use crate::matrix::scan::Scan;

const BLOCK: u32 = 256;

/// Row, column and position of every nonzero on the device, in the order of a list of segments.
pub(crate) struct SegmentNonzeros {
    /// Of type `row`.
    pub rows: DeviceBuffer<u32>,
    /// Of the pattern's index type.
    pub columns: DeviceBuffer<u32>,
    /// Of type `position`.
    pub positions: DeviceBuffer<u32>,
    pub row: IndexType,
    pub position: IndexType,
}

parameter_block! {
    struct Arguments {
        indices: *const Index,
        list: *const u64,
        /// First nonzero of every segment, and the end.
        begins: *mut u64,
        rows: *mut Row,
        columns: *mut Index,
        positions: *mut Position,
        segments: u64,
    }
}

impl SegmentNonzeros {
    /// The source with its parameters.
    pub(crate) fn request(index: IndexType, row: IndexType, position: IndexType) -> Request {
        request!("schedule/segment_nonzeros.cu")
            .with_block::<Arguments>()
            .with("INDEX", index)
            .with("ROW", row)
            .with("POSITION", position)
            .with("LENGTH_BITS", LENGTH_BITS)
            .with("BLOCK", BLOCK)
    }

    /// Lists the nonzeros of `segments`, which contain every nonzero once and whose parts of cut
    /// rows name their row. Queued on the device's stream; the caller orders its uses.
    pub(crate) fn new(p: &Pattern<'_>, problem: &Problem, segments: &Segments) -> Result<Self> {
        let device = p.device();
        let nnz = problem.nnz;
        let row = source::narrowest(problem.output_rows() as u64);
        let position = source::narrowest(nnz as u64);
        let words = |t: IndexType| nnz * if t == IndexType::U64 { 2 } else { 1 };
        let made = SegmentNonzeros {
            rows: DeviceBuffer::queued(device, words(row), "rows of nonzeros")?,
            columns: DeviceBuffer::queued(device, words(p.index_type), "columns of nonzeros")?,
            positions: DeviceBuffer::queued(device, words(position), "positions of nonzeros")?,
            row,
            position,
        };
        let mut begins = DeviceBuffer::<u64>::queued(device, segments.count + 1, "segments")?;
        begins.fill(0, device.stream())?;
        let module = device.module(&Self::request(p.index_type, row, position))?;
        let arguments = Arguments {
            indices: p.indices,
            list: segments.list.address(),
            begins: begins.address(),
            rows: made.rows.address(),
            columns: made.columns.address(),
            positions: made.positions.address(),
            segments: segments.count as u64,
        };
        let (stream, threads) = (device.stream(), u64::from(BLOCK));
        let lengths = module.kernel(c"segment_lengths")?;
        // SAFETY: there is a length for every segment.
        unsafe {
            lengths.launch(stream, (arguments.segments.div_ceil(threads), 1), BLOCK, &arguments)?;
        }
        Scan::new(device, IndexType::U64)?.sum(device, &begins)?;
        let nonzeros = module.kernel(c"segment_nonzeros")?;
        // SAFETY: the segments hold every nonzero once, for which there is memory; freed buffers
        // wait for the stream.
        unsafe {
            let warps = arguments.segments.div_ceil(threads / 32);
            nonzeros.launch(stream, (warps, 1), BLOCK, &arguments)?;
        }
        Ok(made)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rows.bytes() + self.columns.bytes() + self.positions.bytes()
    }

    pub(crate) fn used_on(&self, stream: &Stream) {
        for buffer in [&self.rows, &self.columns, &self.positions] {
            buffer.used_on(stream);
        }
    }
}
