//! Matrices on a device, owned or over memory that another library holds.

pub(crate) mod columns;
pub(crate) mod compress;
pub(crate) mod converted;
pub(crate) mod layout;
pub(crate) mod transposed;

pub use compress::Entries;

use gustav_core::{
    Csr, CsrView, Dense, DenseView, Epilogue, Error, Index, Layout, Operation, Problem, Result,
    Scalar, SemiringKind,
};

use crate::{Device, DeviceBuffer};

/// A sparse matrix in CSR form on a device.
#[derive(Debug)]
pub struct DeviceCsr<T, I = u32, O = u32> {
    nrows: usize,
    ncols: usize,
    offsets: DeviceBuffer<O>,
    indices: DeviceBuffer<I>,
    values: DeviceBuffer<T>,
}

impl<T: Scalar, I: Index, O: Index> DeviceCsr<T, I, O> {
    /// A copy of `a` on `device`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub fn upload(device: &Device, a: &CsrView<'_, T, I, O>) -> Result<Self> {
        Ok(DeviceCsr {
            nrows: a.nrows(),
            ncols: a.ncols(),
            offsets: DeviceBuffer::from_slice(device, a.offsets(), "row offsets on the device")?,
            indices: DeviceBuffer::from_slice(device, a.indices(), "column indices on the device")?,
            values: DeviceBuffer::from_slice(
                device,
                a.values().as_slice(),
                "values on the device",
            )?,
        })
    }

    /// A matrix over three arrays on one device.
    ///
    /// # Safety
    /// The arrays satisfy the invariants listed at [`Csr`]; kernels read through them unchecked.
    ///
    /// # Errors
    /// [`Error::Length`] when the lengths do not fit together.
    pub unsafe fn from_parts(
        nrows: usize,
        ncols: usize,
        offsets: DeviceBuffer<O>,
        indices: DeviceBuffer<I>,
        values: DeviceBuffer<T>,
    ) -> Result<Self> {
        let check = |what, expected, found| {
            if expected == found { Ok(()) } else { Err(Error::Length { what, expected, found }) }
        };
        check("row offsets", nrows.saturating_add(1), offsets.len())?;
        check("values", indices.len(), values.len())?;
        Ok(DeviceCsr { nrows, ncols, offsets, indices, values })
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.nrows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.ncols
    }

    /// Number of stored entries.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// The device it is on.
    pub fn device(&self) -> &Device {
        self.offsets.device()
    }

    /// Row offsets.
    pub fn offsets(&self) -> &DeviceBuffer<O> {
        &self.offsets
    }

    /// Column indices.
    pub fn indices(&self) -> &DeviceBuffer<I> {
        &self.indices
    }

    /// Values.
    pub fn values(&self) -> &DeviceBuffer<T> {
        &self.values
    }

    /// Values, to change them under an unchanged pattern.
    pub fn values_mut(&mut self) -> &mut DeviceBuffer<T> {
        &mut self.values
    }

    /// Whether all arrays are freed with the matrix.
    pub(crate) fn is_owned(&self) -> bool {
        self.offsets.is_owned() && self.indices.is_owned() && self.values.is_owned()
    }

    /// Lets the own stream of `device`, a handle of the same GPU, wait for work that was queued on the
    /// matrix on other streams.
    pub(crate) fn join(&self, device: &Device) -> Result<()> {
        self.join_pattern(device)?;
        self.values.join_on(device.stream())
    }

    /// The same for offsets and columns.
    pub(crate) fn join_pattern(&self, device: &Device) -> Result<()> {
        self.offsets.join_on(device.stream())?;
        self.indices.join_on(device.stream())
    }

    /// A copy on the host.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`], and what [`Csr::new`] finds wrong.
    pub fn download(&self) -> Result<Csr<T, I, O>> {
        let (offsets, indices) = (self.offsets.to_host()?, self.indices.to_host()?);
        Csr::new(self.nrows, self.ncols, offsets, indices, self.values.to_host()?)
    }

    /// The product of this matrix with a dense one, see [`Problem::spmm`].
    pub fn spmm(&self) -> Problem {
        self.problem(Operation::Spmm)
    }

    /// The product of this matrix with a vector, see [`Problem::spmv`].
    pub fn spmv(&self) -> Problem {
        self.problem(Operation::Spmv)
    }

    /// The product of this matrix with another sparse one, see [`Problem::spgemm`].
    pub fn spgemm(&self, b: &Self) -> Problem {
        let (columns, nnz_b) = (b.ncols, Some(b.nnz()));
        Problem { columns, nnz_b, ..self.problem(Operation::Spgemm) }
    }

    fn problem(&self, operation: Operation) -> Problem {
        Problem {
            operation,
            rows: self.nrows,
            cols: self.ncols,
            nnz: self.nnz(),
            columns: 1,
            nnz_b: None,
            dtype: T::DTYPE,
            output: T::DTYPE,
            index_type: I::TYPE,
            offset_type: O::TYPE,
            transpose_a: false,
            layout_b: Layout::RowMajor,
            layout_c: Layout::RowMajor,
            semiring: SemiringKind::PlusTimes,
            deterministic: false,
            finite: false,
            tf32: false,
            sorted: true,
            epilogue: Epilogue::default(),
            calls: 1,
        }
    }
}

/// A dense matrix on a device. Element (i, j) is at `i * ld + j` (row-major) or `j * ld + i`
/// (column-major).
#[derive(Debug)]
pub struct DeviceDense<T> {
    nrows: usize,
    ncols: usize,
    layout: Layout,
    ld: usize,
    data: DeviceBuffer<T>,
}

impl<T: Scalar> DeviceDense<T> {
    /// A copy of `m` on `device`, padding included.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub fn upload(device: &Device, m: &DenseView<'_, T>) -> Result<Self> {
        let data = DeviceBuffer::from_slice(device, m.data(), "a dense matrix on the device")?;
        Self::new(m.nrows(), m.ncols(), m.layout(), m.leading_dimension(), data)
    }

    /// A packed matrix whose values have not been written.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub fn uninit(device: &Device, nrows: usize, ncols: usize, layout: Layout) -> Result<Self> {
        let ld = lines(nrows, ncols, layout).1;
        let len = nrows.saturating_mul(ncols);
        let data = DeviceBuffer::uninit(device, len, "a dense matrix on the device")?;
        Self::new(nrows, ncols, layout, ld, data)
    }

    /// A matrix over values on a device, owned or borrowed.
    ///
    /// # Errors
    /// [`Error::Shape`] when `ld` is too small, [`Error::Length`] when values are missing.
    pub fn new(
        nrows: usize,
        ncols: usize,
        layout: Layout,
        ld: usize,
        data: DeviceBuffer<T>,
    ) -> Result<Self> {
        let (lines, len) = lines(nrows, ncols, layout);
        if ld < len {
            return Err(Error::Shape {
                op: "dense matrix",
                expected: format!("a leading dimension of at least {len}"),
                found: format!("{ld}"),
            });
        }
        let span =
            if lines == 0 || len == 0 { 0 } else { (lines - 1) as u128 * ld as u128 + len as u128 };
        if span > data.len() as u128 {
            return Err(Error::Length {
                what: "dense matrix values",
                expected: usize::try_from(span).unwrap_or(usize::MAX),
                found: data.len(),
            });
        }
        Ok(DeviceDense { nrows, ncols, layout, ld, data })
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.nrows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.ncols
    }

    /// Which index runs fastest.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Distance between neighbouring rows (row-major) or columns (column-major).
    pub fn leading_dimension(&self) -> usize {
        self.ld
    }

    /// The values, padding included.
    pub fn data(&self) -> &DeviceBuffer<T> {
        &self.data
    }

    /// The values, padding included.
    pub fn data_mut(&mut self) -> &mut DeviceBuffer<T> {
        &mut self.data
    }

    /// A copy on the host, padding included.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub fn download(&self) -> Result<Dense<T>> {
        let values = self.data.to_host()?;
        Dense::with_leading_dimension(self.nrows, self.ncols, self.layout, self.ld, values)
    }
}

/// Number of lines (rows of row-major, columns of column-major) and their length.
fn lines(nrows: usize, ncols: usize, layout: Layout) -> (usize, usize) {
    match layout {
        Layout::RowMajor => (nrows, ncols),
        Layout::ColumnMajor => (ncols, nrows),
    }
}
