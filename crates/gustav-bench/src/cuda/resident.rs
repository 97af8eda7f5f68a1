//! The operands of a case in a GPU's memory, which all engines share.

use std::cell::RefCell;
use std::time::Instant;

use gustav_core::{DenseView, Layout, Result, Scalar};
use gustav_cuda::{DeviceCsr, DeviceDense};

use super::Started;
use crate::engine::Task;

/// A, B and C.
pub(crate) struct Resident<T> {
    pub a: DeviceCsr<T>,
    pub b: DeviceDense<T>,
    pub c: RefCell<DeviceDense<T>>,
    /// Milliseconds that A and B took to get there.
    pub transfer_ms: f64,
}

impl<T: Scalar> Resident<T> {
    /// Copies A and B of `task` to the GPU, and makes room for C.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`], [`gustav_core::Error::Device`].
    pub fn new(gpu: &Started, task: &Task<'_, T>) -> Result<Self> {
        let (m, k, n) = (task.a.nrows(), task.a.ncols(), task.columns);
        let start = Instant::now();
        let a = DeviceCsr::upload(&gpu.device, &task.a)?;
        let b = DenseView::row_major(k, n, task.dense_b())?;
        let b = DeviceDense::upload(&gpu.device, &b)?;
        let transfer_ms = start.elapsed().as_secs_f64() * 1e3;
        let c = DeviceDense::uninit(&gpu.device, m, n, Layout::RowMajor)?;
        Ok(Resident { a, b, c: RefCell::new(c), transfer_ms })
    }
}
