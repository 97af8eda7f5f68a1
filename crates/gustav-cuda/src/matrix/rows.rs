//! Some rows of dense matrices on a device, packed one after another and added to them.

use gustav_core::{DType, Error, Layout, Result, Scalar, Scale, Semiring, validate};

use super::DeviceDense;
use crate::device::order::Uses;
use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;
use crate::jit::source::{self, bits};
use crate::launch::Kernel;

const BLOCK: u32 = 256;

/// The source with its parameters.
pub(crate) fn request(dtype: DType, semiring: Semiring) -> Request {
    request!("dense/rows.cu")
        .with_block::<Arguments>()
        .with("VALUE", dtype)
        .with("SEMIRING", source::semiring(semiring))
        .with("BLOCK", BLOCK)
}

parameter_block! {
    struct Arguments {
        matrix: *mut Value,
        rows: *const u32,
        packed: *mut Value,
        /// Elements of the rows.
        count: u64,
        columns: u64,
        /// Distance between neighbouring rows.
        row_step: u64,
        /// Distance between neighbouring columns.
        column_step: u64,
        alpha: u64,
        beta: u64,
    }
}

/// Numbers of rows on a device, with which rows of dense matrices are packed, added to, or stored.
pub struct RowList<T: Scalar> {
    rows: DeviceBuffer<u32>,
    /// More than every number.
    bound: usize,
    pack: Kernel<Arguments>,
    add: Kernel<Arguments>,
    store: Kernel<Arguments>,
    most: u64,
    semiring: Semiring,
    value: std::marker::PhantomData<T>,
}

/// Where an element of a matrix is.
struct Steps {
    address: u64,
    columns: usize,
    row: usize,
    column: usize,
}

impl Steps {
    fn of<T: Scalar>(m: &DeviceDense<T>) -> Self {
        let ld = m.leading_dimension();
        let (row, column) = match m.layout() {
            Layout::RowMajor => (ld, 1),
            Layout::ColumnMajor => (1, ld),
        };
        Steps { address: m.data().address(), columns: m.ncols(), row, column }
    }
}

impl<T: Scalar> RowList<T> {
    /// The rows `rows`, sums of which are those of `semiring`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::NoDevice`] when the run-time compiler is missing, [`Error::Device`].
    pub fn new(device: &Device, rows: &[u32], semiring: Semiring) -> Result<Self> {
        let module = device.module(&request(T::DTYPE, semiring))?;
        let profile = device.profile();
        let most = profile.multiprocessors * profile.threads_per_multiprocessor;
        Ok(RowList {
            rows: DeviceBuffer::from_slice(device, rows, "a list of rows on the device")?,
            bound: rows.iter().max().map_or(0, |last| *last as usize + 1),
            pack: module.kernel(c"pack")?,
            add: module.kernel(c"add")?,
            store: module.kernel(c"store")?,
            most: most.max(1) as u64,
            semiring,
            value: std::marker::PhantomData,
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of the list.
    pub fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    /// Queues a copy of the rows of `from`, one after another, to `to` from value `first` on.
    ///
    /// # Errors
    /// [`Error::Shape`] when `from` lacks a row, [`Error::Length`] when `to` is too short, [`Error::Argument`] for
    /// memory of another device, [`Error::Device`].
    pub fn pack(
        &self,
        from: &DeviceDense<T>,
        to: &mut DeviceBuffer<T>,
        first: usize,
        stream: &Stream,
    ) -> Result<()> {
        self.check(from.nrows(), from.data(), to)?;
        self.gather((Steps::of(from), from.data()), to, first, stream)
    }

    /// The same for values: those at the positions that the list has.
    ///
    /// # Errors
    /// As [`RowList::pack`].
    pub fn pack_values(
        &self,
        from: &DeviceBuffer<T>,
        to: &mut DeviceBuffer<T>,
        first: usize,
        stream: &Stream,
    ) -> Result<()> {
        self.check(from.len(), from, to)?;
        let steps = Steps { address: from.address(), columns: 1, row: 1, column: 1 };
        self.gather((steps, from), to, first, stream)
    }

    fn gather(
        &self,
        (steps, from): (Steps, &DeviceBuffer<T>),
        to: &mut DeviceBuffer<T>,
        first: usize,
        stream: &Stream,
    ) -> Result<()> {
        let len = self.len().saturating_mul(steps.columns);
        self.check_room(first, len, to)?;
        let mut uses = Uses::on(stream);
        uses.read(from)?;
        uses.write(to)?;
        let packed = to.address() + (first * size_of::<T>()) as u64;
        // SAFETY: every row is one of the matrix, and there is memory for all of them.
        unsafe { self.launch(&self.pack, &steps, packed, (0, 0), stream) }
    }

    /// Queues `to[rows[k]] = to[rows[k]] ⊕ scale(α, row k of from)`; no row of the list repeats.
    ///
    /// # Errors
    /// As [`RowList::pack`].
    pub fn add(
        &self,
        from: &DeviceBuffer<T>,
        to: &mut DeviceDense<T>,
        alpha: Option<T::Accum>,
        stream: &Stream,
    ) -> Result<()> {
        let one = self.semiring.one();
        self.scatter(&self.add, from, to, (alpha.unwrap_or(one), one), stream)
    }

    /// Queues `to[rows[k]] = scale(α, row k of from) ⊕ scale(β, to[rows[k]])`, where `to` is not read if β is the
    /// semiring's zero; no row of the list repeats.
    ///
    /// # Errors
    /// As [`RowList::pack`].
    pub fn store(
        &self,
        from: &DeviceBuffer<T>,
        to: &mut DeviceDense<T>,
        scale: Scale<T::Accum>,
        stream: &Stream,
    ) -> Result<()> {
        self.scatter(&self.store, from, to, scale.over(self.semiring), stream)
    }

    fn scatter(
        &self,
        kernel: &Kernel<Arguments>,
        from: &DeviceBuffer<T>,
        to: &mut DeviceDense<T>,
        (alpha, beta): (T::Accum, T::Accum),
        stream: &Stream,
    ) -> Result<()> {
        self.check(to.nrows(), to.data(), from)?;
        let steps = Steps::of(to);
        self.check_room(0, self.len().saturating_mul(steps.columns), from)?;
        let mut uses = Uses::on(stream);
        uses.read(from)?;
        uses.write(&to.data_mut())?;
        // SAFETY: every row is one of the matrix, and as many are packed.
        unsafe { self.launch(kernel, &steps, from.address(), (bits(alpha), bits(beta)), stream) }
    }

    /// # Safety
    /// The matrix has every row, and there are as many packed ones.
    unsafe fn launch(
        &self,
        kernel: &Kernel<Arguments>,
        steps: &Steps,
        packed: u64,
        (alpha, beta): (u64, u64),
        stream: &Stream,
    ) -> Result<()> {
        let arguments = Arguments {
            matrix: steps.address,
            rows: self.rows.address(),
            packed,
            count: (self.len() * steps.columns) as u64,
            columns: steps.columns as u64,
            row_step: steps.row as u64,
            column_step: steps.column as u64,
            alpha,
            beta,
        };
        Uses::on(stream).read(&self.rows)?;
        let grid = (arguments.count.div_ceil(u64::from(BLOCK)).min(self.most), 1);
        // SAFETY: the caller's promise; the list waits for the stream when freed.
        unsafe { kernel.launch(stream, grid, BLOCK, &arguments) }
    }

    fn check(&self, rows: usize, a: &DeviceBuffer<T>, b: &DeviceBuffer<T>) -> Result<()> {
        if rows < self.bound {
            return Err(Error::Shape {
                op: "rows of a list",
                expected: format!("a matrix of at least {} rows", self.bound),
                found: format!("{rows}"),
            });
        }
        for (name, buffer) in [("matrix", a), ("packed rows", b)] {
            if buffer.device() != self.rows.device() {
                return Err(Error::Argument {
                    name,
                    found: "memory on another device".into(),
                    expected: format!("memory on {}", self.rows.device().profile().name),
                });
            }
        }
        Ok(())
    }

    fn check_room(&self, first: usize, len: usize, packed: &DeviceBuffer<T>) -> Result<()> {
        let expected = first.saturating_add(len);
        match expected <= packed.len() {
            true => Ok(()),
            false => validate::length("packed rows", expected, packed.len()),
        }
    }
}
