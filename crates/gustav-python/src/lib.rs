//! The module behind the Python package `gustav`: products on arrays of Python, in place.
//!
//! Types are dispatched once, at the entry of a call; behind it are the library's own functions. The
//! package in `python/gustav` says what its functions take, and documents them.

mod arguments;
mod array;
mod attention;
mod block;
mod device_array;
mod device_pattern;
mod device_spgemm;
mod dlpack;
mod eager;
mod element;
mod error;
mod exchange;
mod files;
mod interface;
mod mpi;
mod numpy;
mod overlap;
mod pattern;
mod place;
mod scale;
mod sddmm;
mod shape;
mod shared;
mod softmax;
mod spgemm;
mod spmm;
mod threads;

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command `gustav` with these arguments, the first of which is its name, and returns its exit
/// status.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    error::detached(py, || Ok(gustav_cli::run(arguments)))
}

#[pymodule]
fn _gustav(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<block::Block>()?;
    module.add_class::<pattern::Pattern>()?;
    module.add_class::<spmm::SpmmPlan>()?;
    module.add_class::<eager::Eager>()?;
    module.add_class::<eager::EagerSpmm>()?;
    module.add_class::<sddmm::SddmmPlan>()?;
    module.add_class::<softmax::SoftmaxPlan>()?;
    module.add_class::<attention::AttentionPlan>()?;
    module.add_class::<spgemm::SpgemmPlan>()?;
    module.add_class::<device_spgemm::DeviceBlock>()?;
    module.add_class::<device_array::DeviceArray>()?;
    mpi::add_to(module)?;
    module.add_class::<device_spgemm::DeviceSpgemmPlan>()?;
    module.add_function(wrap_pyfunction!(device_spgemm::spgemm_on_gpu, module)?)?;
    module.add_function(wrap_pyfunction!(spmm::spmm, module)?)?;
    module.add_function(wrap_pyfunction!(spmm::spmv, module)?)?;
    module.add_function(wrap_pyfunction!(sddmm::sddmm, module)?)?;
    module.add_function(wrap_pyfunction!(spgemm::spgemm, module)?)?;
    module.add_function(wrap_pyfunction!(files::read, module)?)?;
    module.add_function(wrap_pyfunction!(files::write, module)?)?;
    module.add_function(wrap_pyfunction!(files::devices, module)?)?;
    module.add_function(wrap_pyfunction!(place::synchronize, module)?)?;
    module.add_function(wrap_pyfunction!(place::keep_for_capture, module)?)?;
    module.add_function(wrap_pyfunction!(place::ordinal_of, module)?)?;
    module.add_function(wrap_pyfunction!(threads::set_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(threads::get_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)
}
