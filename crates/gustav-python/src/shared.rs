//! Plans that threads share, one execution at a time, and that a forked child may have.

use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;

use crate::error::Fault;

/// A plan that one call at a time executes; others wait.
pub struct Shared<P> {
    plan: Mutex<P>,
    /// The process whose calls execute the plan or wait for it, and how many there are. A child that is forked
    /// meanwhile has the plan locked, and none of the threads that would unlock it.
    calls: AtomicU64,
}

/// A process and a number of calls in one number.
fn packed(process: u32, calls: u32) -> u64 {
    u64::from(process) << 32 | u64::from(calls)
}

impl<P> Shared<P> {
    /// A plan that nobody executes yet.
    pub fn new(plan: P) -> Self {
        Shared { plan: Mutex::new(plan), calls: AtomicU64::new(0) }
    }

    /// Does `work` with the plan, when other calls have done theirs.
    ///
    /// A panic leaves a plan whose workspace may hold anything, which an execution overwrites.
    ///
    /// # Errors
    /// What `work` returns, and `RuntimeError` where the process was forked during an execution.
    pub fn with<R>(&self, work: impl FnOnce(&mut P) -> Result<R, Fault>) -> Result<R, Fault> {
        let _call = self.enter(std::process::id())?;
        work(&mut self.plan.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn enter(&self, process: u32) -> Result<Call<'_>, Fault> {
        let counted = self.calls.fetch_update(AcqRel, Acquire, |calls| {
            match ((calls >> 32) as u32, calls as u32) {
                (owner, calls) if owner == process => Some(packed(process, calls + 1)),
                (_, 0) => Some(packed(process, 1)),
                _ => None,
            }
        });
        match counted {
            Ok(_) => Ok(Call(&self.calls)),
            Err(_) => Err(Fault::Python(PyRuntimeError::new_err(
                "another thread was executing this plan when the process was forked, and does not end in the \
                 child; make the plan anew there",
            ))),
        }
    }
}

/// A call that executes a plan or waits for it.
struct Call<'a>(&'a AtomicU64);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Release);
    }
}
