//! Tensors by DLPack's table of C functions, which a class may have: without a capsule for each.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};

use crate::array::Array;
use crate::dlpack::{self, Tensor};
use crate::place::Place;
use crate::shape::Shapes;

const NAME: &CStr = c"dlpack_exchange_api";

/// `DLPackExchangeAPI`.
#[repr(C)]
struct Table {
    major: u32,
    minor: u32,
    previous: *const c_void,
    allocate: *const c_void,
    export: *const c_void,
    import: *const c_void,
    /// Describes a tensor of the class, which keeps what the description points to.
    describe: Option<unsafe extern "C" fn(*mut pyo3::ffi::PyObject, *mut Tensor) -> c_int>,
    /// The stream that the library's work on a device goes to.
    current_stream: Option<unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int>,
}

/// Functions of a class of tensors.
#[derive(Clone, Copy)]
pub struct Functions {
    describe: unsafe extern "C" fn(*mut pyo3::ffi::PyObject, *mut Tensor) -> c_int,
    current_stream: unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int,
}

/// Classes that have a table of a known version, which are held, so that an address is that of one class.
static CLASSES: Mutex<Vec<(Py<PyAny>, Functions)>> = Mutex::new(Vec::new());

/// The tensor that `object` is, if its class has a table and the work of `place` is in the order of its library's.
pub(crate) fn array(
    name: &'static str,
    object: &Bound<'_, PyAny>,
    place: &Place,
    shapes: Shapes,
) -> PyResult<Option<Array>> {
    let Some(functions) = functions_of(object)? else { return Ok(None) };
    let tensor = functions.described(object)?;
    // The object keeps the memory, unless another thread replaces it meanwhile, which the documentation forbids.
    let array = dlpack::described(name, &tensor, false, shapes, || Ok(object.clone().unbind()))?;
    if let Some(bytes) = shrunk_storage(object, &array)? {
        let shape = array.shape();
        return Err(PyValueError::new_err(format!(
            "{name}: a tensor of shape {shape:?} has a storage of {bytes} bytes, which does not hold it; resize the \
             storage, or give another tensor"
        )));
    }
    if let Place::Gpu(gpu) = place
        && gpu.dlpack() != functions.current_stream(object.py(), &tensor)?.max(1)
    {
        return Ok(None);
    }
    Ok(Some(array))
}

/// Bytes of the storage of a tensor of PyTorch, if it was shrunk so that it does not hold all elements.
pub fn shrunk_storage(object: &Bound<'_, PyAny>, array: &Array) -> PyResult<Option<usize>> {
    let (py, elements) = (object.py(), array.extent());
    if elements.is_empty() {
        return Ok(None);
    }
    let storage = match object.call_method0(intern!(py, "untyped_storage")) {
        Ok(storage) => storage,
        // A tensor of another library has none.
        Err(e) if e.is_instance_of::<PyAttributeError>(py) => return Ok(None),
        Err(e) => return Err(e),
    };
    let start: usize = storage.call_method0(intern!(py, "data_ptr"))?.extract()?;
    let bytes: usize = storage.call_method0(intern!(py, "nbytes"))?.extract()?;
    let is_held = start <= elements.start && elements.end - start <= bytes;
    Ok((!is_held).then_some(bytes))
}

impl Functions {
    /// What an object of the class says of its memory.
    ///
    /// # Errors
    /// Those of its library.
    pub fn described(&self, object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let mut tensor = MaybeUninit::<Tensor>::uninit();
        // SAFETY: the function checks that the object is one of its library's, as DLPack requires of what Python may
        // give it, and fills the tensor or says that it has not.
        if unsafe { (self.describe)(object.as_ptr(), tensor.as_mut_ptr()) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: it was filled.
        Ok(unsafe { tensor.assume_init() })
    }

    /// The handle of the stream that work on the tensor's device goes to in its library; 0 for host memory.
    pub fn current_stream(&self, py: Python<'_>, tensor: &Tensor) -> PyResult<usize> {
        if tensor.device_type != dlpack::CUDA {
            return Ok(0);
        }
        let mut stream = std::ptr::null_mut();
        // SAFETY: the device is one of the library's, and the function writes one pointer.
        match unsafe { (self.current_stream)(tensor.device_type, tensor.device_id, &mut stream) } {
            0 => Ok(stream as usize),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

/// The functions of the object's own class; an instance of a derived class may be more than its memory.
fn functions_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Functions>> {
    let class = object.get_type();
    let known = || CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known().iter().find(|(of, _)| of.as_ptr() == class.as_ptr()).map(|(_, f)| *f);
    if found.is_some() {
        return Ok(found);
    }
    let functions = functions_of_class(&class)?;
    if let Some(functions) = functions {
        known().push((class.into_any().unbind(), functions));
    }
    Ok(functions)
}

/// Those of a class, if it has a table of a known version itself.
pub fn functions_of_class(class: &Bound<'_, PyType>) -> PyResult<Option<Functions>> {
    let py = class.py();
    let of_class = class.getattr(intern!(py, "__dict__"))?;
    let Ok(table) = of_class.get_item(intern!(py, "__dlpack_c_exchange_api__")) else {
        return Ok(None);
    };
    let Ok(table) = table.cast_into::<PyCapsule>() else { return Ok(None) };
    let Ok(table) = table.pointer_checked(Some(NAME)) else { return Ok(None) };
    let table = table.cast::<Table>();
    // SAFETY: a capsule of this name points to a table that lives as long as the process; its head is the same in
    // every version.
    let major = unsafe { (&raw const (*table.as_ptr()).major).read() };
    if major != 1 {
        return Ok(None);
    }
    // SAFETY: as above; the rest is the same in all of version 1.
    let Table { describe, current_stream, .. } = unsafe { table.as_ref() };
    let (Some(describe), Some(current_stream)) = (*describe, *current_stream) else {
        return Ok(None);
    };
    Ok(Some(Functions { describe, current_stream }))
}
