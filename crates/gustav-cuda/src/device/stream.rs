//! Streams and events.

use std::any::Any;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cudarc::driver::{CudaContext, CudaStream, result, sys};
use gustav_core::{Error, Result};

use super::Device;
use super::driver::Checked;

// The handles of the default streams: the legacy one, and that of the calling thread.
const LEGACY: usize = 1;
const PER_THREAD: usize = 2;
// Bit in the key of a per-thread default stream, whose handle is the same for every thread.
const OF_A_THREAD: u64 = 1 << 62;

/// A queue of work on one device. Work on one stream runs in order; clones are the same stream.
///
/// Streams are ordered automatically: work on a buffer waits for conflicting work on other streams.
#[derive(Clone, Debug)]
pub struct Stream {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    context: Arc<CudaContext>,
    handle: sys::CUstream,
    key: u64,
    /// The thread whose default stream it is, if any.
    thread: Option<u64>,
    /// Recorded when another stream has to wait for this one.
    event: OnceLock<Event>,
    /// Destroys the stream; `None` for a stream that another library owns.
    owner: Option<Arc<CudaStream>>,
    /// What keeps a stream that another library owns.
    _holder: Option<Box<dyn Any + Send + Sync>>,
    /// Whether it is a device's own stream.
    of_device: bool,
}

// SAFETY: a stream handle may be used from any thread that has bound its context; the default
// stream of a thread is waited for from other threads through the context.
unsafe impl Send for Inner {}
// SAFETY: the driver synchronises access to a stream.
unsafe impl Sync for Inner {}

impl Inner {
    pub(crate) fn cu_stream(&self) -> sys::CUstream {
        self.handle
    }
}

impl Stream {
    pub(super) fn new(owner: Arc<CudaStream>, of_device: bool) -> Self {
        let (context, handle) = (owner.context().clone(), owner.cu_stream());
        let (key, event) = (handle as u64, OnceLock::new());
        let owner = Some(owner);
        let (thread, _holder) = (None, None);
        let inner = Inner { context, handle, key, thread, event, owner, _holder, of_device };
        Stream { inner: Arc::new(inner) }
    }

    /// Adopts a stream that another library created on `device`; it is never destroyed here. 0 and
    /// 1 are the legacy default stream, 2 is the default stream of the calling thread.
    ///
    /// # Safety
    /// `handle` is a stream of the device's primary context. It stays valid until the returned
    /// stream and all of its clones are dropped; buffers and plans that were used on the stream
    /// hold clones until they are dropped or written on another stream. The stream of handle 2 is
    /// used on the calling thread alone; buffers that it used may be used and dropped on any
    /// thread.
    pub unsafe fn from_raw(device: &Device, handle: *mut std::ffi::c_void) -> Self {
        Self::adopted(device, handle as usize, None)
    }

    /// As [`Stream::from_raw`], of a stream that `holder` keeps: that is dropped with the last
    /// clone.
    ///
    /// # Safety
    /// As there, and the stream stays valid as long as `holder` is there.
    pub unsafe fn held(
        device: &Device,
        handle: *mut std::ffi::c_void,
        holder: impl Any + Send + Sync,
    ) -> Self {
        Self::adopted(device, handle as usize, Some(Box::new(holder)))
    }

    fn adopted(device: &Device, handle: usize, holder: Option<Box<dyn Any + Send + Sync>>) -> Self {
        let (handle, key, thread) = match handle {
            0 | LEGACY => (LEGACY, LEGACY as u64, None),
            PER_THREAD => {
                let thread = this_thread();
                (PER_THREAD, OF_A_THREAD | thread, Some(thread))
            }
            handle => (handle, handle as u64, None),
        };
        let context = device.context().clone();
        let (handle, event) = (handle as sys::CUstream, OnceLock::new());
        let (owner, of_device) = (None, false);
        let inner =
            Inner { context, handle, key, thread, event, owner, _holder: holder, of_device };
        Stream { inner: Arc::new(inner) }
    }

    pub(crate) fn raw(&self) -> &Inner {
        &self.inner
    }

    /// The driver's handle, for other libraries.
    ///
    /// The caller orders work that they queue with other streams, and likewise launches of captures
    /// begun with the handle; see [`Graph`](crate::Graph) for safe captures.
    pub fn handle(&self) -> *mut std::ffi::c_void {
        self.inner.handle.cast()
    }

    /// Whether both are the same queue.
    pub(crate) fn is(&self, other: &Stream) -> bool {
        self.inner.key == other.inner.key
    }

    /// A number below 2^63 that identifies the queue.
    pub(crate) fn key(&self) -> u64 {
        self.inner.key
    }

    /// Whether this is the last clone, so that nothing else can queue work on the stream.
    pub(crate) fn is_last_clone(&self) -> bool {
        Arc::strong_count(&self.inner) == 1 && self.inner.owner.is_some()
    }

    /// Whether it is a device's own stream, which all threads use.
    pub(super) fn is_of_device(&self) -> bool {
        self.inner.of_device
    }

    pub(crate) fn bind(&self) -> Result<()> {
        self.inner.context.bind_to_thread().during("using the device from this thread")
    }

    /// Waits until all work queued so far is done, and reports its errors.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn synchronize(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: the stream is alive.
        unsafe { result::stream::synchronize(self.inner.handle) }.during("waiting for a stream")
    }

    /// Whether all work queued so far is done; reports its errors.
    pub(crate) fn is_done(&self) -> Result<bool> {
        // SAFETY: the stream is alive.
        match unsafe { sys::cuStreamQuery(self.inner.handle) } {
            sys::cudaError_enum::CUDA_ERROR_NOT_READY => Ok(false),
            status => status.result().during("waiting for a stream").map(|()| true),
        }
    }

    /// Records a new event at this point of the queue.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn record(&self) -> Result<Event> {
        let event = Event::create(&self.inner.context, true)?;
        self.mark(&event)?;
        Ok(event)
    }

    /// Records an existing event at this point of the queue, in place of its earlier point.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn mark(&self, event: &Event) -> Result<()> {
        self.bind()?;
        // SAFETY: event and stream are alive.
        unsafe { result::event::record(event.raw, self.inner.handle) }.during("recording an event")
    }

    /// Makes all work queued from now on wait for `event`.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.bind()?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: event and stream are alive.
        unsafe { result::stream::wait_event(self.inner.handle, event.raw, flags) }
            .during("waiting for an event")
    }

    /// Makes work queued from now on wait for the work queued on `earlier` so far. If only
    /// `earlier` is being captured, this stream joins its capture.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn follow(&self, earlier: &Stream) -> Result<()> {
        if self.is(earlier) {
            return Ok(());
        }
        if earlier.inner.thread.is_some_and(|thread| thread != this_thread()) {
            // On this thread its handle would mean the default stream of this thread.
            return self.inner.context.synchronize().during("waiting for a thread's stream");
        }
        let event = match earlier.inner.event.get() {
            Some(event) => event,
            None => {
                let made = Event::create(&earlier.inner.context, false)?;
                earlier.inner.event.get_or_init(|| made)
            }
        };
        // Another thread may record the event at a later point in the meantime, which is sufficient
        // too.
        earlier.mark(event)?;
        self.wait(event)
    }

    /// Orders work queued from now on after the work queued on `earlier` so far. A captured stream
    /// cannot wait for work outside the capture, so the host waits for it.
    ///
    /// # Errors
    /// [`Error::Device`], also when `earlier` is being captured and this stream is not.
    pub(crate) fn after(&self, earlier: &Stream) -> Result<()> {
        if self.is(earlier) {
            return Ok(());
        }
        self.bind()?;
        match (self.is_capturing(), earlier.is_capturing()) {
            (true, false) => relaxed(|| earlier.synchronize()),
            (false, true) => Err(Error::Device {
                action: "ordering work after a stream capture",
                reason: "the capture that uses the memory has not ended".into(),
            }),
            _ => self.follow(earlier),
        }
    }

    /// Whether the stream is being captured in a graph.
    pub fn is_capturing(&self) -> bool {
        use sys::CUstreamCaptureStatus_enum::CU_STREAM_CAPTURE_STATUS_NONE as NONE;
        if self.inner.thread.is_some_and(|thread| thread != this_thread()) {
            return false;
        }
        let mut status = NONE;
        // SAFETY: the stream is alive; the driver writes one word. The call fails for the default
        // stream while another stream is captured; the default stream itself cannot be.
        let found = unsafe { sys::cuStreamIsCapturing(self.inner.handle, &mut status) };
        found.result().is_ok() && status != NONE
    }
}

/// Runs `work`, which waits for streams outside the capture, while this thread captures one.
pub(super) fn relaxed<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the driver exchanges the mode of this thread with the word.
    unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) }
        .result()
        .during("waiting for work before a capture")?;
    let done = work();
    // SAFETY: as above, restores the previous mode.
    unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) }
        .result()
        .during("waiting for work before a capture")?;
    done
}

/// A unique number of the calling thread.
fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// A point in a stream's queue.
#[derive(Debug)]
pub struct Event {
    context: Arc<CudaContext>,
    raw: sys::CUevent,
}

// SAFETY: an event handle may be used from any thread that has bound its context.
unsafe impl Send for Event {}
// SAFETY: the driver synchronises access to an event.
unsafe impl Sync for Event {}

impl Event {
    /// An event that is not recorded yet: waiting for it returns at once.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn new(device: &Device) -> Result<Self> {
        Self::create(device.context(), true)
    }

    /// As [`Event::new`], for ordering only, without timing.
    pub(crate) fn untimed(device: &Device) -> Result<Self> {
        Self::create(device.context(), false)
    }

    fn create(context: &Arc<CudaContext>, timed: bool) -> Result<Self> {
        use sys::CUevent_flags::{CU_EVENT_DEFAULT, CU_EVENT_DISABLE_TIMING};
        context.bind_to_thread().during("using the device from this thread")?;
        let flags = if timed { CU_EVENT_DEFAULT } else { CU_EVENT_DISABLE_TIMING };
        let raw = result::event::create(flags).during("making an event")?;
        Ok(Event { context: context.clone(), raw })
    }

    /// Waits until the work before the event is done.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn synchronize(&self) -> Result<()> {
        self.context.bind_to_thread().during("using the device from this thread")?;
        // SAFETY: the event is alive.
        unsafe { result::event::synchronize(self.raw) }.during("waiting for an event")
    }

    /// Milliseconds from `self` to `later`, after waiting for both.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn milliseconds_to(&self, later: &Event) -> Result<f32> {
        self.synchronize()?;
        later.synchronize()?;
        // SAFETY: both events are alive.
        unsafe { result::event::elapsed(self.raw, later.raw) }
            .during("reading the time between events")
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: created once, destroyed once; the driver keeps it alive for work that waits
            // for it.
            let _ = unsafe { result::event::destroy(self.raw) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_a_number_of_its_own() {
        let here = this_thread();
        let there = std::thread::spawn(this_thread).join().expect("a thread");
        assert_eq!(here, this_thread());
        assert_ne!(here, there);
    }

    /// A handle adopted twice is the same queue; per-thread default streams differ.
    #[test]
    #[ignore = "needs a CUDA device"]
    fn adopted_streams_are_known_by_their_handle() {
        let device = Device::cuda(0).expect("a CUDA device");
        // SAFETY: default streams always exist, and `own` outlives the stream adopted from its
        // handle.
        let adopt = |handle: usize| unsafe { Stream::from_raw(&device, handle as *mut _) };
        let own = device.new_stream().expect("a stream");
        assert!(adopt(own.handle() as usize).is(&own));
        assert!(adopt(0).is(&adopt(1)));
        assert!(!adopt(0).is(&adopt(2)));
        let other = std::thread::scope(|scope| scope.spawn(|| adopt(2)).join().expect("a thread"));
        assert!(adopt(2).is(&adopt(2)) && !adopt(2).is(&other));
        // The default stream of another thread can be waited for too.
        own.after(&other).expect("an order");
    }
}
