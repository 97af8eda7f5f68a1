//! Sparse products on NVIDIA GPUs, straight from CSR.
//!
//! Kernels are CUDA C++ (`kernels/`), compiled at run time for the device at hand and kept in a
//! cache on disk. Nothing of CUDA is needed to build this crate, nor to run it until a device is
//! asked for: [`Device::cuda`] then says in one line what is missing.

#[macro_use]
mod parameter_block;

pub mod catalog;
mod columns;
mod compress;
mod converted;
mod counters;
#[cfg(test)]
mod covering;
pub mod cublas;
pub mod cusparse;
mod dense;
pub mod device;
mod driver;
#[cfg(test)]
mod items;
pub mod jit;
mod kernel;
pub mod matrix;
pub mod memory;
pub mod pinned;
mod pool;
pub mod probe;
pub mod profile;
mod scan;
mod schedule;
#[cfg(test)]
mod shares;
mod source;
pub mod spgemm;
pub mod spmm;
pub mod spmv;
pub mod stream;
mod transposed;

pub use catalog::Entry;
pub use compress::Entries;
pub use device::Device;
pub use matrix::{DeviceCsr, DeviceDense};
pub use memory::DeviceBuffer;
pub use pinned::PinnedBuffer;
pub use probe::Probe;
pub use profile::Profile;
pub use spgemm::SpgemmPlan;
pub use spmm::{Config, Options, SpmmPlan};
pub use spmv::SpmvPlan;
pub use stream::{Event, Stream};
