//! Tensors by DLPack's table of C functions, which a class may have: without a capsule for each.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::array::Array;
use crate::dlpack::{self, Tensor};
use crate::place::Place;

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
struct Functions {
    describe: unsafe extern "C" fn(*mut pyo3::ffi::PyObject, *mut Tensor) -> c_int,
    current_stream: unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int,
}

/// Classes that have a table of a known version, which are held, so that an address is that of one class.
static CLASSES: Mutex<Vec<(Py<PyAny>, Functions)>> = Mutex::new(Vec::new());

/// The tensor that `object` is, if its class has a table and the work of `place` is in the order of its library's.
pub fn array(
    name: &'static str,
    object: &Bound<'_, PyAny>,
    place: &Place,
) -> PyResult<Option<Array>> {
    let Some(functions) = functions_of(object)? else { return Ok(None) };
    let mut tensor = MaybeUninit::<Tensor>::uninit();
    // SAFETY: the object is of the class that names the function, which checks that, as DLPack requires of what Python may
    // give it, and fills the tensor or says that it has not.
    if unsafe { (functions.describe)(object.as_ptr(), tensor.as_mut_ptr()) } != 0 {
        return Err(PyErr::fetch(object.py()));
    }
    // SAFETY: it was filled.
    let tensor = unsafe { tensor.assume_init() };
    if let Place::Gpu(gpu) = place
        && gpu.dlpack() != functions.current_stream(object.py(), &tensor)?.max(1)
    {
        return Ok(None);
    }
    // The object keeps the memory, unless another thread replaces it meanwhile, which the documentation forbids.
    dlpack::described(name, &tensor, false, || Ok(object.clone().unbind())).map(Some)
}

impl Functions {
    /// The handle of the stream that work on the tensor's device goes to in its library; 0 for host memory.
    fn current_stream(&self, py: Python<'_>, tensor: &Tensor) -> PyResult<usize> {
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
    let py = object.py();
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
    let functions = Functions { describe, current_stream };
    known().push((class.into_any().unbind(), functions));
    Ok(Some(functions))
}
