//! Errors of the library as exceptions of Python, and panics as errors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use gustav::Error;
use pyo3::exceptions::{
    PyKeyboardInterrupt, PyMemoryError, PyNotImplementedError, PyOSError, PyRuntimeError,
    PyValueError,
};
use pyo3::prelude::*;

/// The exception for an error of the library, with its text.
pub fn to_python(error: Error) -> PyErr {
    let text = error.to_string();
    match error.kind() {
        Error::Unsupported { .. } => PyNotImplementedError::new_err(text),
        Error::OutOfMemory { .. } => PyMemoryError::new_err(text),
        Error::NoDevice { .. } if text.contains("NVRTC") => PyRuntimeError::new_err(format!(
            "{text}; for Python: pip install nvidia-cuda-nvrtc brings it"
        )),
        Error::NoMpi { .. } => {
            PyRuntimeError::new_err(format!("{text}; for Python: pip install mpi4py mpich"))
        }
        Error::OtherRank { .. } | Error::Communication { .. } => PyRuntimeError::new_err(text),
        Error::NoDevice { .. } | Error::Device { .. } => PyRuntimeError::new_err(text),
        Error::Cancelled { .. } => PyKeyboardInterrupt::new_err(text),
        Error::Io { source, .. } => match source.raw_os_error() {
            // Python chooses FileNotFoundError and the like by the number.
            Some(number) => PyOSError::new_err((number, text)),
            None => PyOSError::new_err(text),
        },
        _ => PyValueError::new_err(text),
    }
}

/// Runs `work` detached from the interpreter, so that other threads of Python run meanwhile.
///
/// # Errors
/// What `work` returns, and `RuntimeError` in place of a panic.
pub fn detached<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<R, Fault> + Send,
) -> PyResult<R> {
    py.detach(|| catch(work)).map_err(PyErr::from)
}

/// Multiplications from which on a call listens for signals: it takes long beside starting a thread.
const LONG: usize = 1 << 26;
/// How often it listens.
const LISTEN: Duration = Duration::from_millis(50);

/// As [`detached`], for host memory and work of this many multiplications, which Ctrl-C ends if they are many.
///
/// The work goes on in a thread that nobody waits for, because kernels are not stopped half way; it has what it needs,
/// arrays of Python included, until it is done.
///
/// # Errors
/// As [`detached`], and what a handler of a signal raises.
pub fn interruptible<R: Send + 'static>(
    py: Python<'_>,
    size: usize,
    work: impl FnOnce() -> Result<R, Fault> + Send + 'static,
) -> PyResult<R> {
    if size < LONG {
        return detached(py, work);
    }
    let (done, mut results) = sync_channel(1);
    // Nobody receives what is done after a signal.
    let work = move || drop(done.send(catch(work)));
    thread::Builder::new().name("gustav product".into()).spawn(work).map_err(PyErr::from)?;
    loop {
        let results = &mut results;
        match py.detach(move || results.recv_timeout(LISTEN)) {
            Ok(result) => return result.map_err(PyErr::from),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Fault::Panic("a product ended without a result".into()).into());
            }
        }
    }
}

/// Runs `work`, and returns a panic in it as an error.
pub fn catch<R>(work: impl FnOnce() -> Result<R, Fault>) -> Result<R, Fault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Fault::Panic(text.unwrap_or("unknown").to_owned()))
    })
}

/// What can go wrong while detached.
pub enum Fault {
    Library(Error),
    Python(PyErr),
    Panic(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Library(error)
    }
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Self {
        Fault::Python(error)
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Library(error) => to_python(error),
            Fault::Python(error) => error,
            Fault::Panic(text) => PyRuntimeError::new_err(format!(
                "internal error in gustav, which is a defect of it: {text}"
            )),
        }
    }
}
