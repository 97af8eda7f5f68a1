//! Sparse matrices on a device: a pattern and values.

use gustav_core::{Csr, CsrView, Error, Index, Result, Scalar, validate};

use super::{DevicePattern, DeviceValues};
use crate::device::{Device, DeviceBuffer, DeviceSliceMut};

/// A sparse matrix in CSR form on a device: a [`DevicePattern`] and as many values as it has
/// nonzeros.
#[derive(Debug)]
pub struct DeviceCsr<T, I: Index = u32, O: Index = u32> {
    pattern: DevicePattern<I, O>,
    values: DeviceBuffer<T>,
}

impl<T: Scalar, I: Index, O: Index> DeviceCsr<T, I, O> {
    /// A copy of `a` on `device`, whose pattern has the identity of that of `a`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub fn upload(device: &Device, a: &CsrView<'_, T, I, O>) -> Result<Self> {
        let pattern = DevicePattern::upload(device, a)?;
        let values = a.values().as_slice();
        let values = DeviceBuffer::from_slice(device, values, "values on the device")?;
        Ok(DeviceCsr { pattern, values })
    }

    /// A matrix over three arrays on one device, owned or borrowed, checked there.
    ///
    /// # Errors
    /// As [`DevicePattern::new`], and [`Error::Length`] for the values.
    pub fn from_parts(
        nrows: usize,
        ncols: usize,
        offsets: DeviceBuffer<O>,
        indices: DeviceBuffer<I>,
        values: DeviceBuffer<T>,
    ) -> Result<Self> {
        validate::length("values", indices.len(), values.len())?;
        Self::from_pattern(&DevicePattern::new(nrows, ncols, offsets, indices)?, values)
    }

    /// A matrix of `pattern` with `values` in the order of its nonzeros; shares the pattern.
    ///
    /// # Errors
    /// [`Error::Length`] when there are not `nnz` values, [`Error::Argument`] for values on another
    /// device.
    pub fn from_pattern(pattern: &DevicePattern<I, O>, values: DeviceBuffer<T>) -> Result<Self> {
        validate::length("values", pattern.nnz(), values.len())?;
        if values.device() != pattern.device() {
            return Err(Error::Argument {
                name: "values",
                found: "values on another device".into(),
                expected: format!("values on {}", pattern.device().profile().name),
            });
        }
        Ok(DeviceCsr { pattern: pattern.clone(), values })
    }

    /// A matrix over three arrays on one device, not checked.
    ///
    /// # Safety
    /// As [`DevicePattern::new_unchecked`], and there are as many values as column indices.
    pub unsafe fn from_parts_unchecked(
        nrows: usize,
        ncols: usize,
        offsets: DeviceBuffer<O>,
        indices: DeviceBuffer<I>,
        values: DeviceBuffer<T>,
    ) -> Self {
        debug_assert_eq!(indices.len(), values.len());
        // SAFETY: promised by the caller.
        let pattern = unsafe { DevicePattern::new_unchecked(nrows, ncols, offsets, indices) };
        DeviceCsr { pattern, values }
    }

    /// The pattern.
    pub fn pattern(&self) -> &DevicePattern<I, O> {
        &self.pattern
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.pattern.nrows()
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.pattern.ncols()
    }

    /// Number of stored entries.
    pub fn nnz(&self) -> usize {
        self.pattern.nnz()
    }

    /// The device it is on.
    pub fn device(&self) -> &Device {
        self.pattern.device()
    }

    /// As [`DevicePattern::forget_order`].
    pub(crate) fn forget_order(&mut self) -> bool {
        self.pattern.forget_order()
    }

    /// Row offsets.
    pub fn offsets(&self) -> &DeviceBuffer<O> {
        self.pattern.offsets()
    }

    /// Column indices.
    pub fn indices(&self) -> &DeviceBuffer<I> {
        self.pattern.indices()
    }

    /// Values, with the identity of the pattern.
    pub fn values(&self) -> DeviceValues<'_, T> {
        DeviceValues::of(self.pattern.id(), &self.values)
    }

    /// Values, mutable; the pattern is unchanged.
    pub fn values_mut(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::new(&mut self.values)
    }

    /// Pattern and values, owned.
    pub fn into_parts(self) -> (DevicePattern<I, O>, DeviceBuffer<T>) {
        (self.pattern, self.values)
    }

    /// Bytes of the arrays.
    pub fn bytes(&self) -> usize {
        self.pattern.bytes() + self.values.bytes()
    }

    /// Orders the own stream of `device`, a handle of the same GPU, after earlier writes of the
    /// matrix.
    pub(crate) fn join(&self, device: &Device) -> Result<()> {
        self.pattern.join(device)?;
        self.values.join_on(device.stream())
    }

    /// A copy on the host.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`], and those of [`Csr::new`].
    pub fn download(&self) -> Result<Csr<T, I, O>> {
        Csr::from_pattern(&self.pattern.download()?, self.values.to_host()?)
    }
}

impl<'a, T: Scalar, I: Index, O: Index> From<&'a DeviceCsr<T, I, O>> for &'a DevicePattern<I, O> {
    fn from(a: &'a DeviceCsr<T, I, O>) -> Self {
        a.pattern()
    }
}
