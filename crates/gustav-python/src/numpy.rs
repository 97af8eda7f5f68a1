//! NumPy's arrays, read where they are: as its C interface lays them out, which has not changed since
//! 1.7. The layout is compared with what an array says of itself once; if they differ, arrays are
//! read through `__array_interface__`.

use std::ffi::{c_char, c_int, c_long};

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::array::Array;
use crate::element::Element;
use crate::shape::{Dimensions, Shapes};

/// The head of `PyArrayObject`.
#[repr(C)]
struct ArrayObject {
    head: ffi::PyObject,
    data: *mut c_char,
    dimensions: c_int,
    shape: *mut isize,
    strides: *mut isize,
    base: *mut ffi::PyObject,
    descr: *mut Descr,
    flags: c_int,
}

/// The head of `PyArray_Descr`.
#[repr(C)]
struct Descr {
    head: ffi::PyObject,
    scalar: *mut ffi::PyTypeObject,
    kind: c_char,
    letter: c_char,
    byte_order: c_char,
    flags: c_char,
    number: c_int,
}

const WRITEABLE: c_int = 0x0400;
// What NumPy writes for the other byte order than the machine's.
const SWAPPED: u8 = if cfg!(target_endian = "little") { b'>' } else { b'<' };
// Numbers of types in NPY_TYPES.
const BUILT_IN: c_int = 24;

/// The type `numpy.ndarray`, if its layout is the one above.
fn array_type(py: Python<'_>) -> PyResult<Option<&Bound<'_, PyType>>> {
    static TYPE: PyOnceLock<Option<Py<PyType>>> = PyOnceLock::new();
    let found = TYPE.get_or_try_init(py, || {
        let numpy = py.import("numpy")?;
        let class = numpy.getattr("ndarray")?.cast_into::<PyType>()?;
        let known = numpy
            .call_method1("arange", (6, 18, 1, "float32"))?
            .call_method1("reshape", (3, 4))?
            .call_method1("__getitem__", (pyo3::types::PySlice::new(py, 0, 3, 2),))?;
        known.call_method1("setflags", (false,))?;
        let read = read("an array", &known, Shapes::Matrix)?;
        let interface = crate::interface::array("an array", &known, Shapes::Matrix)?;
        let same = interface.is_some_and(|said| {
            (said.data, said.dimensions, said.readonly, &said.element)
                == (read.data, read.dimensions, read.readonly, &read.element)
        });
        Ok::<_, PyErr>(same.then(|| class.unbind()))
    })?;
    Ok(found.as_ref().map(|class| class.bind(py)))
}

/// The array that `object` is, if it is one of NumPy's.
pub(crate) fn array(
    name: &'static str,
    object: &Bound<'_, PyAny>,
    shapes: Shapes,
) -> PyResult<Option<Array>> {
    // Not what `isinstance` finds: an object may say that its class is another.
    let of_object = object.get_type();
    match array_type(object.py())? {
        Some(class) if of_object.is(class) || of_object.is_subclass(class)? => {
            read(name, object, shapes).map(Some)
        }
        _ => Ok(None),
    }
}

/// Reads an instance of `numpy.ndarray`.
fn read(name: &'static str, object: &Bound<'_, PyAny>, shapes: Shapes) -> PyResult<Array> {
    let array = object.as_ptr().cast::<ArrayObject>();
    // SAFETY: the object is an instance of `ndarray`, whose head this is, see `array_type`. Nobody changes it
    // meanwhile: the interpreter is attached, and where it has no lock of its own, NumPy leaves it to programs not to
    // change the shape of an array that another thread uses. Shape and strides have as many elements as there are
    // dimensions.
    let (data, flags, descr, shape, strides) = unsafe {
        let ArrayObject { data, dimensions, shape, strides, descr, flags, .. } = &*array;
        let count = usize::try_from(*dimensions).unwrap_or(0);
        let slice = |at: *mut isize| match count {
            0 => &[][..],
            _ => std::slice::from_raw_parts(at, count),
        };
        (data.cast::<u8>(), *flags, &**descr, slice(*shape), slice(*strides))
    };
    let element = element(object, descr)?;
    let dimensions = Dimensions::new(name, shape, Some(strides), element.bytes(), shapes)?;
    let (readonly, owner) = (flags & WRITEABLE == 0, object.clone().unbind());
    let gpu = None;
    Ok(Array { name, element, gpu, data, dimensions, readonly, owner })
}

fn element(object: &Bound<'_, PyAny>, descr: &Descr) -> PyResult<Element> {
    if descr.byte_order as u8 != SWAPPED && descr.number < BUILT_IN {
        let long = size_of::<c_long>();
        let known = match descr.number {
            5 => Some(('i', 4)),
            6 => Some(('u', 4)),
            7 => Some(('i', long)),
            8 => Some(('u', long)),
            9 => Some(('i', 8)),
            10 => Some(('u', 8)),
            11 => Some(('f', 4)),
            12 => Some(('f', 8)),
            23 => Some(('f', 2)),
            _ => None,
        };
        if let Some((kind, bytes)) = known {
            return Ok(Element::of_kind(kind, bytes));
        }
    }
    // A type that another package has registered, or one that is refused by its name.
    let py = object.py();
    let dtype = object.getattr(intern!(py, "dtype"))?;
    let name: String = dtype.getattr(intern!(py, "name"))?.extract()?;
    let native: bool = dtype.getattr(intern!(py, "isnative"))?.extract()?;
    Ok(if native {
        Element::named(&name)
    } else {
        Element::Other(format!("{name} in the other byte order"))
    })
}
