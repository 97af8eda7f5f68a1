//! Gathers values of A to the order of another format's slots in every execution, because a plan
//! holds the pattern alone (docs/decisions/0011-converted-formats.md).

use gustav_core::{DType, IndexType, Result};

use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;
use crate::launch::Kernel;

const BLOCK: u32 = 256;

/// The source of the gather with its parameters.
pub(crate) fn request(dtype: DType, source: IndexType, padded: bool) -> Request {
    request!("csr/gather.cu")
        .with_block::<Arguments>()
        .with("VALUE", dtype)
        .with("OFFSET", source)
        .with("BLOCK", BLOCK)
        .with("PADDED", padded)
}

/// A kernel that gathers values by their positions in A.
pub(crate) struct Gather {
    kernel: Kernel<Arguments>,
    most: u64,
}

parameter_block! {
    struct Arguments {
        values: *const Value,
        source: *const Offset,
        out: *mut Value,
        count: u64,
    }
}

impl Gather {
    pub(crate) fn new(
        device: &Device,
        dtype: DType,
        source: IndexType,
        padded: bool,
    ) -> Result<Self> {
        let kernel = device.module(&request(dtype, source, padded))?.kernel(c"gather")?;
        let profile = device.profile();
        let most = profile.multiprocessors * profile.threads_per_multiprocessor;
        Ok(Gather { kernel, most: most.max(1) as u64 })
    }

    /// Queues `out[i] = values[source[i]]` for `count` slots.
    ///
    /// # Safety
    /// The addresses are valid until the work is done, and every source except the mark of padding
    /// is a position in `values`.
    pub(crate) unsafe fn launch(
        &self,
        stream: &Stream,
        values: u64,
        source: u64,
        out: u64,
        count: usize,
    ) -> Result<()> {
        let arguments = Arguments { values, source, out, count: count as u64 };
        let grid = (arguments.count.div_ceil(u64::from(BLOCK)).min(self.most), 1);
        // SAFETY: the arrays are the caller's promise.
        unsafe { self.kernel.launch(stream, grid, BLOCK, &arguments) }
    }
}

/// The slots of a converted matrix: the source of each value, and memory for the values.
pub(crate) struct Slots {
    /// Position in the values of A; all ones in padding.
    pub source: DeviceBuffer<u32>,
    values: DeviceBuffer<u64>,
    gather: Gather,
}

impl Slots {
    /// Memory for `source` and as many values of `dtype`.
    pub(crate) fn new(device: &Device, dtype: DType, source: DeviceBuffer<u32>) -> Result<Self> {
        let words = source.len().saturating_mul(dtype.bytes()).div_ceil(8);
        let values = DeviceBuffer::uninit(device, words, "values of a converted matrix")?;
        Ok(Slots { source, values, gather: Gather::new(device, dtype, IndexType::U32, true)? })
    }

    /// Address of the gathered values.
    pub(crate) fn values(&self) -> u64 {
        self.values.address()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.source.bytes() + self.values.bytes()
    }

    /// Queues the gather of the values of A.
    ///
    /// # Safety
    /// `values` are those of the matrix whose pattern was converted, valid until the work is done.
    pub(crate) unsafe fn refresh(&self, stream: &Stream, values: u64) -> Result<()> {
        self.source.used_on(stream);
        self.values.used_on(stream);
        let (source, out) = (self.source.address(), self.values.address());
        // SAFETY: sources are positions in A, and there is memory for as many values; both buffers
        // wait for the stream when freed.
        unsafe { self.gather.launch(stream, values, source, out, self.source.len()) }
    }
}
