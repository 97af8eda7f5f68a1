//! New arrays on a GPU, for libraries that make none for others.

use std::ffi::c_void;
use std::sync::Arc;

use gustav::cuda::DeviceBuffer;
use gustav::with_scalar;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::array::Array;
use crate::block::typestr;
use crate::dlpack::{self, CUDA, Memory};
use crate::element::Element;
use crate::place::{Given, OnGpu, Place, gpu};

/// An array in memory of the library on a GPU, which other libraries take by DLPack. Its elements, row after row, are
/// zeros until a product writes them. Another library is given the array when that has ended.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct DeviceArray {
    /// There until its end.
    memory: Option<Arc<OnGpu<DeviceBuffer<u8>>>>,
    gpu: u32,
    element: Element,
    /// The name of the elements' type.
    #[pyo3(get)]
    dtype: String,
    shape: Vec<i64>,
}

impl DeviceArray {
    fn address(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.address())
    }
}

impl Drop for DeviceArray {
    fn drop(&mut self) {
        let memory = self.memory.take();
        // Freeing waits for the device, and that may wait for a thread that needs the interpreter.
        Python::attach(|py| py.detach(|| drop(memory)));
    }
}

#[pymethods]
impl DeviceArray {
    /// On the GPU of this number.
    #[new]
    fn new(py: Python<'_>, shape: Vec<i64>, dtype: &str, ordinal: u32) -> PyResult<Self> {
        let device = gpu(py, ordinal)?;
        let element = Element::named(dtype);
        element.value("a new array")?;
        if let Some(extent) = shape.iter().find(|extent| **extent < 0) {
            return Err(PyValueError::new_err(format!("shape: {extent} is negative")));
        }
        let place = Place::new(py, Some((ordinal, 0, py.None())))?;
        let bytes = shape
            .iter()
            .try_fold(element.bytes(), |bytes, &extent| bytes.checked_mul(extent as usize));
        let memory = place.run(py, &device, || {
            let on = device.cuda_device()?;
            // Not of a pool, whose memory is free again in the order of streams: other libraries have their own.
            let buffer =
                DeviceBuffer::<u8>::exportable(on, bytes.unwrap_or(usize::MAX), "the result")?;
            on.stream().synchronize()?;
            Ok(buffer)
        })?;
        let memory = Some(Arc::new(OnGpu::new(&device, memory)));
        Ok(DeviceArray { memory, gpu: ordinal, element, dtype: dtype.to_owned(), shape })
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    fn __dlpack_device__(&self) -> (i32, u32) {
        (CUDA, self.gpu)
    }

    /// The array as a tensor of DLPack. No `stream` has to wait: the product has ended.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'_, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, u32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stream;
        if copy == Some(true) || dl_device.is_some_and(|device| device != self.__dlpack_device__())
        {
            return Err(PyBufferError::new_err(
                "the array is exported where it is, without a copy",
            ));
        }
        let memory = Memory {
            data: self.address() as *mut c_void,
            gpu: self.gpu as i32,
            element: &self.element,
            shape: &self.shape,
        };
        let versioned = max_version.is_some_and(|(major, _)| major >= 1);
        dlpack::capsule(py, memory, self.memory.clone(), versioned)
    }

    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", self.shape(py)?)?;
        interface.set_item("typestr", typestr(self.element.value("the array")?))?;
        interface.set_item("data", (self.address(), false))?;
        Ok(interface)
    }

    /// Queues copying a vector of the same type and length to this one.
    fn assign(&self, py: Python<'_>, values: &Bound<'_, PyAny>, place: Given) -> PyResult<()> {
        let place = Place::new(py, place)?;
        let Place::Gpu(gpu) = &place else {
            return Err(PyTypeError::new_err("place: expected that of a GPU"));
        };
        let from = Array::vector("values", values, &place)?;
        let to = self.__dlpack__(py, None, None, None, None)?;
        let mut to = Array::to_write("the result", &to, &place)?;
        Ok(with_scalar!(self.element.value("the array")?, |T| place.within(|| {
            Ok(to.buffer_mut::<T>(gpu)?.copy_from(&from.buffer::<T>(gpu)?, &gpu.stream)?)
        }))?)
    }
}
