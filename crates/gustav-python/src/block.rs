//! Arrays of the library as arrays of NumPy, without a copy.

use gustav::{Buffer, DType, Index, Scalar};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::element;

/// A vector in memory of the library, described by `__array_interface__`: `numpy.asarray` of it is an
/// array that holds it.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct Block {
    address: usize,
    len: usize,
    /// The name of the elements' type.
    #[pyo3(get)]
    dtype: &'static str,
    typestr: &'static str,
    readonly: bool,
    _owner: Box<dyn Send + Sync>,
}

impl Block {
    /// Values, which the array may write.
    pub fn values<T: Scalar>(values: Buffer<T>) -> Self {
        Block {
            address: values.as_ptr() as usize,
            len: values.len(),
            dtype: element::name(T::DTYPE),
            typestr: typestr(T::DTYPE),
            readonly: false,
            _owner: Box::new(values),
        }
    }

    /// Indices that nobody else has.
    pub fn owned_indices<I: Index>(indices: Buffer<I>) -> Self {
        let (at, len) = (indices.as_ptr(), indices.len());
        // SAFETY: the memory of a buffer does not move with it.
        let view = unsafe { std::slice::from_raw_parts(at, len) };
        // SAFETY: the array is the only owner.
        unsafe { Block::indices(view, false, indices) }
    }

    /// Indices that `owner` holds, as the signed integers of their width that other libraries use.
    ///
    /// # Safety
    /// `owner` keeps them where they are, and nobody writes them unless it is the array's only owner.
    pub unsafe fn indices<I>(
        indices: &[I],
        readonly: bool,
        owner: impl Send + Sync + 'static,
    ) -> Self {
        let (address, len) = (indices.as_ptr() as usize, indices.len());
        let dtype = if size_of::<I>() == 4 { DType::I32 } else { DType::I64 };
        let (name, typestr) = (element::name(dtype), typestr(dtype));
        Block { address, len, dtype: name, typestr, readonly, _owner: Box::new(owner) }
    }
}

#[pymethods]
impl Block {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.len,))?;
        interface.set_item("typestr", self.typestr)?;
        interface.set_item("data", (self.address, self.readonly))?;
        Ok(interface)
    }

    fn __len__(&self) -> usize {
        self.len
    }
}

/// How `__array_interface__` names a type; bfloat16, which it has no name for, as two bytes.
pub fn typestr(dtype: DType) -> &'static str {
    let little = cfg!(target_endian = "little");
    match dtype {
        DType::F16 if little => "<f2",
        DType::F32 if little => "<f4",
        DType::F64 if little => "<f8",
        DType::I32 if little => "<i4",
        DType::I64 if little => "<i8",
        DType::F16 => ">f2",
        DType::F32 => ">f4",
        DType::F64 => ">f8",
        DType::I32 => ">i4",
        DType::I64 => ">i8",
        DType::Bf16 => "|V2",
    }
}
