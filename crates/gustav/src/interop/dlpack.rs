//! Tensors of [DLPack](https://dmlc.github.io/dlpack/latest/): its structs, and their memory in place.
//!
//! The structs are those of DLPack 1, named as there. [`Tensor`] and [`TensorMut`] check what a struct says
//! of memory and read that memory as vectors and dense matrices; [`GpuTensor`] that of a GPU.

mod gpu;

pub use gpu::GpuTensor;

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;

use gustav_core::{DType, DenseView, DenseViewMut, Error, IndexType, Layout, Result, Scalar};

use super::strides;

/// Most dimensions of a tensor that is taken.
const MOST_DIMENSIONS: usize = 2;

/// Where a tensor is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDevice {
    /// The kind of device, `kDLCPU` and so on.
    pub device_type: i32,
    /// Its number among those of its kind.
    pub device_id: i32,
}

impl DLDevice {
    /// Host memory.
    pub const CPU: i32 = 1;
    /// Memory of an NVIDIA GPU.
    pub const CUDA: i32 = 2;
    /// Host memory that NVIDIA GPUs reach.
    pub const CUDA_HOST: i32 = 3;
    /// Host memory that AMD GPUs reach.
    pub const ROCM_HOST: i32 = 11;
    /// Memory that moves between NVIDIA GPUs and the host.
    pub const CUDA_MANAGED: i32 = 13;
}

/// The type of a tensor's elements.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDataType {
    /// The kind of number, `kDLFloat` and so on.
    pub code: u8,
    /// Bits of a number.
    pub bits: u8,
    /// Numbers of an element.
    pub lanes: u16,
}

impl DLDataType {
    /// `kDLInt`.
    pub const INT: u8 = 0;
    /// `kDLUInt`.
    pub const UINT: u8 = 1;
    /// `kDLFloat`.
    pub const FLOAT: u8 = 2;
    /// `kDLBfloat`.
    pub const BFLOAT: u8 = 4;

    /// The type of values that this is, if it is one.
    pub fn value(self) -> Option<DType> {
        match (self.code, self.bits, self.lanes) {
            (Self::FLOAT, 16, 1) => Some(DType::F16),
            (Self::BFLOAT, 16, 1) => Some(DType::Bf16),
            (Self::FLOAT, 32, 1) => Some(DType::F32),
            (Self::FLOAT, 64, 1) => Some(DType::F64),
            (Self::INT, 32, 1) => Some(DType::I32),
            (Self::INT, 64, 1) => Some(DType::I64),
            _ => None,
        }
    }

    /// The width of indices that this is, and whether they have a sign, if it is such a type.
    pub fn index(self) -> Option<(IndexType, bool)> {
        let signed = self.code == Self::INT;
        match (self.code, self.bits, self.lanes) {
            (Self::INT | Self::UINT, 32, 1) => Some((IndexType::U32, signed)),
            (Self::INT | Self::UINT, 64, 1) => Some((IndexType::U64, signed)),
            _ => None,
        }
    }

    /// The type of values as DLPack writes it.
    pub fn of_value(dtype: DType) -> Self {
        let code = match dtype {
            DType::F16 | DType::F32 | DType::F64 => Self::FLOAT,
            DType::Bf16 => Self::BFLOAT,
            DType::I32 | DType::I64 => Self::INT,
        };
        DLDataType { code, bits: 8 * dtype.bytes() as u8, lanes: 1 }
    }

    /// Indices without a sign as DLPack writes them.
    pub fn of_index(index: IndexType) -> Self {
        let bits = match index {
            IndexType::U32 => 32,
            IndexType::U64 => 64,
        };
        DLDataType { code: Self::UINT, bits, lanes: 1 }
    }
}

impl std::fmt::Display for DLDataType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.code {
            Self::INT => "int",
            Self::UINT => "uint",
            Self::FLOAT => "float",
            3 => "handle",
            Self::BFLOAT => "bfloat",
            5 => "complex",
            6 => "bool",
            other => return write!(f, "code {other} with {} bits", self.bits),
        };
        write!(f, "{kind}{}", self.bits)?;
        if self.lanes == 1 { Ok(()) } else { write!(f, " in {} lanes", self.lanes) }
    }
}

/// Memory with a shape, which the struct does not own.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// The memory.
    pub data: *mut c_void,
    /// Where it is.
    pub device: DLDevice,
    /// Number of dimensions.
    pub ndim: i32,
    /// The type of the elements.
    pub dtype: DLDataType,
    /// `ndim` lengths.
    pub shape: *mut i64,
    /// `ndim` distances in elements; null for a packed row-major tensor.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// A version of DLPack.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLPackVersion {
    /// Structs of another major version have another layout.
    pub major: u32,
    /// Grows with what is added.
    pub minor: u32,
}

/// A tensor with the function that frees it.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version that the struct follows.
    pub version: DLPackVersion,
    /// What the deleter needs.
    pub manager_ctx: *mut c_void,
    /// Frees the tensor and the struct.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// Bits that say more.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

impl DLManagedTensorVersioned {
    /// The bit of `flags` for memory that may not be written.
    pub const READ_ONLY: u64 = 1;
}

/// Where the elements of a tensor are, checked.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    name: &'static str,
    dtype: DLDataType,
    /// Bytes of an element.
    bytes: usize,
    data: *mut u8,
    dimensions: usize,
    shape: [usize; MOST_DIMENSIONS],
    /// In elements.
    strides: [isize; MOST_DIMENSIONS],
    /// Addresses from the first byte to behind the last.
    extent: (usize, usize),
    borrow: PhantomData<&'a [u8]>,
}

// SAFETY: a tensor is a shared borrow of its elements, as `&[T]` is.
unsafe impl Send for Tensor<'_> {}
// SAFETY: as above.
unsafe impl Sync for Tensor<'_> {}

impl<'a> Tensor<'a> {
    /// Checks what `tensor` says: values or indices in host memory, aligned, in one or two dimensions.
    /// `name` stands in errors.
    ///
    /// # Safety
    /// `shape`, and `strides` where it is not null, hold `ndim` numbers. For `'a`, every element can be read
    /// where the struct says, and nobody writes it.
    ///
    /// # Errors
    /// [`Error::Argument`]; [`Error::Unsupported`] for the memory of a device.
    pub unsafe fn new(name: &'static str, tensor: &DLTensor) -> Result<Self> {
        host(name, tensor.device)?;
        // SAFETY: promised by the caller.
        unsafe { Self::checked(name, tensor) }
    }

    /// The same, wherever the memory is.
    unsafe fn checked(name: &'static str, tensor: &DLTensor) -> Result<Self> {
        let wrong = |found: String, expected: &str| {
            Err(Error::Argument { name, found, expected: expected.into() })
        };
        let DLTensor { ndim, dtype, .. } = *tensor;
        if dtype.value().is_none() && dtype.index().is_none() {
            return wrong(dtype.to_string(), "float16, bfloat16, float32, float64, int32 or int64");
        }
        let bytes = usize::from(dtype.bits) / 8;
        let dimensions = usize::try_from(ndim).unwrap_or(0);
        if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
            return wrong(format!("{ndim} dimensions"), "one or two dimensions");
        }
        if tensor.shape.is_null() {
            return wrong("a shape of NULL".into(), "a shape");
        }
        // SAFETY: promised by the caller, of shape and strides.
        let number = |at: *const i64, k: usize| unsafe { at.add(k).read_unaligned() };
        let mut shape = [1; MOST_DIMENSIONS];
        for (k, length) in shape.iter_mut().enumerate().take(dimensions) {
            let found = number(tensor.shape, k);
            match usize::try_from(found) {
                Ok(found) => *length = found,
                Err(_) => return wrong(format!("a length of {found}"), "lengths of at least 0"),
            }
        }
        let size = shape.iter().try_fold(bytes, |size, length| size.checked_mul(*length));
        let Some(size) = size.filter(|size| *size <= isize::MAX as usize) else {
            return wrong(format!("{shape:?} elements"), "a shape that memory can hold");
        };
        let packed = [if dimensions == 1 { 1 } else { shape[1] as isize }, 1];
        let strides = match tensor.strides.is_null() {
            true => packed,
            false => std::array::from_fn(|k| match k < dimensions {
                true => number(tensor.strides, k) as isize,
                false => 1,
            }),
        };
        let address = usize::try_from(tensor.byte_offset)
            .ok()
            .and_then(|offset| (tensor.data as usize).checked_add(offset));
        let extent = match (size, address) {
            (0, _) => Some((0, 0)),
            (_, None) => None,
            (_, Some(address)) => extent(address, bytes, shape, strides),
        };
        let (Some(extent), Some(_)) = (extent, address) else {
            let found = format!("a byte offset of {} with these strides", tensor.byte_offset);
            return wrong(found, "elements within the memory");
        };
        let data = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize);
        if size > 0 && tensor.data.is_null() {
            return wrong("data of NULL".into(), "an address, as the tensor has elements");
        }
        if size > 0 && !(data as usize).is_multiple_of(bytes) {
            let found = format!("data that is not aligned for {dtype}");
            return wrong(found, "elements at multiples of their size");
        }
        // An empty tensor may have no address.
        let data = if size == 0 { std::ptr::without_provenance_mut(bytes) } else { data };
        let borrow = PhantomData;
        Ok(Tensor { name, dtype, bytes, data, dimensions, shape, strides, extent, borrow })
    }

    /// The name that stands in errors.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DLDataType {
        self.dtype
    }

    /// The type of the elements as one of values.
    ///
    /// # Errors
    /// [`Error::Argument`] for indices without a sign.
    pub fn value(&self) -> Result<DType> {
        self.dtype.value().ok_or_else(|| Error::Argument {
            name: self.name,
            found: self.dtype.to_string(),
            expected: "float16, bfloat16, float32, float64, int32 or int64".into(),
        })
    }

    /// The lengths.
    pub fn shape(&self) -> &[usize] {
        &self.shape[..self.dimensions]
    }

    /// Rows and columns; a vector is one column.
    pub fn matrix(&self) -> [usize; 2] {
        self.shape
    }

    /// The layout of the matrix, row-major where both would do.
    ///
    /// # Errors
    /// [`Error::Argument`] for strides that no leading dimension expresses.
    pub fn layout(&self) -> Result<Layout> {
        self.leading().map(|(layout, _)| layout)
    }

    fn leading(&self) -> Result<(Layout, usize)> {
        let copy = "a function such as `contiguous` of its library";
        strides::layout(self.name, self.shape, self.strides, Layout::RowMajor, copy)
    }

    /// The elements of a packed vector.
    ///
    /// # Errors
    /// [`Error::Argument`] for elements of another type, two dimensions or a stride.
    pub fn slice<T: Scalar>(&self) -> Result<&'a [T]> {
        self.is_of::<T>()?;
        let len = self.packed_vector()?;
        // SAFETY: so many elements of this type are there, aligned, which nobody writes.
        Ok(unsafe { std::slice::from_raw_parts(self.data.cast(), len) })
    }

    /// The elements of a packed vector of integers, as integers `I` of their width without a sign.
    ///
    /// # Errors
    /// [`Error::Argument`] for elements of another width, two dimensions or a stride.
    pub fn indices<I: gustav_core::Index>(&self) -> Result<&'a [I]> {
        if self.dtype.index().is_none_or(|(width, _)| width != I::TYPE) {
            return Err(Error::Argument {
                name: self.name,
                found: self.dtype.to_string(),
                expected: format!("integers of {} bits", 8 * size_of::<I>()),
            });
        }
        let len = self.packed_vector()?;
        // SAFETY: so many integers of this width are there, aligned, which nobody writes.
        Ok(unsafe { std::slice::from_raw_parts(self.data.cast(), len) })
    }

    /// The matrix, or a vector as one column.
    ///
    /// # Errors
    /// [`Error::Argument`] for elements of another type or strides that no leading dimension expresses.
    pub fn dense<T: Scalar>(&self) -> Result<DenseView<'a, T>> {
        self.is_of::<T>()?;
        let ([rows, columns], (layout, leading)) = (self.shape, self.leading()?);
        // SAFETY: the strides are those of this layout, elements are aligned, and nobody writes them.
        unsafe { DenseView::from_raw_parts(rows, columns, layout, leading, self.data.cast()) }
    }

    fn is_of<T: Scalar>(&self) -> Result<()> {
        if self.dtype.value() == Some(T::DTYPE) {
            return Ok(());
        }
        let expected = DLDataType::of_value(T::DTYPE).to_string();
        Err(Error::Argument { name: self.name, found: self.dtype.to_string(), expected })
    }

    fn packed_vector(&self) -> Result<usize> {
        let len = self.shape[0];
        let found = match (self.dimensions, self.strides[0]) {
            (1, stride) if stride == 1 || len <= 1 => return Ok(len),
            (1, stride) => format!("a stride of {stride}"),
            _ => "two dimensions".into(),
        };
        Err(Error::Argument { name: self.name, found, expected: "a packed vector".into() })
    }
}

/// A [`Tensor`] that is written.
#[derive(Debug)]
pub struct TensorMut<'a>(Tensor<'a>);

impl<'a> TensorMut<'a> {
    /// As [`Tensor::new`].
    ///
    /// # Safety
    /// As for [`Tensor::new`], and for `'a` elements may be written, and nobody else reads or writes them.
    ///
    /// # Errors
    /// As [`Tensor::new`].
    pub unsafe fn new(name: &'static str, tensor: &DLTensor) -> Result<Self> {
        // SAFETY: promised by the caller.
        unsafe { Tensor::new(name, tensor) }.map(TensorMut)
    }

    /// Where the elements are.
    pub fn tensor(&self) -> &Tensor<'a> {
        &self.0
    }

    /// Refuses an operand whose elements are among those that are written. Two blocks of one array are not,
    /// where their lines lie beside each other.
    ///
    /// # Errors
    /// [`Error::Argument`] naming both.
    pub fn refuse_overlap(&self, operand: &Tensor<'_>) -> Result<()> {
        let (start, end) = operand.extent;
        if self.0.is_beside(operand) {
            return Ok(());
        }
        self.refuse_range(operand.name, start..end)
    }

    /// Refuses addresses among which elements are written.
    ///
    /// # Errors
    /// [`Error::Argument`] naming both.
    pub fn refuse_range(&self, name: &str, range: Range<usize>) -> Result<()> {
        let (start, end) = self.0.extent;
        if start >= range.end || range.start >= end {
            return Ok(());
        }
        Err(Error::Argument {
            name: self.0.name,
            found: format!("memory that overlaps {name}"),
            expected: "memory of its own".into(),
        })
    }

    /// The elements of a packed vector.
    ///
    /// # Errors
    /// As [`Tensor::slice`].
    pub fn into_slice<T: Scalar>(self) -> Result<&'a mut [T]> {
        self.0.is_of::<T>()?;
        let len = self.0.packed_vector()?;
        // SAFETY: so many elements of this type are there, aligned, which nobody else has.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.0.data.cast(), len) })
    }

    /// The matrix, or a vector as one column.
    ///
    /// # Errors
    /// As [`Tensor::dense`].
    pub fn into_dense<T: Scalar>(self) -> Result<DenseViewMut<'a, T>> {
        self.0.is_of::<T>()?;
        let ([rows, columns], (layout, leading)) = (self.0.shape, self.0.leading()?);
        // SAFETY: the strides are those of this layout, in which no two elements are at one position; elements
        // are aligned, and nobody else has them.
        unsafe { DenseViewMut::from_raw_parts(rows, columns, layout, leading, self.0.data.cast()) }
    }
}

impl Tensor<'_> {
    /// Whether both are blocks of one array whose lines do not overlap.
    fn is_beside(&self, other: &Tensor<'_>) -> bool {
        let (Ok((layout, leading)), Ok(of_other)) = (self.leading(), other.leading()) else {
            return false;
        };
        let length = |t: &Tensor<'_>| match layout {
            Layout::RowMajor => t.shape[1],
            Layout::ColumnMajor => t.shape[0],
        };
        if (layout, leading) != of_other || self.bytes != other.bytes || leading == 0 {
            return false;
        }
        // Where a line of the other begins within a line of this.
        let line = (leading * self.bytes) as isize;
        let at = (other.data as usize).wrapping_sub(self.data as usize) as isize;
        let at = at.rem_euclid(line) as usize;
        at >= length(self) * self.bytes && at + length(other) * self.bytes <= line as usize
    }
}

/// Refuses the memory of a device.
fn host(name: &'static str, device: DLDevice) -> Result<()> {
    if is_host(device) {
        return Ok(());
    }
    Err(Error::Unsupported {
        problem: format!("{name} in {}", memory(device)),
        backend: "reading tensors in place".into(),
        reason: "host memory alone is read".into(),
        nearest: "a copy in host memory".into(),
    })
}

fn is_host(device: DLDevice) -> bool {
    matches!(device.device_type, DLDevice::CPU | DLDevice::CUDA_HOST | DLDevice::ROCM_HOST)
}

/// Where a tensor is, in words.
fn memory(device: DLDevice) -> String {
    match device.device_type {
        _ if is_host(device) => "host memory".into(),
        DLDevice::CUDA => format!("the memory of cuda:{}", device.device_id),
        kind => format!("the memory of device {} of DLPack's kind {kind}", device.device_id),
    }
}

/// Addresses from the first byte of a tensor that is not empty to behind the last, if there are such.
fn extent(
    address: usize,
    bytes: usize,
    shape: [usize; MOST_DIMENSIONS],
    strides: [isize; MOST_DIMENSIONS],
) -> Option<(usize, usize)> {
    let (mut low, mut high) = (address, address.checked_add(bytes)?);
    for (length, stride) in shape.into_iter().zip(strides) {
        let reach = isize::try_from(length - 1).ok()?.checked_mul(stride)?;
        let reach = reach.checked_mul(bytes as isize)?;
        match reach < 0 {
            true => low = low.checked_add_signed(reach)?,
            false => high = high.checked_add_signed(reach)?,
        }
    }
    Some((low, high))
}

#[cfg(test)]
mod tests;
