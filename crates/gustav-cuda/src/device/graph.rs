//! CUDA graphs: captured work that can be launched repeatedly.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys;
use gustav_core::{Error, Result};

use super::driver::Checked;
use super::memory::Memory;
use super::order::{Access, PlanOrder, Uses};
use super::stream::Stream;

thread_local! {
    static RECORDING: Cell<bool> = const { Cell::new(false) };
    static HELD: RefCell<Held> = RefCell::default();
}

/// Work on the device captured once, launched many times at the cost of one launch.
///
/// The graph keeps the plans and the memory that it uses alive. A launch is ordered after earlier
/// work on them, and later work is ordered after the launch. Dense operands and values may be
/// changed between launches; α and β are those of the captured calls.
#[derive(Debug)]
pub struct Graph {
    raw: sys::CUgraph,
    executable: sys::CUgraphExec,
    held: Held,
    /// The stream of the last launch.
    last: Option<Stream>,
}

// SAFETY: graph handles may be used from any thread that has bound the context, one at a time.
unsafe impl Send for Graph {}

/// The memory and plans that a graph keeps alive.
#[derive(Default)]
struct Held {
    memory: Vec<(Arc<Memory>, Access)>,
    plans: Vec<Arc<dyn Orders>>,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} blocks of memory, {} plans", self.memory.len(), self.plans.len())
    }
}

/// The part of a plan that its executions share, and their order.
pub(crate) struct Core<M> {
    pub order: PlanOrder,
    pub method: M,
}

impl<M> Drop for Core<M> {
    fn drop(&mut self) {
        // All workspaces are freed after the last execution, also those whose uses were not
        // recorded.
        let _ = self.order.end();
    }
}

/// A plan's core, which graphs may hold as well.
pub(crate) type SharedCore<M> = Arc<Mutex<Core<M>>>;

/// The core of a new plan, whose setup is queued on the device's stream.
pub(crate) fn core<M>(order: PlanOrder, method: M) -> SharedCore<M> {
    Arc::new(Mutex::new(Core { order, method }))
}

/// Locks a plan's core for one execution. During a capture, the graph also records the core.
pub(crate) fn lock<M: Send + 'static>(core: &SharedCore<M>) -> MutexGuard<'_, Core<M>> {
    if is_recording() {
        HELD.with_borrow_mut(|held| {
            let plan: Arc<dyn Orders> = core.clone();
            if !held.plans.iter().any(|other| Arc::ptr_eq(other, &plan)) {
                held.plans.push(plan);
            }
        });
    }
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A plan that a graph launches.
trait Orders: Send + Sync {
    /// Locks the plan against other executions.
    fn guard(&self) -> Box<dyn OrderGuard + '_>;
}

trait OrderGuard {
    fn order(&mut self) -> &mut PlanOrder;
}

impl<M: Send> Orders for Mutex<Core<M>> {
    fn guard(&self) -> Box<dyn OrderGuard + '_> {
        Box::new(self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<M> OrderGuard for MutexGuard<'_, Core<M>> {
    fn order(&mut self) -> &mut PlanOrder {
        &mut self.order
    }
}

/// Whether this thread captures a [`Graph`].
pub(super) fn is_recording() -> bool {
    RECORDING.get()
}

/// An error for `what` while this thread captures a [`Graph`]: it allocates memory, or uses the
/// device's own stream, which other threads may use too.
pub(crate) fn refuse(what: &str) -> Result<()> {
    if !is_recording() {
        return Ok(());
    }
    Err(Error::Unsupported {
        problem: what.into(),
        backend: "a graph".into(),
        reason: "it takes memory, or works on the device's own stream".into(),
        nearest: "executions of SpmmPlan, SpmvPlan and SddmmPlan, fill and copy_from".into(),
    })
}

/// Makes the graph that this thread captures keep `memory` alive.
pub(super) fn hold_memory(memory: &Arc<Memory>, access: Access) {
    HELD.with_borrow_mut(|held| {
        match held.memory.iter_mut().find(|(other, _)| Arc::ptr_eq(other, memory)) {
            Some((_, held)) => *held = access.max(*held),
            None => held.memory.push((memory.clone(), access)),
        }
    });
}

/// Ends recording when dropped.
struct Recording;

impl Recording {
    fn begin() -> Result<Self> {
        if RECORDING.replace(true) {
            return Err(Error::Device {
                action: "capturing a graph",
                reason: "this thread captures another one".into(),
            });
        }
        Ok(Recording)
    }

    fn end(self) -> Held {
        HELD.take()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        RECORDING.set(false);
        drop(HELD.take());
    }
}

/// A capture that ends when dropped.
struct Capture<'s>(Option<&'s Stream>);

impl<'s> Capture<'s> {
    fn begin(stream: &'s Stream) -> Result<Self> {
        stream.bind()?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive.
        unsafe { sys::cuStreamBeginCapture_v2(stream.raw().cu_stream(), mode) }
            .result()
            .during("capturing a graph")?;
        Ok(Capture(Some(stream)))
    }

    fn end(mut self) -> Result<sys::CUgraph> {
        self.finish()
    }

    fn finish(&mut self) -> Result<sys::CUgraph> {
        let mut raw = std::ptr::null_mut();
        if let Some(stream) = self.0.take() {
            // SAFETY: this thread began the capture of the stream, which is alive.
            unsafe { sys::cuStreamEndCapture(stream.raw().cu_stream(), &mut raw) }
                .result()
                .during("capturing a graph")?;
        }
        Ok(raw)
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if self.0.is_some() {
            destroy(self.finish().unwrap_or(std::ptr::null_mut()));
        }
    }
}

fn destroy(raw: sys::CUgraph) {
    if !raw.is_null() {
        // SAFETY: ended once, destroyed once.
        let _ = unsafe { sys::cuGraphDestroy(raw) };
    }
}

impl Graph {
    /// Captures the work that `queue` queues on `stream` instead of running it. A capture may
    /// neither wait for the device nor allocate memory; plans that were made for several calls
    /// ([`Problem::calls`](gustav_core::Problem::calls)) and have been executed once need neither.
    ///
    /// # Errors
    /// Those of `queue`; [`Error::Unsupported`] for other work than executions of
    /// [`SpmmPlan`](crate::SpmmPlan), [`SpmvPlan`](crate::SpmvPlan) and
    /// [`SddmmPlan`](crate::SddmmPlan), and writes to buffers; [`Error::Argument`] for the device's
    /// own stream, which other threads may use too; [`Error::Device`] when the work cannot be
    /// captured.
    pub fn capture(stream: &Stream, queue: impl FnOnce() -> Result<()>) -> Result<Self> {
        if stream.is_of_device() {
            return Err(Error::Argument {
                name: "stream",
                found: "the device's own stream".into(),
                expected: "one of Device::new_stream".into(),
            });
        }
        let recording = Recording::begin()?;
        let capture = Capture::begin(stream)?;
        queue()?;
        let raw = capture.end()?;
        let mut executable = std::ptr::null_mut();
        // SAFETY: the graph was captured by the call before.
        let made = unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, raw, 0) };
        if let Err(error) = made.result().during("making a graph ready") {
            destroy(raw);
            return Err(error);
        }
        let mut held = recording.end();
        // All graphs lock plans in the same order, against deadlock.
        held.plans.sort_by_key(|plan| Arc::as_ptr(plan).cast::<()>() as usize);
        Ok(Graph { raw, executable, held, last: None })
    }

    /// Queues the captured work on `stream`.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn launch(&mut self, stream: &Stream) -> Result<()> {
        stream.bind()?;
        // The plans stay locked until the launch is queued.
        let mut plans: Vec<_> = self.held.plans.iter().map(|plan| plan.guard()).collect();
        for plan in &mut plans {
            plan.order().next(stream)?;
        }
        if let Some(last) = &self.last {
            stream.after(last)?;
        }
        let mut uses = Uses::on(stream);
        for (memory, access) in &self.held.memory {
            uses.launch(memory, *access)?;
        }
        self.last = Some(stream.clone());
        // SAFETY: the graph is alive, and holds what it uses.
        unsafe { sys::cuGraphLaunch(self.executable, stream.raw().cu_stream()) }
            .result()
            .during("launching a graph")
    }

    /// The driver's handle of the captured graph, to inspect its nodes. Launches by other means
    /// than [`Graph::launch`] are not ordered with other work.
    pub fn handle(&self) -> *mut std::ffi::c_void {
        self.raw.cast()
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Some(last) = &self.last {
            // Later uses of the memory may have replaced the record of the launch, so it is
            // recorded again.
            for (memory, _) in &self.held.memory {
                super::order::note(memory, last);
            }
            if last.bind().is_err() {
                return;
            }
        }
        // SAFETY: made by `capture`, destroyed once; the driver ends running work first.
        let _ = unsafe { sys::cuGraphExecDestroy(self.executable) };
        destroy(self.raw);
    }
}
