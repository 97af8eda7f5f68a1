//! Streams of a GPU.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use gustav::cuda::{self, CudaDevice, KeptContext, Stream};
use gustav::interop::dlpack::{DLTensor, GpuTensor};
use gustav::{Device, Error, Result};

use crate::handle::Table;
use crate::options::text;
use crate::pointer::{pointee, written};
use crate::status::{guard, gustav_status};

/// A stream of a GPU, which executions are queued on. Threads may share one.
#[allow(non_camel_case_types)]
pub struct gustav_stream {
    _opaque: (),
}

static STREAMS: Table<Held> = Table::new("stream");

/// A stream with its GPU.
pub(crate) struct Held {
    device: Device,
    ordinal: u32,
    pub(crate) stream: Stream,
}

impl Held {
    /// The stream of a handle.
    pub(crate) fn of(handle: *const gustav_stream) -> Result<Arc<Held>> {
        STREAMS.get(handle)
    }

    /// The GPU.
    pub(crate) fn device(&self) -> Result<&CudaDevice> {
        self.device.cuda_device()
    }

    /// A tensor in the memory of the GPU.
    ///
    /// # Safety
    /// As for [`GpuTensor::new`], or NULL.
    pub(crate) unsafe fn tensor<'a>(
        &self,
        name: &'static str,
        at: *const DLTensor,
    ) -> Result<GpuTensor<'a>> {
        // SAFETY: promised by the caller.
        unsafe { GpuTensor::new(name, pointee(name, at)?, self.ordinal) }
    }

    /// Does `work` in a thread whose current context stays what it is. A graph that is being captured from the stream
    /// holds `used`.
    pub(crate) fn within<U: Send + 'static>(
        &self,
        used: impl FnOnce() -> U,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let _kept = KeptContext::of(self.device()?);
        cuda::drop_of_graphs();
        self.stream.keep_for_capture(|| Box::new(used()))?;
        work()
    }
}

/// The handle of a stream of the driver (`CUstream`, which `cudaStream_t` is as well) of "cuda:0" and so on; NULL is
/// the legacy default stream.
///
/// # Safety
/// `device` is NULL or a string that ends in 0; `stream` is a stream of that device's primary context, which lives
/// until the handle is freed and every plan that was executed on it is freed, or was executed on another; `handle` is
/// NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gustav_stream_of(
    device: *const c_char,
    stream: *mut c_void,
    handle: *mut *mut gustav_stream,
) -> gustav_status {
    guard(|| {
        // SAFETY: promised by the caller.
        let (name, handle) = unsafe { (text("device", device)?, written("handle", handle)?) };
        let name = name.unwrap_or("NULL");
        let Some(Ok(ordinal)) = name.strip_prefix("cuda:").map(str::parse) else {
            return Err(Error::Argument {
                name: "device",
                found: name.into(),
                expected: "cuda:K with K counted from 0: a CPU has no streams".into(),
            });
        };
        let device = Device::cuda(ordinal)?;
        // SAFETY: promised by the caller.
        let stream = unsafe { Stream::from_raw(device.cuda_device()?, stream) };
        *handle = STREAMS.insert(Held { device, ordinal, stream });
        Ok(())
    })
}

/// Waits for what is queued on a stream.
#[unsafe(no_mangle)]
pub extern "C" fn gustav_stream_synchronize(stream: *const gustav_stream) -> gustav_status {
    guard(|| {
        let held = Held::of(stream)?;
        let _kept = KeptContext::of(held.device()?);
        held.stream.synchronize()
    })
}

/// Frees the handle, not the driver's stream, and does not wait. NULL is nothing, a handle that was freed before is
/// `GUSTAV_INVALID`.
#[unsafe(no_mangle)]
pub extern "C" fn gustav_stream_free(stream: *mut gustav_stream) -> gustav_status {
    guard(|| STREAMS.remove(stream))
}
