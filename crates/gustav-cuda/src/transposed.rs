//! The pattern of Aᵀ on the device, and A's values in its order.

use gustav_core::{Index, Result, Scalar};

use crate::converted::Gather;
use crate::stream::Stream;
use crate::{Device, DeviceBuffer, DeviceCsr};

/// Aᵀ in CSR form, values gathered from A's at every execution.
pub(crate) struct Transposed<T, I, O> {
    pub offsets: DeviceBuffer<O>,
    pub indices: DeviceBuffer<I>,
    pub values: DeviceBuffer<T>,
    source: DeviceBuffer<O>,
    gather: Gather,
}

impl<T: Scalar, I: Index, O: Index> Transposed<T, I, O> {
    /// Transposes the pattern on the host.
    pub(crate) fn new(device: &Device, a: &DeviceCsr<T, I, O>) -> Result<Self> {
        let host = a.download()?;
        let (offsets, indices, source) = host.view().transpose_pattern()?;
        Ok(Transposed {
            offsets: DeviceBuffer::from_slice(device, &offsets, "row offsets of the transpose")?,
            indices: DeviceBuffer::from_slice(device, &indices, "column indices of the transpose")?,
            values: DeviceBuffer::uninit(device, a.nnz(), "values of the transpose")?,
            source: DeviceBuffer::from_slice(device, &source, "positions of the transpose")?,
            gather: Gather::new(device, T::DTYPE, O::TYPE, false)?,
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
        let (values, source, out) =
            (a.values().address(), self.source.address(), self.values.address());
        // SAFETY: both value arrays and the positions hold `nnz` entries, positions are below
        // `nnz`, and the buffers wait for the stream when freed.
        unsafe { self.gather.launch(stream, values, source, out, a.nnz()) }
    }
}
