//! Conversion of a dense matrix to CSR on the device: the three parallel steps of Chen et al.
//! (2025, §3.3), on the GPU as their outlook (§8) proposes. See `kernels/dense/compress.cu`.

use std::ops::Range;

use gustav_core::{DType, Error, Index, IndexType, Layout, Result, Scalar};

use super::{DeviceCsr, DeviceDense};
use crate::device::{Device, DeviceBuffer, Stream, graph};
use crate::jit::Request;
use crate::launch::Kernel;

const THREADS: u32 = 256;
const WARPS: u64 = 8;
// Resident CTAs of 256 threads per multiprocessor.
const CTAS: u64 = 8;

/// Which elements of a dense matrix become entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entries {
    /// All but minus zero, with which algorithms with a dense C mark "no entry": entries of value
    /// zero are stored.
    #[default]
    Pattern,
    /// All but zeros.
    Nonzeros,
}

/// The three kernels for one type.
pub(crate) struct Compress {
    device: Device,
    count: Kernel<Arguments>,
    sum: Kernel<Arguments>,
    fill: Kernel<Arguments>,
    total: DeviceBuffer<u64>,
}

/// Rows of a packed dense matrix, and their numbers in the CSR matrix.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// The rows, which start at `dense`.
    pub rows: Range<usize>,
    pub columns: usize,
    pub dense: u64,
    pub ld: usize,
}

parameter_block! {
    struct Arguments {
        dense: *const Value,
        ld: u64,
        rows: u64,
        columns: u64,
        /// First row of the panel, an index of `offsets`.
        row: u64,
        /// Row offsets of the whole matrix.
        offsets: *mut u32,
        indices: *mut u32,
        values: *mut Value,
        total: *mut u64,
    }
}

/// The source with its parameters.
pub(crate) fn request(dtype: DType, entries: Entries) -> Request {
    request!("dense/compress.cu")
        .with_block::<Arguments>()
        .with("VALUE", dtype)
        .with("THREADS", THREADS)
        .with("PATTERN", u32::from(entries == Entries::Pattern))
}

impl Compress {
    pub(crate) fn new(device: &Device, dtype: DType, entries: Entries) -> Result<Self> {
        let module = device.module(&request(dtype, entries))?;
        Ok(Compress {
            device: device.clone(),
            count: module.kernel(c"count")?,
            sum: module.kernel(c"sum")?,
            fill: module.kernel(c"fill")?,
            total: DeviceBuffer::uninit(device, 1, "the number of entries on the device")?,
        })
    }

    fn arguments(&self, panel: &Panel, csr: [u64; 3]) -> Arguments {
        Arguments {
            dense: panel.dense,
            ld: panel.ld as u64,
            rows: panel.rows.len() as u64,
            columns: panel.columns as u64,
            row: panel.rows.start as u64,
            offsets: csr[0],
            indices: csr[1],
            values: csr[2],
            total: self.total.address(),
        }
    }

    fn grid(&self, rows: usize) -> (u64, u64) {
        let most = self.device.profile().multiprocessors as u64 * CTAS;
        ((rows as u64).div_ceil(WARPS).min(most.max(1)), 1)
    }

    /// Queues the count of the entries of the panel's rows, written to `offsets` (u32, of the whole
    /// matrix).
    ///
    /// # Safety
    /// The addresses are valid until the work is done.
    pub(crate) unsafe fn count(&self, stream: &Stream, panel: &Panel, offsets: u64) -> Result<()> {
        let arguments = self.arguments(panel, [offsets, 0, 0]);
        let grid = self.grid(panel.rows.len());
        // SAFETY: the addresses are the caller's promise.
        unsafe { self.count.launch(stream, grid, THREADS, &arguments) }
    }

    /// Computes the offsets of `rows` rows from their counts, and returns the sum.
    ///
    /// # Safety
    /// `offsets` holds `rows + 1` numbers until the work is done.
    ///
    /// # Errors
    /// [`Error::Overflow`] when the sum passes u32, [`Error::Device`].
    pub(crate) unsafe fn sum(&self, stream: &Stream, rows: usize, offsets: u64) -> Result<usize> {
        let whole = Panel { rows: 0..rows, columns: 0, dense: 0, ld: 0 };
        let arguments = self.arguments(&whole, [offsets, 0, 0]);
        self.total.used_on(stream);
        // SAFETY: the offsets are the caller's promise.
        unsafe { self.sum.launch(stream, (1, 1), THREADS, &arguments)? };
        let mut total = [0];
        self.total.read(&mut total)?;
        match u32::try_from(total[0]) {
            Ok(total) => Ok(total as usize),
            Err(_) => Err(Error::Overflow {
                what: "entries of C",
                need: u128::from(total[0]),
                index_type: IndexType::U32,
            }),
        }
    }

    /// Queues the write of the panel's entries to `csr` (addresses of offsets, indices, values).
    ///
    /// # Safety
    /// The addresses are valid until the work is done, and the offsets are those that
    /// [`Compress::sum`] computed for the same panel.
    pub(crate) unsafe fn fill(&self, stream: &Stream, panel: &Panel, csr: [u64; 3]) -> Result<()> {
        let arguments = self.arguments(panel, csr);
        let grid = self.grid(panel.rows.len());
        // SAFETY: the addresses are the caller's promise.
        unsafe { self.fill.launch(stream, grid, THREADS, &arguments) }
    }
}

impl<T: Scalar> DeviceDense<T> {
    /// Converts the matrix to CSR on the device, after the work queued on `stream`; later work on
    /// `stream` waits for it. Rows are sorted.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for other types than f32 and f64 and for column-major matrices,
    /// [`Error::Overflow`] when entries pass u32, [`Error::OutOfMemory`], [`Error::Device`].
    pub fn to_csr(&self, entries: Entries, stream: &Stream) -> Result<DeviceCsr<T>> {
        if self.layout() != Layout::RowMajor || !matches!(T::DTYPE, DType::F32 | DType::F64) {
            return Err(Error::Unsupported {
                problem: format!("a {} {} matrix to CSR", self.layout(), T::DTYPE),
                backend: "CUDA".into(),
                reason: "it compresses row-major f32 and f64".into(),
                nearest: "Csr::from_dense on the host".into(),
            });
        }
        let device = self.data().device().clone();
        graph::refuse("a matrix in CSR form of a dense one")?;
        device.stream().follow(stream)?;
        self.data().join()?;
        let compress = Compress::new(&device, T::DTYPE, entries)?;
        let panel = Panel {
            rows: 0..self.nrows(),
            columns: self.ncols(),
            dense: self.data().address(),
            ld: self.leading_dimension(),
        };
        // SAFETY: the matrix holds the panel, and every use is on the device's own stream.
        let c = unsafe { compress.csr(self.nrows(), self.ncols(), [panel], |_| Ok(()))? };
        stream.follow(device.stream())?;
        Ok(c)
    }
}

impl Compress {
    /// The CSR matrix of consecutive panels, computed on the device's own stream. `make` queues the
    /// computation of a panel: once if there is only one panel, else twice for each, because the
    /// panels share their memory.
    ///
    /// # Safety
    /// The memory of the panels is valid until the work is done.
    pub(crate) unsafe fn csr<T: Scalar, I: Index, O: Index>(
        &self,
        nrows: usize,
        ncols: usize,
        panels: impl IntoIterator<Item = Panel, IntoIter: Clone + ExactSizeIterator>,
        mut make: impl FnMut(&Panel) -> Result<()>,
    ) -> Result<DeviceCsr<T, I, O>> {
        let (device, stream, panels) = (&self.device, self.device.stream(), panels.into_iter());
        let what = "row offsets of C on the device";
        let offsets = DeviceBuffer::<O>::queued(device, nrows.saturating_add(1), what)?;
        for panel in panels.clone() {
            make(&panel)?;
            // SAFETY: the offsets are as many; the panel is the caller's promise.
            unsafe { self.count(stream, &panel, offsets.address())? };
        }
        // SAFETY: as above.
        let nnz = unsafe { self.sum(stream, nrows, offsets.address())? };
        let indices = DeviceBuffer::<I>::queued(device, nnz, "column indices of C on the device")?;
        let values = DeviceBuffer::<T>::queued(device, nnz, "values of C on the device")?;
        let csr = [offsets.address(), indices.address(), values.address()];
        let again = panels.len() > 1;
        for panel in panels {
            if again {
                make(&panel)?;
            }
            // SAFETY: the arrays have the size that was counted.
            unsafe { self.fill(stream, &panel, csr)? };
        }
        // SAFETY: offsets increase to `nnz`, and columns increase below `ncols` in every row.
        unsafe { Ok(DeviceCsr::from_parts_unchecked(nrows, ncols, offsets, indices, values)) }
    }
}
