//! Sparse products on NVIDIA GPUs, straight from CSR.
//!
//! Kernels are CUDA C++ (`kernels/`), compiled at run time for the device at hand and kept in a
//! cache on disk. Nothing of CUDA is needed to build this crate, nor to run it until a device is
//! asked for: [`Device::cuda`] then says in one line what is missing.

#[macro_use]
mod parameter_block;

mod call;
pub mod catalog;
mod counters;
#[cfg(test)]
mod covering;
pub mod cublas;
pub mod cusparse;
pub mod device;
pub mod jit;
mod kernel;
pub mod matrix;
pub mod probe;
mod scan;
mod schedule;
mod source;
pub mod spgemm;
pub mod spmm;
pub mod spmv;

pub use call::{Call, SpgemmCall};
pub use catalog::Entry;
pub use device::graph::Graph;
pub use device::{Device, memory, pinned, profile, stream};
pub(crate) use device::{driver, graph, order};
pub use matrix::Entries;
#[cfg(test)]
pub(crate) use matrix::validate;
pub use matrix::{DeviceCsr, DeviceDense, DevicePattern, DeviceValues};
pub(crate) use matrix::{columns, compress, converted, layout, transposed};
pub use memory::{DeviceBuffer, DeviceSliceMut};
pub use pinned::PinnedBuffer;
pub use probe::Probe;
pub use profile::Profile;
pub use spgemm::SpgemmPlan;
pub use spmm::{Config, Options, SpmmPlan};
pub use spmv::SpmvPlan;
pub use stream::{Event, Stream};
