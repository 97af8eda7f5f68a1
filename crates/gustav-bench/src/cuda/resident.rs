//! The operands of a case in a GPU's memory, which all engines share.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use gustav_core::{CsrView, DenseView, Layout, Result, Scalar};
use gustav_cuda::{DeviceCsr, DeviceDense};
use gustav_plan::orders::{Search, WarpShape};
use gustav_plan::{Features, Order, RowOrder};

use super::Started;
use crate::engine::Task;

/// A, B and C.
pub(crate) struct Resident<T> {
    pub a: DeviceCsr<T>,
    pub b: DeviceDense<T>,
    pub c: RefCell<DeviceDense<T>>,
    /// Milliseconds that A and B took to get there.
    pub transfer_ms: f64,
    // Orders of the rows of A that were made, with the milliseconds that took.
    orders: RefCell<BTreeMap<(Order, Search), Rc<(RowOrder, f64)>>>,
    // Milliseconds that counting the features of A took.
    features_ms: OnceCell<f64>,
}

// Bytes of a cache line of a GPU.
const LINE: usize = 128;

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
        let b = match task.layouts.b() {
            Layout::RowMajor => DeviceDense::upload(&gpu.device, &b)?,
            layout => DeviceDense::upload(&gpu.device, &b.to_layout(layout)?.view())?,
        };
        let transfer_ms = start.elapsed().as_secs_f64() * 1e3;
        let c = DeviceDense::uninit(&gpu.device, m, n, task.layouts.c())?;
        let (orders, features_ms) = (RefCell::default(), OnceCell::new());
        Ok(Resident { a, b, c: RefCell::new(c), transfer_ms, orders, features_ms })
    }

    /// An order of the rows of A and the milliseconds of making it, made at the first call.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn order(
        &self,
        order: Order,
        search: Search,
        a: &CsrView<'_, T>,
    ) -> Result<Rc<(RowOrder, f64)>> {
        if let Some(made) = self.orders.borrow().get(&(order, search)) {
            return Ok(made.clone());
        }
        let (ms, made) = crate::engine::timed(|| order.of(a, Self::shape(), search));
        let made = Rc::new((made?, ms));
        self.orders.borrow_mut().insert((order, search), made.clone());
        Ok(made)
    }

    /// Milliseconds of counting the features of A on the host, which is done at the first call.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn features_ms(&self, a: &CsrView<'_, T>) -> Result<f64> {
        if let Some(ms) = self.features_ms.get() {
            return Ok(*ms);
        }
        let (ms, features) = crate::engine::timed(|| Features::new(a, Self::shape()));
        features?;
        Ok(*self.features_ms.get_or_init(|| ms))
    }

    fn shape() -> WarpShape {
        WarpShape { line: LINE / T::DTYPE.bytes(), ..WarpShape::default() }
    }
}
