//! Streams and events.

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaStream, sys};
use gustav_core::Result;

use crate::Device;
use crate::driver::Checked;

/// A queue of work on one device. Work of one stream runs in order; clones are the same stream.
#[derive(Clone, Debug)]
pub struct Stream {
    raw: Arc<CudaStream>,
}

impl Stream {
    pub(crate) fn new(raw: Arc<CudaStream>) -> Self {
        Stream { raw }
    }

    pub(crate) fn raw(&self) -> &Arc<CudaStream> {
        &self.raw
    }

    /// The driver's handle, for other libraries.
    pub fn handle(&self) -> *mut std::ffi::c_void {
        self.raw.cu_stream().cast()
    }

    /// Waits until all work queued so far is done, and reports its errors.
    ///
    /// # Errors
    /// [`Error::Device`](gustav_core::Error::Device).
    pub fn synchronize(&self) -> Result<()> {
        self.raw.synchronize().during("waiting for a stream")
    }

    /// Whether all work queued so far is done; reports its errors.
    pub(crate) fn is_done(&self) -> Result<bool> {
        // SAFETY: the stream is alive.
        match unsafe { sys::cuStreamQuery(self.raw.cu_stream()) } {
            sys::cudaError_enum::CUDA_ERROR_NOT_READY => Ok(false),
            status => status.result().during("waiting for a stream").map(|()| true),
        }
    }

    /// Marks this point of the queue.
    ///
    /// # Errors
    /// [`Error::Device`](gustav_core::Error::Device).
    pub fn record(&self) -> Result<Event> {
        let timed = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        Ok(Event { raw: self.raw.record_event(timed).during("recording an event")? })
    }

    /// Marks this point of the queue with an event made before, in place of what it marked.
    ///
    /// # Errors
    /// [`Error::Device`](gustav_core::Error::Device).
    pub fn mark(&self, event: &Event) -> Result<()> {
        event.raw.record(&self.raw).during("recording an event")
    }

    /// Lets all work queued from now on wait for `event`.
    ///
    /// # Errors
    /// [`Error::Device`](gustav_core::Error::Device).
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.raw.wait(&event.raw).during("waiting for an event")
    }
}

/// A point in a stream's queue.
#[derive(Debug)]
pub struct Event {
    raw: CudaEvent,
}

impl Event {
    /// An event that marks nothing yet: waiting for it takes no time.
    ///
    /// # Errors
    /// [`Error::Device`](gustav_core::Error::Device).
    pub fn new(device: &Device) -> Result<Self> {
        let timed = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        Ok(Event { raw: device.context().new_event(timed).during("making an event")? })
    }

    /// As [`Event::new`], for order alone: there is no time to be read.
    pub(crate) fn untimed(device: &Device) -> Result<Self> {
        Ok(Event { raw: device.context().new_event(None).during("making an event")? })
    }

    /// Waits until the work before the mark is done.
    ///
    /// # Errors
    /// [`Error::Device`](gustav_core::Error::Device).
    pub fn synchronize(&self) -> Result<()> {
        self.raw.synchronize().during("waiting for an event")
    }

    /// Milliseconds from `self` to `later`, after waiting for both.
    ///
    /// # Errors
    /// [`Error::Device`](gustav_core::Error::Device).
    pub fn milliseconds_to(&self, later: &Event) -> Result<f32> {
        self.raw.elapsed_ms(&later.raw).during("reading the time between events")
    }
}

/// Executions of one plan follow one another, for they use the same workspaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    last: Option<Stream>,
}

impl Turns {
    /// Of a plan for so many calls, whose work is queued on the device's stream: a single one waits for
    /// nothing on the host; more of them may be captured.
    pub(crate) fn of(device: &Device, calls: u64) -> Result<Self> {
        if calls <= 1 {
            return Ok(Turns { last: Some(device.stream().clone()) });
        }
        device.stream().synchronize()?;
        Ok(Turns::default())
    }

    /// Lets `stream` wait for the execution before.
    pub(crate) fn next(&mut self, device: &Device, stream: &Stream) -> Result<()> {
        if let Some(last) = self.last.as_ref().filter(|last| last.handle() != stream.handle()) {
            device.bind()?;
            stream.wait(&last.record()?)?;
        }
        self.last = Some(stream.clone());
        Ok(())
    }
}
