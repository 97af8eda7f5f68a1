//! Kernels on a device: compiled, loaded, launched.

mod kernel;
mod modules;
pub mod probe;

pub(crate) use kernel::{GRID_Y, Kernel, Module};
pub use probe::Probe;
