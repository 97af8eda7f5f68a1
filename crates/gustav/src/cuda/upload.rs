//! From host memory to a device.

use gustav_core::{Csr, CsrView, Dense, DenseView, Index, Pattern, Result, Scalar};

use super::{DeviceCsr, DeviceDense, DevicePattern};

/// A matrix or pattern in host memory that can be copied to a GPU by
/// [`Device::upload`](crate::Device::upload).
pub trait Upload {
    /// What it is there.
    type Resident;

    /// A copy on `device`.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`], [`gustav_core::Error::Device`].
    fn upload(self, device: &gustav_cuda::Device) -> Result<Self::Resident>;
}

impl<T: Scalar, I: Index, O: Index> Upload for CsrView<'_, T, I, O> {
    type Resident = DeviceCsr<T, I, O>;

    fn upload(self, device: &gustav_cuda::Device) -> Result<Self::Resident> {
        DeviceCsr::upload(device, &self)
    }
}

impl<T: Scalar, I: Index, O: Index> Upload for &Csr<T, I, O> {
    type Resident = DeviceCsr<T, I, O>;

    fn upload(self, device: &gustav_cuda::Device) -> Result<Self::Resident> {
        self.view().upload(device)
    }
}

impl<T: Scalar> Upload for DenseView<'_, T> {
    type Resident = DeviceDense<T>;

    fn upload(self, device: &gustav_cuda::Device) -> Result<Self::Resident> {
        DeviceDense::upload(device, &self)
    }
}

impl<T: Scalar> Upload for &Dense<T> {
    type Resident = DeviceDense<T>;

    fn upload(self, device: &gustav_cuda::Device) -> Result<Self::Resident> {
        self.view().upload(device)
    }
}

impl<I: Index, O: Index> Upload for &Pattern<I, O> {
    type Resident = DevicePattern<I, O>;

    fn upload(self, device: &gustav_cuda::Device) -> Result<Self::Resident> {
        DevicePattern::upload(device, self)
    }
}
