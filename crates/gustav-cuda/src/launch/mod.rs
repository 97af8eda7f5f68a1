//! Kernels on a device: compiling, loading and launching them.

mod kernel;
mod modules;
pub mod probe;

pub(crate) use kernel::{GRID_Y, Kernel, Module};
pub use probe::Probe;
