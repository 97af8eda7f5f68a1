//! Sparse products on NVIDIA GPUs, directly from CSR.
//!
//! Kernels are CUDA C++ (`kernels/`), compiled at run time for the device in use and cached on
//! disk. Building this crate needs nothing of CUDA, nor does running it until a device is
//! requested: [`Device::cuda`] says in one line what is missing.
//!
//! The modules form layers, and each uses only those below it: docs/architecture.md lists them.

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
pub use matrix::{DeviceCsr, DeviceDense, DevicePattern, DeviceValues, Entries, RowList};
pub use product::catalog::Entry;
pub use product::{Call, DeviceWinners, DeviceWinnersMut, SddmmCall, SpgemmCall, catalog};
pub use sddmm::SddmmPlan;
pub use spgemm::SpgemmPlan;
pub use spmm::{Config, Options, SpmmPlan, WinnerGradients};
pub use spmv::SpmvPlan;
pub use vendor::{cublas, cusparse};
