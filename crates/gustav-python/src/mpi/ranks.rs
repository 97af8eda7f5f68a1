//! The ranks of a program.

use std::fmt::Display;

use gustav::Error;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::error::{Fault, catch, detached};

/// The ranks of a program, as one of them sees them.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct Ranks {
    pub inner: gustav_mpi::Ranks,
    /// Whether threads may call them in turn.
    #[pyo3(get)]
    takes_threads: bool,
    /// Whether gustav has initialised their MPI, and finalises it.
    #[pyo3(get)]
    is_ours: bool,
}

/// What a rank fails with, in words.
struct Words(String);

impl Display for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Error> for Words {
    fn from(error: Error) -> Self {
        Words(error.to_string())
    }
}

#[pymethods]
impl Ranks {
    /// Those of the job, on the MPI of the process.
    #[staticmethod]
    #[cfg(unix)]
    fn world(py: Python<'_>) -> PyResult<Self> {
        detached(py, || {
            let mpi = gustav_mpi::Mpi::init()?;
            Ok(Ranks::of_mpi(&mpi, mpi.world()?))
        })
    }

    /// MPI is loaded on Unix alone.
    #[staticmethod]
    #[cfg(not(unix))]
    fn world() -> PyResult<Self> {
        Err(no_mpi_here())
    }

    /// See `world`.
    #[staticmethod]
    #[cfg(not(unix))]
    fn of(_handle: usize, _bytes: usize, _version: &str) -> PyResult<Self> {
        Err(no_mpi_here())
    }

    /// One rank without an MPI.
    #[staticmethod]
    fn alone() -> Self {
        Ranks { inner: gustav_mpi::Ranks::alone(), takes_threads: true, is_ours: false }
    }

    /// Those of a communicator with this handle of `bytes` bytes, of a program that uses the MPI which says this
    /// version of itself.
    #[staticmethod]
    #[cfg(unix)]
    fn of(py: Python<'_>, handle: usize, bytes: usize, version: &str) -> PyResult<Self> {
        detached(py, || {
            let mpi = gustav_mpi::Mpi::init()?;
            let name = |text: &str| {
                // What `Mpi::version` says of a library: its name and version.
                let first = text.split(['\0', '\n', ',']).next().unwrap_or_default();
                first.split_whitespace().collect::<Vec<_>>().join(" ").replace(" :", ":")
            };
            let (theirs, ours) = (name(version), name(mpi.version()));
            if (&theirs, bytes) != (&ours, mpi.handle_bytes()) {
                return Err(PyRuntimeError::new_err(format!(
                    "mpi4py uses {theirs} with handles of {bytes} bytes, and gustav found {ours} with handles of {}: \
                     they are of different MPIs; import mpi4py.MPI before gustav.mpi, and leave GUSTAV_MPI unset",
                    mpi.handle_bytes()
                ))
                .into());
            }
            // SAFETY: the handle is that of a communicator of mpi4py, whose MPI says the same of itself and has handles
            // of the same size, and which is initialised, as a communicator exists.
            let inner = unsafe { mpi.ranks_of(handle) }?;
            Ok(Ranks::of_mpi(&mpi, inner))
        })
    }

    /// The number of this rank.
    #[getter]
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    /// The number of ranks.
    #[getter]
    fn size(&self) -> usize {
        self.inner.size()
    }

    /// What connects them.
    #[getter]
    fn description(&self) -> String {
        self.inner.communicator().description()
    }

    /// The number of this rank's host. Collective.
    fn host(&self, py: Python<'_>) -> PyResult<usize> {
        detached_on(py, &self.inner, || Ok(self.inner.hosts()?.numbers()[self.inner.rank()]))
    }

    /// What every rank gives as `mine`, as far as it fits into a kilobyte. Collective.
    fn gather_text(&self, py: Python<'_>, mine: &str) -> PyResult<Vec<String>> {
        detached_on(py, &self.inner, || Ok(self.inner.gather_text(mine)?))
    }

    /// Tells the other ranks, at their next collective call, that this one failed.
    fn fail(&self, py: Python<'_>, words: String) {
        py.detach(|| report(&self.inner, words));
    }

    /// Raises what another rank fails with, or that it makes another call than `call`. Collective.
    fn check(&self, py: Python<'_>, call: &str) -> PyResult<()> {
        let arguments = vec![("call", call.to_owned())];
        detached_on(py, &self.inner, || Ok(self.inner.agree_on(arguments, Ok::<_, Error>(()))?))
    }

    /// Whether some rank says so; raises what another fails with. Collective.
    fn any(&self, py: Python<'_>, mine: bool) -> PyResult<bool> {
        if self.inner.size() == 1 {
            return Ok(mine);
        }
        detached_on(py, &self.inner, || Ok(self.inner.any(mine)?))
    }

    /// A defect in collective work, whose consequences tests look at.
    #[cfg(debug_assertions)]
    fn _panic(&self, py: Python<'_>) -> PyResult<()> {
        detached_on(py, &self.inner, || panic!("on purpose"))
    }

    /// Ends the job with this exit status.
    fn abort(&self, py: Python<'_>, status: i32) {
        py.detach(|| self.inner.communicator().abort(status));
    }
}

#[cfg(unix)]
impl Ranks {
    fn of_mpi(mpi: &gustav_mpi::Mpi, inner: gustav_mpi::Ranks) -> Self {
        Ranks { inner, takes_threads: takes_threads(mpi), is_ours: mpi.is_ours() }
    }
}

/// Runs collective work detached from the interpreter. After a panic nobody knows what other ranks wait for: the job
/// ends.
///
/// # Errors
/// As [`detached`].
pub fn detached_on<R: Send>(
    py: Python<'_>,
    ranks: &gustav_mpi::Ranks,
    work: impl FnOnce() -> Result<R, Fault> + Send,
) -> PyResult<R> {
    detached(py, || {
        let result = catch(work);
        if let (Err(Fault::Panic(text)), true) = (&result, ranks.size() > 1) {
            eprintln!(
                "rank {}: internal error in gustav, which is a defect of it: {text}",
                ranks.rank()
            );
            ranks.communicator().abort(1);
        }
        result
    })
}

#[cfg(unix)]
fn takes_threads(mpi: &gustav_mpi::Mpi) -> bool {
    mpi.thread_level() >= gustav_mpi::ThreadLevel::Serialized
}

#[cfg(not(unix))]
fn no_mpi_here() -> PyErr {
    PyRuntimeError::new_err(
        "no MPI: gustav loads one on Linux, and not on this system; Ranks.alone() multiplies on one rank",
    )
}

fn report(ranks: &gustav_mpi::Ranks, words: String) {
    // It returns the same words, or an error of communication; the caller has an error of its own already.
    let _: Result<(), Words> = ranks.together(Err(Words(words)));
}

/// `mine`, reported to the other ranks if it is an error of Python, which was found before any communication.
/// Errors of the library are known to all.
///
/// # Errors
/// Those of `mine`.
pub fn reported<R, E: Into<Fault>>(
    ranks: &gustav_mpi::Ranks,
    mine: Result<R, E>,
) -> Result<R, Fault> {
    let mine = mine.map_err(E::into);
    if let Err(Fault::Python(e)) = &mine {
        let words = e.to_string();
        match Python::try_attach(|py| py.detach(|| report(ranks, words.clone()))) {
            Some(()) => {}
            None => report(ranks, words),
        }
    }
    mine
}

/// A partition of so many rows.
///
/// # Errors
/// `ValueError` for counts that do not fit the ranks.
pub fn partition(
    ranks: &gustav_mpi::Ranks,
    what: &str,
    rows: usize,
    counts: Option<Vec<usize>>,
) -> Result<gustav_mpi::Partition, Fault> {
    let Some(counts) = counts else {
        return Ok(gustav_mpi::Partition::even(rows, ranks.size()));
    };
    let sum: u128 = counts.iter().map(|c| *c as u128).sum();
    if (counts.len(), sum) != (ranks.size(), rows as u128) {
        return Err(PyValueError::new_err(format!(
            "{what}: expected {} numbers whose sum is {rows}, found {} with the sum {sum}",
            ranks.size(),
            counts.len()
        ))
        .into());
    }
    Ok(gustav_mpi::Partition::of_counts(&counts)?)
}
