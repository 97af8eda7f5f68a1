//! Tensors in the memory of a GPU.

use gustav_core::{DType, Error, Layout, Result, Scalar};

use super::{DLDevice, DLTensor, Tensor, TensorMut, memory};
use crate::cuda::{CudaDevice, DeviceBuffer, DeviceDense};

/// A tensor in the memory of a GPU, to be read or written by work on a stream.
#[derive(Clone, Copy, Debug)]
pub struct GpuTensor<'a>(Tensor<'a>);

impl<'a> GpuTensor<'a> {
    /// Checks what `tensor` says: values in the memory of `cuda:ordinal`, or in memory that moves between it and the
    /// host, aligned, in one or two dimensions. `name` stands in errors.
    ///
    /// # Safety
    /// `shape`, and `strides` where it is not null, hold `ndim` numbers. Every element is where the struct says until
    /// the buffers that are made of the tensor are dropped and the work that was queued on them is done; work of others
    /// on it is ordered before or after.
    ///
    /// # Errors
    /// [`Error::Argument`] for what is wrong, and for a tensor that is elsewhere.
    pub unsafe fn new(name: &'static str, tensor: &DLTensor, ordinal: u32) -> Result<Self> {
        let DLDevice { device_type, device_id } = tensor.device;
        let is_there = matches!(device_type, DLDevice::CUDA | DLDevice::CUDA_MANAGED)
            && u32::try_from(device_id) == Ok(ordinal);
        if !is_there {
            return Err(Error::Argument {
                name,
                found: memory(tensor.device),
                expected: format!("the memory of cuda:{ordinal}"),
            });
        }
        // SAFETY: promised by the caller.
        unsafe { Tensor::checked(name, tensor) }.map(GpuTensor)
    }

    /// The type of the elements as one of values.
    ///
    /// # Errors
    /// As [`Tensor::value`].
    pub fn value(&self) -> Result<DType> {
        self.0.value()
    }

    /// The layout of the matrix; see [`Tensor::layout`].
    ///
    /// # Errors
    /// As there.
    pub fn layout(&self) -> Result<Layout> {
        self.0.layout()
    }

    /// Refuses an operand whose elements are among those of this tensor, which is written.
    ///
    /// # Errors
    /// As [`TensorMut::refuse_overlap`].
    pub fn refuse_overlap(&self, operand: &Self) -> Result<()> {
        TensorMut(self.0).refuse_overlap(&operand.0)
    }

    /// The elements of a packed vector.
    ///
    /// # Errors
    /// As [`Tensor::slice`].
    pub fn vector<T: Scalar>(&self, device: &CudaDevice) -> Result<DeviceBuffer<T>> {
        self.0.is_of::<T>()?;
        let len = self.0.packed_vector()?;
        Ok(self.span(device, len))
    }

    /// The matrix, or a vector as one column.
    ///
    /// # Errors
    /// As [`Tensor::dense`].
    pub fn dense<T: Scalar>(&self, device: &CudaDevice) -> Result<DeviceDense<T>> {
        self.0.is_of::<T>()?;
        let ([rows, columns], (layout, leading)) = (self.0.shape, self.0.leading()?);
        let (lines, length) = match layout {
            Layout::RowMajor => (rows, columns),
            Layout::ColumnMajor => (columns, rows),
        };
        // What lies behind the last line is not the tensor's.
        let len = if rows == 0 || columns == 0 { 0 } else { (lines - 1) * leading + length };
        DeviceDense::new(rows, columns, layout, leading.max(length), self.span(device, len))
    }

    /// `len` neighbours from the first element on, which are the tensor's.
    fn span<T: Scalar>(&self, device: &CudaDevice, len: usize) -> DeviceBuffer<T> {
        let address = if len == 0 { 0 } else { self.0.data as u64 };
        // SAFETY: promised to `new`, which found the elements aligned.
        unsafe { DeviceBuffer::borrowed(device, address, len) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::DLDataType;
    use super::*;

    #[test]
    fn tensors_that_are_elsewhere_are_refused() {
        let mut shape = [2, 3];
        let mut at = |device_type, device_id| DLTensor {
            data: std::ptr::without_provenance_mut(256),
            device: DLDevice { device_type, device_id },
            ndim: 2,
            dtype: DLDataType::of_value(DType::F32),
            shape: shape.as_mut_ptr(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        let (here, managed) = (at(DLDevice::CUDA, 1), at(DLDevice::CUDA_MANAGED, 1));
        let elsewhere = [
            (at(DLDevice::CUDA, 0), "the memory of cuda:0"),
            (at(DLDevice::CPU, 0), "host memory"),
            (at(DLDevice::CUDA, -1), "cuda:-1"),
            (at(10, 1), "DLPack's kind 10"),
        ];
        for tensor in [here, managed] {
            // SAFETY: the shape is two numbers, and no element is read.
            let found = unsafe { GpuTensor::new("b", &tensor, 1) }.expect("a tensor");
            assert_eq!(found.value().expect("a type"), DType::F32);
            assert_eq!(found.layout().expect("a layout"), Layout::RowMajor);
            assert!(found.refuse_overlap(&found).is_err());
        }
        for (tensor, words) in elsewhere {
            // SAFETY: as above.
            let found = unsafe { GpuTensor::new("b", &tensor, 1) }.expect_err(words).to_string();
            assert!(found.contains(words) && found.contains("cuda:1"), "{found}");
        }
    }
}
