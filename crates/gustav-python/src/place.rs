//! Where the operands of a call are: in host memory, or on a GPU in the order of a stream.
//!
//! A function of the module that takes arrays has an argument `place`: `None` for host memory, or
//! `(device, stream, holder)`: the number of the GPU, the driver's handle of the stream that the work goes to (0 is
//! the legacy default stream), and an object that keeps the stream. It makes a [`Place`] of it, reads its arrays with
//! [`Array::of`](crate::array::Array::of) and the like, which refuse those that are elsewhere, and does its work within
//! [`Place::run`]. On a GPU an [`Array`](crate::array::Array) is a
//! [`DeviceBuffer`](gustav::cuda::DeviceBuffer) by `Array::buffer` or a [`DeviceDense`](gustav::cuda::DeviceDense) by
//! `Array::device_dense`, and calls are queued `.on(&gpu.stream)`. Arrays that are given as DLPack's capsules, or
//! whose library's current stream it is by DLPack's table of functions, are in the order of that stream already; others
//! are asked to be.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use gustav::cuda::{self, CudaDevice, KeptContext, Stream};
use gustav::{Device, Error};
use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::error::{Fault, catch, detached, interruptible, to_python};
use crate::shared::Shared;
use crate::spmm::UNPLANNED;
use crate::threads;

/// `place` as Python gives it: the number of a GPU, the handle of a stream, and what keeps the stream.
pub type Given = Option<(u32, usize, Py<PyAny>)>;

/// Where the operands of a call are.
#[derive(Clone)]
pub enum Place {
    Host,
    Gpu(Gpu),
}

/// A GPU, and the stream that the work of a call goes to.
#[derive(Clone)]
pub struct Gpu {
    pub ordinal: u32,
    pub device: Arc<Device>,
    pub stream: Stream,
    /// The stream's handle.
    handle: usize,
}

/// GPUs by their number, of the process that asked for them.
struct Devices {
    process: u32,
    devices: Vec<(u32, Arc<Device>)>,
}

impl Devices {
    fn get(&self, ordinal: u32) -> Option<Arc<Device>> {
        self.devices.iter().find(|(of, _)| *of == ordinal).map(|(_, device)| device.clone())
    }
}

static DEVICES: Mutex<Option<Devices>> = Mutex::new(None);

/// The GPU of this number.
///
/// # Errors
/// `RuntimeError` saying what is missing, and in a child that was forked when CUDA had been used.
pub fn gpu(py: Python<'_>, ordinal: u32) -> PyResult<Arc<Device>> {
    let process = std::process::id();
    let known = |held: &Option<Devices>| match held {
        Some(devices) if devices.process != process => Err(forked()),
        Some(devices) => Ok(devices.get(ordinal)),
        None => Ok(None),
    };
    if let Some(device) = known(&DEVICES.lock().unwrap_or_else(PoisonError::into_inner))? {
        return Ok(device);
    }
    let folders: Vec<PathBuf> = py.import("gustav._nvrtc")?.call_method0("folders")?.extract()?;
    cuda::search_nvrtc_in(folders);
    let made = detached(py, || Ok(Device::cuda(ordinal)?)).map_err(|e| unavailable(py, e))?;
    let mut held = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    // Another thread may have been faster.
    if let Some(device) = known(&held)? {
        return Ok(device);
    }
    let made = Arc::new(made);
    let devices = held.get_or_insert_with(|| Devices { process, devices: Vec::new() });
    devices.devices.push((ordinal, made.clone()));
    Ok(made)
}

fn forked() -> PyErr {
    PyRuntimeError::new_err(
        "CUDA was used before this process was forked, and the driver does not work in a forked child; start \
         processes by multiprocessing's method 'spawn' or 'forkserver'",
    )
}

/// What the driver says of a process that another library has forked after it used CUDA.
fn unavailable(py: Python<'_>, error: PyErr) -> PyErr {
    match error.value(py).to_string().contains("CUDA_ERROR_NOT_INITIALIZED") {
        true => forked(),
        false => error,
    }
}

impl Place {
    /// The place that Python names.
    ///
    /// # Errors
    /// As [`gpu`].
    pub fn new(py: Python<'_>, given: Given) -> PyResult<Self> {
        let Some((ordinal, handle, holder)) = given else { return Ok(Place::Host) };
        let device = gpu(py, ordinal)?;
        let on = device.cuda_device().map_err(to_python)?;
        // SAFETY: `holder` keeps the stream of the device's primary context, which all libraries of Python use. An int
        // that a program names, it keeps itself, as the documentation of `stream` requires.
        let stream = unsafe { Stream::held(on, handle as *mut c_void, holder) };
        cuda::drop_of_graphs();
        Ok(Place::Gpu(Gpu { ordinal, device, stream, handle }))
    }

    /// The device that plans are made for: the GPU, or the CPU with `threads`.
    ///
    /// # Errors
    /// As [`threads::device`].
    pub fn device(&self, threads: Option<usize>) -> PyResult<Device> {
        match self {
            Place::Host => threads::device(threads),
            Place::Gpu(gpu) => Ok(Device::clone(&gpu.device)),
        }
    }

    /// Runs `work` detached from the interpreter: on the threads of `device`, or for a GPU on this one, whose current
    /// device stays what it is.
    ///
    /// # Errors
    /// As [`detached`].
    pub fn run<R: Send>(
        &self,
        py: Python<'_>,
        device: &Device,
        work: impl FnOnce() -> Result<R, Fault> + Send,
    ) -> PyResult<R> {
        match self {
            Place::Host => detached(py, || device.threads().run(work)),
            Place::Gpu(_) => detached(py, || self.within(work)),
        }
    }

    /// As [`Place::run`], for work on this many elements, which Ctrl-C ends in host memory.
    ///
    /// # Errors
    /// As [`interruptible`].
    pub fn run_long<R: Send + 'static>(
        &self,
        py: Python<'_>,
        size: usize,
        device: &Device,
        work: impl FnOnce() -> Result<R, Fault> + Send + 'static,
    ) -> PyResult<R> {
        match self {
            Place::Host => {
                let device = device.clone();
                interruptible(py, size, move || device.threads().run(work))
            }
            Place::Gpu(_) => self.run(py, device, work),
        }
    }

    /// As [`Place::of`], for a plan that is made: all that is asked of the place is its device.
    ///
    /// # Errors
    /// As there.
    pub fn to_plan(&self, what: &str, ordinal: Option<u32>) -> PyResult<()> {
        self.of(what, ordinal)?;
        match self {
            Place::Host => Ok(()),
            Place::Gpu(gpu) => gpu.refuse_capture("making a plan", UNPLANNED),
        }
    }

    /// Executes a plan detached from the interpreter. A graph that is being captured holds the plan from here on.
    ///
    /// # Errors
    /// As [`detached`].
    pub fn execute<P: Send + 'static, R: Send>(
        &self,
        py: Python<'_>,
        plan: &Arc<Shared<P>>,
        work: impl FnOnce(&mut P) -> Result<R, Fault> + Send,
    ) -> PyResult<R> {
        detached(py, || {
            self.within(|| {
                if let Place::Gpu(gpu) = self {
                    gpu.stream.keep_for_capture(|| Box::new(plan.clone()))?;
                }
                plan.with(work)
            })
        })
    }

    /// As [`Place::execute`], for a product of this many multiplications, which Ctrl-C ends in host memory.
    ///
    /// # Errors
    /// As [`interruptible`].
    pub fn execute_long<P: Send + 'static, O: Send + 'static, R: Send + 'static>(
        &self,
        py: Python<'_>,
        size: usize,
        plan: &Arc<Shared<P>>,
        mut operands: O,
        work: impl FnOnce(&mut P, &mut O) -> Result<R, Fault> + Send + 'static,
    ) -> PyResult<R> {
        // Operands come back, for their objects are dropped sooner and at less cost where the interpreter is attached.
        let work = move |plan: &mut P| work(plan, &mut operands).map(|done| (done, operands));
        let (done, _operands) = match self {
            Place::Host => {
                let plan = plan.clone();
                interruptible(py, size, move || plan.with(work))
            }
            Place::Gpu(_) => self.execute(py, plan, work),
        }?;
        Ok(done)
    }

    /// Runs `work` in a thread that is detached, which keeps its current device.
    ///
    /// # Errors
    /// What `work` returns, and a panic.
    pub fn within<R>(&self, work: impl FnOnce() -> Result<R, Fault>) -> Result<R, Fault> {
        let _kept = match self {
            Place::Host => None,
            Place::Gpu(gpu) => Some(KeptContext::of(gpu.device.cuda_device()?)),
        };
        catch(work)
    }

    /// The name of the place.
    pub fn name(&self) -> String {
        match self {
            Place::Host => "host memory".into(),
            Place::Gpu(gpu) => format!("cuda:{}", gpu.ordinal),
        }
    }

    /// `what` is here: it is on the GPU number `ordinal`, or in host memory.
    ///
    /// # Errors
    /// `ValueError` naming both places where they differ.
    pub fn of(&self, what: &str, ordinal: Option<u32>) -> PyResult<()> {
        let found = match self {
            Place::Host => None,
            Place::Gpu(gpu) => Some(gpu.ordinal),
        };
        if found == ordinal {
            return Ok(());
        }
        let of = ordinal.map_or_else(|| "host memory".into(), |k| format!("cuda:{k}"));
        Err(elsewhere(what, &of, &self.name()))
    }
}

/// An operand that is not where the others are.
pub fn elsewhere(name: &str, found: &str, others: &str) -> PyErr {
    PyValueError::new_err(format!(
        "{name} is in {found}, and the other operands in {others}; give all of them on one device"
    ))
}

impl Gpu {
    /// The device of the backend.
    ///
    /// # Errors
    /// None that a GPU has.
    pub fn on(&self) -> Result<&CudaDevice, Error> {
        self.device.cuda_device()
    }

    /// The stream as DLPack names it.
    pub fn dlpack(&self) -> usize {
        // 0 is ambiguous there.
        self.handle.max(1)
    }

    /// Does `work`, which lets the device's own stream read memory of the caller's, between the work of the call's
    /// stream before it and after it.
    ///
    /// # Errors
    /// What `work` returns, and `Error::Device`.
    pub fn between<R>(&self, work: impl FnOnce() -> Result<R, Fault>) -> Result<R, Fault> {
        let own = self.on()?.stream();
        own.wait(&self.stream.record()?)?;
        let done = work();
        // After an error too: kernels may still run.
        self.stream.wait(&own.record()?)?;
        done
    }

    /// Refuses `what` while the stream is being captured.
    ///
    /// # Errors
    /// `NotImplementedError`.
    pub fn refuse_capture(&self, what: &str, nearest: &str) -> PyResult<()> {
        match self.stream.is_capturing() {
            false => Ok(()),
            true => Err(PyNotImplementedError::new_err(format!(
                "{what} waits for the device, which a stream that is being captured cannot; nearest that works: \
                 {nearest}"
            ))),
        }
    }
}

/// Something with memory on a GPU, whose end leaves the current device of the thread as it is.
pub struct OnGpu<T> {
    held: ManuallyDrop<T>,
    device: Option<Device>,
}

impl<T> OnGpu<T> {
    /// Of `device`, which may be the CPU.
    pub fn new(device: &Device, held: T) -> Self {
        let device = device.is_cuda().then(|| device.clone());
        OnGpu { held: ManuallyDrop::new(held), device }
    }
}

impl<T> Deref for OnGpu<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T> DerefMut for OnGpu<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

impl<T> Drop for OnGpu<T> {
    fn drop(&mut self) {
        let on = self.device.as_ref().and_then(|device| device.cuda_device().ok());
        let _kept = on.map(KeptContext::of);
        // SAFETY: this is its end.
        unsafe { ManuallyDrop::drop(&mut self.held) }
    }
}

/// Waits for the stream of a place.
#[pyfunction]
pub fn synchronize(py: Python<'_>, place: Given) -> PyResult<()> {
    let place = Place::new(py, place)?;
    match &place {
        Place::Host => Ok(()),
        Place::Gpu(gpu) => detached(py, || place.within(|| Ok(gpu.stream.synchronize()?))),
    }
}

/// Lets the graph that is being captured from the stream of a place, if one is, hold `object`.
#[pyfunction]
pub fn keep_for_capture(py: Python<'_>, place: Given, object: Py<PyAny>) -> PyResult<()> {
    match Place::new(py, place)? {
        Place::Host => Ok(()),
        Place::Gpu(gpu) => gpu.stream.keep_for_capture(|| Box::new(object)).map_err(to_python),
    }
}

/// The number of the GPU that memory is on.
#[pyfunction]
pub fn ordinal_of(address: u64) -> PyResult<usize> {
    cuda::ordinal_of(address).map_err(to_python)
}
