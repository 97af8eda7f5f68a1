//! Sparse products on NVIDIA GPUs, straight from CSR.
//!
//! Kernels are CUDA C++ (`kernels/`), compiled at run time for the device at hand and cached in a
//! cache on disk. Nothing of CUDA is needed to build this crate, nor to run it until a device is
//! asked for: [`Device::cuda`] then says in one line what is missing.
//!
//! The modules stand in groups, and a group uses only those below it: docs/architecture.md lists them.

pub mod device;
#[macro_use]
pub mod jit;
pub mod attention;
mod launch;
pub mod matrix;
mod papers;
mod product;
mod schedule;
pub mod sddmm;
pub mod softmax;
pub mod spgemm;
pub mod spmm;
pub mod spmv;
mod vendor;

#[cfg(test)]
mod covering;

pub use device::{
    Device, DeviceBuffer, DeviceSliceMut, Event, Graph, PinnedBuffer, Profile, Stream, foreign,
    memory, pinned, profile, stream,
};
pub use launch::{Probe, probe};
pub use matrix::{DeviceCsr, DeviceDense, DevicePattern, DeviceValues, Entries};
pub use product::catalog::Entry;
pub use product::{Call, DeviceWinners, DeviceWinnersMut, SddmmCall, SpgemmCall, catalog};
pub use sddmm::SddmmPlan;
pub use spgemm::SpgemmPlan;
pub use spmm::{Config, Options, SpmmPlan, WinnerGradients};
pub use spmv::SpmvPlan;
pub use vendor::{cublas, cusparse};
