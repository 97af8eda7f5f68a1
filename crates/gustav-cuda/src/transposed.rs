//! The pattern of Aᵀ on the device, and A's values in its order.

use gustav_core::{Index, Result, Scalar};

use crate::jit::Request;
use crate::kernel::Kernel;
use crate::stream::Stream;
use crate::{Device, DeviceBuffer, DeviceCsr};

const BLOCK: u32 = 256;

/// Aᵀ in CSR form, values gathered from A's at every execution.
pub(crate) struct Transposed<T, I, O> {
    pub offsets: DeviceBuffer<O>,
    pub indices: DeviceBuffer<I>,
    pub values: DeviceBuffer<T>,
    source: DeviceBuffer<O>,
    gather: Kernel,
    grid: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Arguments {
    values: u64,
    source: u64,
    out: u64,
    count: u64,
}

/// The source of the gather with its parameters.
pub(crate) fn request<T: Scalar, O: Index>() -> Request {
    Request::new("csr/gather.cu", include_str!("../kernels/csr/gather.cu"))
        .with("VALUE", T::DTYPE)
        .with("OFFSET", O::TYPE)
        .with("BLOCK", BLOCK)
}

impl<T: Scalar, I: Index, O: Index> Transposed<T, I, O> {
    /// Transposes the pattern on the host.
    pub(crate) fn new(device: &Device, a: &DeviceCsr<T, I, O>) -> Result<Self> {
        let host = a.download()?;
        let (offsets, indices, source) = host.view().transpose_pattern()?;
        let resident =
            device.profile().multiprocessors * device.profile().threads_per_multiprocessor;
        Ok(Transposed {
            offsets: DeviceBuffer::from_slice(device, &offsets, "row offsets of the transpose")?,
            indices: DeviceBuffer::from_slice(device, &indices, "column indices of the transpose")?,
            values: DeviceBuffer::uninit(device, a.nnz(), "values of the transpose")?,
            source: DeviceBuffer::from_slice(device, &source, "positions of the transpose")?,
            gather: device.module(&request::<T, O>())?.kernel(c"gather")?,
            grid: (a.nnz() as u64).div_ceil(u64::from(BLOCK)).min(resident.max(1) as u64),
        })
    }

    /// Bytes on the device.
    pub(crate) fn bytes(&self) -> usize {
        self.offsets.bytes() + self.indices.bytes() + self.values.bytes() + self.source.bytes()
    }

    /// Queues the gathering of `a`'s values.
    pub(crate) fn refresh(&self, stream: &Stream, a: &DeviceCsr<T, I, O>) -> Result<()> {
        for used in [&self.values, a.values()] {
            used.used_on(stream);
        }
        self.source.used_on(stream);
        self.offsets.used_on(stream);
        self.indices.used_on(stream);
        let arguments = Arguments {
            values: a.values().address(),
            source: self.source.address(),
            out: self.values.address(),
            count: a.nnz() as u64,
        };
        // SAFETY: `Arguments` is the kernel's parameter; both value arrays and the positions hold
        // `nnz` entries, positions are below `nnz`, and the buffers wait for the stream when freed.
        unsafe { self.gather.launch(stream, (self.grid, 1), BLOCK, &arguments) }
    }
}
