//! Beside other libraries in one process: the device that is current for a thread, and graphs that
//! others capture.

use std::any::Any;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys;
use gustav_core::Result;

use super::driver::Checked;
use super::stream::Stream;

/// The context that is current for this thread, which is so again when this is dropped. For
/// functions that other libraries of the process, which count on it, call.
pub struct KeptContext(Option<sys::CUcontext>);

impl KeptContext {
    /// That of this thread, which then works on `device`.
    pub fn of(device: &super::Device) -> Self {
        let mut current = std::ptr::null_mut();
        // SAFETY: the driver writes one pointer.
        let found = unsafe { sys::cuCtxGetCurrent(&mut current) }.result();
        // Work on the device makes no other context current than the device's.
        KeptContext((found.is_ok() && current != device.context().cu_ctx()).then_some(current))
    }
}

impl Drop for KeptContext {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            // SAFETY: it was current when this was made, or there was none.
            let _ = unsafe { sys::cuCtxSetCurrent(before) };
        }
    }
}

/// What graphs held that have been destroyed. The driver calls back in a thread in which none of
/// its functions may be called, so that it is dropped later.
static RELEASED: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());

/// Drops what graphs of others held that have been destroyed.
pub fn drop_of_graphs() {
    let released = std::mem::take(&mut *RELEASED.lock().unwrap_or_else(PoisonError::into_inner));
    drop(released);
}

unsafe extern "C" fn release(object: *mut c_void) {
    // SAFETY: made by `keep_for_capture`, and the driver calls once.
    let object = unsafe { Box::from_raw(object.cast::<Box<dyn Any + Send>>()) };
    RELEASED.lock().unwrap_or_else(PoisonError::into_inner).push(*object);
}

impl Stream {
    /// Lets the graph that somebody captures from this stream hold `object` as long as the graph
    /// can be launched, so that what its work uses stays alive. Nothing where the stream is not
    /// being captured.
    ///
    /// # Errors
    /// [`Error::Device`](gustav_core::Error::Device).
    pub fn keep_for_capture(&self, object: impl FnOnce() -> Box<dyn Any + Send>) -> Result<()> {
        if !self.is_capturing() {
            return Ok(());
        }
        self.bind()?;
        let graph = self.captured_graph()?;
        let object = Box::into_raw(Box::new(object()));
        let mut held = std::ptr::null_mut();
        let flags = sys::CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC as u32;
        // SAFETY: the callback takes the object back, once.
        let made =
            unsafe { sys::cuUserObjectCreate(&mut held, object.cast(), Some(release), 1, flags) };
        if let Err(e) = made.result().during("keeping memory for a graph") {
            // SAFETY: nobody else has it.
            drop(unsafe { Box::from_raw(object) });
            return Err(e);
        }
        let flags = sys::CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE as u32;
        // SAFETY: the graph is being captured; it takes over the one reference.
        unsafe { sys::cuGraphRetainUserObject(graph, held, 1, flags) }
            .result()
            .during("keeping memory for a graph")
    }

    /// The graph that the stream is being captured in.
    fn captured_graph(&self) -> Result<sys::CUgraph> {
        let mut graph = std::ptr::null_mut();
        let mut status = sys::CUstreamCaptureStatus_enum::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is alive; the driver writes the two words whose addresses are not
        // null.
        unsafe {
            sys::cuStreamGetCaptureInfo_v3(
                self.raw().cu_stream(),
                &mut status,
                std::ptr::null_mut(),
                &mut graph,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        }
        .result()
        .during("asking for a captured graph")?;
        Ok(graph)
    }
}
