//! Dense matrices on a device, over owned memory or memory of another library.

use gustav_core::{Dense, DenseView, Error, Layout, Result, Scalar};

use crate::device::{Device, DeviceBuffer, DeviceSliceMut};

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
    /// A copy of `m` on `device`, including the values between its lines; packed if these are not
    /// borrowed.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub fn upload(device: &Device, m: &DenseView<'_, T>) -> Result<Self> {
        let Some(values) = m.as_slice() else {
            return Self::upload(device, &m.to_layout(m.layout())?.view());
        };
        let data = DeviceBuffer::from_slice(device, values, "a dense matrix on the device")?;
        Self::new(m.nrows(), m.ncols(), m.layout(), m.leading_dimension(), data)
    }

    /// A packed matrix of zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub fn zeros(device: &Device, nrows: usize, ncols: usize, layout: Layout) -> Result<Self> {
        Self::packed(nrows, ncols, layout, |len| {
            DeviceBuffer::zeros(device, len, "a dense matrix on the device")
        })
    }

    /// An uninitialised packed matrix.
    ///
    /// # Errors
    /// As [`DeviceDense::zeros`].
    pub(crate) fn queued(
        device: &Device,
        nrows: usize,
        ncols: usize,
        layout: Layout,
    ) -> Result<Self> {
        Self::packed(nrows, ncols, layout, |len| {
            DeviceBuffer::queued(device, len, "a dense matrix on the device")
        })
    }

    fn packed(
        nrows: usize,
        ncols: usize,
        layout: Layout,
        data: impl FnOnce(usize) -> Result<DeviceBuffer<T>>,
    ) -> Result<Self> {
        let ld = lines(nrows, ncols, layout).1;
        Self::new(nrows, ncols, layout, ld, data(nrows.saturating_mul(ncols))?)
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
        let len = lines(nrows, ncols, layout).1;
        if ld < len {
            return Err(Error::Shape {
                op: "dense matrix",
                expected: format!("a leading dimension of at least {len}"),
                found: format!("{ld}"),
            });
        }
        let made = DeviceDense { nrows, ncols, layout, ld, data };
        made.check_length()?;
        Ok(made)
    }

    /// Checks that there are as many values as shape and leading dimension require.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub(crate) fn check_length(&self) -> Result<()> {
        let (lines, len) = lines(self.nrows, self.ncols, self.layout);
        let span = match lines == 0 || len == 0 {
            true => 0,
            false => (lines - 1) as u128 * self.ld as u128 + len as u128,
        };
        if span <= self.data.len() as u128 {
            return Ok(());
        }
        Err(Error::Length {
            what: "dense matrix values",
            expected: usize::try_from(span).unwrap_or(usize::MAX),
            found: self.data.len(),
        })
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.nrows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.ncols
    }

    /// The layout.
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

    /// The values, padding included, mutable in place.
    pub fn data_mut(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::new(&mut self.data)
    }

    /// The values, padding included, owned.
    pub fn into_data(self) -> DeviceBuffer<T> {
        self.data
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
