//! The operands of a case in a GPU's memory, which all engines share.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use gustav_core::{CsrView, DenseView, Error, Layout, Operation, Result, Scalar};
use gustav_cuda::{DeviceBuffer, DeviceCsr, DeviceDense, Stream};
use gustav_plan::orders::{Search, WarpShape};
use gustav_plan::{Features, Order, RowOrder};

use super::Started;
use crate::engine::Task;

/// A, B and C.
pub(crate) struct Set<T> {
    pub a: DeviceCsr<T>,
    /// A vector is a matrix of one column.
    pub b: DeviceDense<T>,
    pub c: RefCell<Output<T>>,
}

/// The output of a product.
pub(crate) enum Output<T> {
    /// Of SpMM.
    Matrix(DeviceDense<T>),
    /// Of SpMV.
    Vector(DeviceBuffer<T>),
}

impl<T: Scalar> Output<T> {
    /// Zeros: C or y of `task`.
    fn new(gpu: &Started, task: &Task<'_, T>) -> Result<Self> {
        let zeros = DeviceBuffer::zeros(&gpu.device, task.dense_c_len(), "C or y on the device")?;
        Self::over(task, zeros)
    }

    /// C or y of `task` in the memory of `values`.
    ///
    /// # Errors
    /// [`Error::Length`] when there are too few.
    pub fn over(task: &Task<'_, T>, values: DeviceBuffer<T>) -> Result<Self> {
        Ok(match task.operation {
            Operation::Spmv => Output::Vector(values),
            _ => Output::Matrix(packed(task.a.nrows(), task.columns, task.layouts.c(), values)?),
        })
    }

    /// The values.
    pub fn data(&self) -> &DeviceBuffer<T> {
        match self {
            Output::Matrix(c) => c.data(),
            Output::Vector(y) => y,
        }
    }

    /// Sets every byte.
    ///
    /// # Errors
    /// [`gustav_core::Error::Device`].
    pub fn fill(&mut self, byte: u8, stream: &Stream) -> Result<()> {
        match self {
            Output::Matrix(c) => c.data_mut().fill(byte, stream),
            Output::Vector(y) => y.fill(byte, stream),
        }
    }
}

/// A packed matrix in the memory of `values`.
///
/// # Errors
/// [`Error::Length`] when there are too few.
pub(super) fn packed<T: Scalar>(
    rows: usize,
    columns: usize,
    layout: Layout,
    values: DeviceBuffer<T>,
) -> Result<DeviceDense<T>> {
    let line = match layout {
        Layout::RowMajor => columns,
        Layout::ColumnMajor => rows,
    };
    DeviceDense::new(rows, columns, layout, line, values)
}

/// One set of operands, or several equal ones that alternate, so that each is cold when it is used again.
pub(crate) struct Resident<T> {
    pub sets: Vec<Set<T>>,
    /// Milliseconds of the copy of the first A and B.
    pub transfer_ms: f64,
    // Row orders of A computed so far, with their milliseconds.
    orders: RefCell<BTreeMap<(Order, Search), Rc<(RowOrder, f64)>>>,
    // Milliseconds of computing the features of A.
    features_ms: OnceCell<f64>,
}

// Bytes of a cache line of a GPU.
const LINE: usize = 128;
// Total size of alternating sets in multiples of L2.
const CACHES: usize = 4;
// Most sets, as each needs a plan.
const MOST_SETS: usize = 512;

/// The number of alternating sets of `bytes` each, for an L2 of `l2` bytes and `free` bytes of
/// memory: at least two, so that no set is used twice in a row. One if that many, with the plans of
/// `engines`, do not fit, or would be more than [`MOST_SETS`].
fn sets(bytes: usize, engines: usize, l2: usize, free: usize) -> usize {
    let enough = (CACHES * l2).div_ceil(bytes.max(1)).max(2);
    // A plan may take as much memory as its operands.
    let needed = enough.saturating_mul((1 + engines).saturating_mul(bytes));
    if enough > MOST_SETS || needed > free { 1 } else { enough }
}

/// Sets of operands that `new` makes, as many as [`sets`] returns for `rotate` engines, or one; and the milliseconds
/// of making the first.
///
/// # Errors
/// Those of `new`.
pub(super) fn alternating<S>(
    gpu: &Started,
    rotate: Option<usize>,
    new: impl Fn() -> Result<S>,
    bytes: impl FnOnce(&S) -> usize,
) -> Result<(f64, Vec<S>)> {
    let (ms, first) = crate::engine::timed(&new);
    let first = first?;
    let count = match rotate {
        Some(engines) => sets(bytes(&first), engines, gpu.about.l2_bytes, gpu.device.memory()?.0),
        None => 1,
    };
    let mut all = vec![first];
    for _ in 1..count {
        match new() {
            Ok(set) => all.push(set),
            Err(Error::OutOfMemory { .. }) => {
                all.truncate(1);
                break;
            }
            Err(e) => return Err(e),
        }
    }
    Ok((ms, all))
}

impl<T: Scalar> Set<T> {
    fn new(gpu: &Started, task: &Task<'_, T>) -> Result<Self> {
        let (k, n) = (task.a.ncols(), task.columns);
        let a = DeviceCsr::upload(&gpu.device, &task.a)?;
        let b = DenseView::row_major(k, n, task.dense_b())?;
        let b = match task.layouts.b() {
            Layout::RowMajor => DeviceDense::upload(&gpu.device, &b)?,
            layout => DeviceDense::upload(&gpu.device, &b.to_layout(layout)?.view())?,
        };
        let c = RefCell::new(Output::new(gpu, task)?);
        Ok(Set { a, b, c })
    }

    fn bytes(&self) -> usize {
        self.a.bytes() + self.b.data().bytes() + self.c.borrow().data().bytes()
    }
}

impl<T: Scalar> Resident<T> {
    /// Copies A and B of `task` to the GPU and allocates C. With `rotate`, the number of engines,
    /// as many sets as [`sets`] returns; without, one.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`], [`gustav_core::Error::Device`].
    pub fn new(gpu: &Started, task: &Task<'_, T>, rotate: Option<usize>) -> Result<Self> {
        let (transfer_ms, sets) = alternating(gpu, rotate, || Set::new(gpu, task), Set::bytes)?;
        let (orders, features_ms) = (RefCell::default(), OnceCell::new());
        Ok(Resident { sets, transfer_ms, orders, features_ms })
    }

    /// A row order of A and the milliseconds of computing it, which the first call does.
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
        let (ms, made) = crate::engine::timed(|| order.of(&a.pattern(), Self::shape(), search));
        let made = Rc::new((made?, ms));
        self.orders.borrow_mut().insert((order, search), made.clone());
        Ok(made)
    }

    /// Milliseconds of computing the features of A on the host, which the first call does.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn features_ms(&self, a: &CsrView<'_, T>) -> Result<f64> {
        if let Some(ms) = self.features_ms.get() {
            return Ok(*ms);
        }
        let (ms, features) = crate::engine::timed(|| Features::new(&a.pattern(), Self::shape()));
        features?;
        Ok(*self.features_ms.get_or_init(|| ms))
    }

    fn shape() -> WarpShape {
        WarpShape { line: LINE / T::DTYPE.bytes(), ..WarpShape::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_together_larger_than_caches() {
        const L2: usize = 50 << 20;
        let huge = usize::MAX;
        assert_eq!(sets(2 << 20, 6, L2, huge), 100);
        assert_eq!(sets(3 << 20, 6, L2, huge), 67);
        assert_eq!(sets(1 << 30, 6, L2, huge), 2);
        // Small operands would need too many sets.
        assert_eq!(sets(100 << 10, 6, L2, huge), 1);
        assert_eq!(sets(0, 6, L2, huge), 1);
        // Large ones need memory for two and the plans of all engines.
        assert_eq!(sets(1 << 30, 6, L2, 14 << 30), 2);
        assert_eq!(sets(1 << 30, 6, L2, (14 << 30) - 1), 1);
    }
}
