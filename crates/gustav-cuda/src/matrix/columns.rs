//! Computes facts about the columns of the rows of a CSR matrix on the device. See
//! `kernels/csr/columns.cu`.

use gustav_core::{IndexType, Result};

use super::Sparse;
use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;
use crate::launch::{GRID_Y, Kernel};

const BLOCK: u32 = 256;
// Most CTAs per multiprocessor; larger matrices have more entries per CTA.
const CTAS: u64 = 16;

/// The kernels.
pub(crate) struct Columns {
    device: Device,
    increasing: Kernel<Arguments>,
    cuts: Kernel<Arguments>,
}

parameter_block! {
    struct Arguments {
        offsets: *const Offset,
        indices: *const Index,
        /// A u64 count, or u32 boundaries out[c * rows + row] for c = 0 .. chunks.
        out: u64,
        rows: u64,
        entries: u64,
        /// Columns of a chunk.
        width: u64,
        chunks: u64,
    }
}

/// The source with its parameters.
pub(crate) fn request(index: IndexType, offset: IndexType) -> Request {
    request!("csr/columns.cu")
        .with_block::<Arguments>()
        .with("BLOCK", BLOCK)
        .with("INDEX", index)
        .with("OFFSET", offset)
}

impl Columns {
    /// The kernels for these types of column indices and row offsets.
    pub(crate) fn new(device: &Device, index: IndexType, offset: IndexType) -> Result<Self> {
        let module = device.module(&request(index, offset))?;
        let device = device.clone();
        Ok(Columns {
            device,
            increasing: module.kernel(c"increasing")?,
            cuts: module.kernel(c"cuts")?,
        })
    }

    /// Whether the columns of every row of `m` increase, so that none repeats. Waits for the
    /// device's own stream.
    ///
    /// # Safety
    /// The addresses in `m` are valid until the work is done.
    pub(crate) unsafe fn increase(&self, m: &Sparse) -> Result<bool> {
        let stream = self.device.stream();
        let what = "a count on the device";
        let mut count = DeviceBuffer::<u64>::uninit(&self.device, 1, what)?;
        count.fill(0, stream)?;
        let arguments = Arguments {
            offsets: m.offsets,
            indices: m.indices,
            out: count.address(),
            rows: m.rows as u64,
            entries: m.nnz as u64,
            width: 0,
            chunks: 0,
        };
        let most = CTAS * self.device.profile().multiprocessors as u64;
        let work = arguments.rows.max(arguments.entries);
        let grid = (work.div_ceil(u64::from(BLOCK)).min(most), 1);
        // SAFETY: the matrix is the caller's promise.
        unsafe { self.increasing.launch(stream, grid, BLOCK, &arguments)? };
        let mut found = [1];
        count.read(&mut found)?;
        Ok(found[0] == 0)
    }

    /// Queues the computation of where each row of `m`, with u32 offsets and indices, is cut by
    /// chunks of `width` columns: boundary c of row k goes to `out[c * rows + k]`, for `chunks + 1`
    /// boundaries.
    ///
    /// # Safety
    /// The addresses are valid until the work is done, `out` is large enough, and the columns of
    /// every row increase.
    pub(crate) unsafe fn cut(
        &self,
        stream: &Stream,
        m: &Sparse,
        width: usize,
        chunks: usize,
        out: u64,
    ) -> Result<()> {
        let arguments = Arguments {
            offsets: m.offsets,
            indices: m.indices,
            out,
            rows: m.rows as u64,
            entries: m.nnz as u64,
            width: width as u64,
            chunks: chunks as u64,
        };
        let grid = (arguments.rows.div_ceil(u64::from(BLOCK)), (chunks as u64 + 1).min(GRID_Y));
        // SAFETY: the rest is the caller's promise.
        unsafe { self.cuts.launch(stream, grid, BLOCK, &arguments) }
    }
}
