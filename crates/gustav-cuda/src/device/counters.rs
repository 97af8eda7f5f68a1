//! Counters that kernels leave at zero.

use gustav_core::Result;

use super::memory::Allocation;
use super::{Device, DeviceBuffer, Stream};

/// Counters that are zero before and after every launch that uses them, so that a new plan can take
/// those of a dropped plan without clearing them.
pub(crate) struct Counters {
    buffer: DeviceBuffer<u32>,
    len: usize,
}

impl Counters {
    /// Queues the allocation of `len` counters on the device's stream; the caller orders its uses
    /// after it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](gustav_core::Error::OutOfMemory) naming `what`,
    /// [`Error::Device`](gustav_core::Error::Device).
    pub(crate) fn new(device: &Device, len: usize, what: &'static str) -> Result<Self> {
        let free = if len > 0 { device.take_counters(len) } else { None };
        if let Some(Allocation { address, len: held }) = free {
            // SAFETY: the device passed on the ownership, and all earlier work on the memory is
            // done.
            let buffer = unsafe { DeviceBuffer::owned(device, address, held) };
            return Ok(Counters { buffer, len });
        }
        let mut buffer = DeviceBuffer::queued(device, len, what)?;
        buffer.fill(0, device.stream())?;
        Ok(Counters { buffer, len })
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        self.len * size_of::<u32>()
    }

    pub(crate) fn address(&self) -> u64 {
        self.buffer.address()
    }

    /// Records that `stream` has work on the counters.
    pub(crate) fn used_on(&self, stream: &Stream) {
        self.buffer.used_on(stream);
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        let device = self.buffer.device().clone();
        if let Some(free) = self.buffer.give_away() {
            device.keep_counters(free);
        }
    }
}
