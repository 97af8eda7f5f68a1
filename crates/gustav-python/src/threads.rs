//! The threads that products run on.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use gustav::{Device, Threads};
use pyo3::prelude::*;

use crate::arguments;
use crate::error::to_python;

/// Pools by their number of threads, of the process that made them.
struct Pools {
    process: u32,
    /// What `set_num_threads` said, or what the environment says.
    count: usize,
    pools: HashMap<usize, Threads>,
}

static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

// Variables that say how many threads a program may use, the first that is set.
const VARIABLES: [&str; 3] = ["GUSTAV_NUM_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS"];

/// What the environment allows, one thread per core unless it says otherwise.
fn default_count() -> usize {
    let said = VARIABLES.iter().find_map(|name| {
        // OMP_NUM_THREADS may list a number for every level of nesting.
        let text = std::env::var(name).ok()?;
        text.split(',').next()?.trim().parse().ok().filter(|n| *n > 0)
    });
    said.unwrap_or_else(|| available_parallelism().map_or(1, usize::from))
}

fn with_pools<R>(work: impl FnOnce(&mut Pools) -> R) -> R {
    let mut held = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    let pools = match held.take() {
        Some(pools) if pools.process == process => pools,
        // A child has none of its parent's threads; it begins with its own alone, as it is most
        // often one of many.
        Some(_) => Pools { process, count: 1, pools: HashMap::new() },
        None => Pools { process, count: default_count(), pools: HashMap::new() },
    };
    work(held.insert(pools))
}

/// The CPU with `count` threads, or as many as are set for the process.
///
/// # Errors
/// `ValueError` for 0 threads or more than the system gives.
pub fn device(count: Option<usize>) -> PyResult<Device> {
    let threads = with_pools(|pools| {
        let count = count.unwrap_or(pools.count);
        if let Some(threads) = pools.pools.get(&count) {
            return Ok(threads.clone());
        }
        let threads = Threads::new(count, false)?;
        pools.pools.insert(count, threads.clone());
        Ok(threads)
    });
    Ok(Device::cpu().on(threads.map_err(to_python)?))
}

/// Sets how many threads products run on where a call does not say.
#[pyfunction]
pub fn set_num_threads(#[pyo3(from_py_with = arguments::of_threads)] count: usize) -> PyResult<()> {
    device(Some(count))?;
    with_pools(|pools| pools.count = count);
    Ok(())
}

/// How many threads products run on where a call does not say.
#[pyfunction]
pub fn get_num_threads() -> usize {
    with_pools(|pools| pools.count)
}
