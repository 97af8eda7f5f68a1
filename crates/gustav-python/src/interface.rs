//! Objects with `__array_interface__` and `__cuda_array_interface__`.

use std::ffi::c_void;

use gustav::cuda::{Stream, ordinal_of};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::array::Array;
use crate::element::Element;
use crate::error::to_python;
use crate::place::{Place, elsewhere};
use crate::shape::{Dimensions, Shapes};

/// The array in host memory that `object` describes, if it has `__array_interface__`.
pub(crate) fn array(
    name: &'static str,
    object: &Bound<'_, PyAny>,
    shapes: Shapes,
) -> PyResult<Option<Array>> {
    let key = intern!(object.py(), "__array_interface__");
    Ok(described(name, object, key, shapes)?.map(|(array, _)| array))
}

/// The array on a GPU that `object` describes, if it has `__cuda_array_interface__`. The stream of `place` waits for
/// the one that the array is in use on.
pub(crate) fn of_device(
    name: &'static str,
    object: &Bound<'_, PyAny>,
    place: &Place,
    shapes: Shapes,
) -> PyResult<Option<Array>> {
    let key = intern!(object.py(), "__cuda_array_interface__");
    let Some((array, interface)) = described(name, object, key, shapes)? else { return Ok(None) };
    let Place::Gpu(gpu) = place else {
        return Err(elsewhere(name, "memory of a GPU", &place.name()));
    };
    let ordinal = match array.len() {
        // It may have no address.
        0 => gpu.ordinal,
        _ => u32::try_from(ordinal_of(array.data as u64).map_err(to_python)?)?,
    };
    let array = Array { gpu: Some(ordinal), ..array };
    place.of(name, array.gpu)?;
    let stream = interface.get_item("stream")?.filter(|stream| !stream.is_none());
    if let Some(stream) = stream {
        let handle: usize = stream.extract()?;
        if handle == 0 {
            return Err(PyValueError::new_err(format!(
                "{name}: 0 is no stream of __cuda_array_interface__; 1 is the legacy default one"
            )));
        }
        // SAFETY: the protocol requires a stream of the device that lives as long as the object.
        let earlier =
            unsafe { Stream::from_raw(gpu.on().map_err(to_python)?, handle as *mut c_void) };
        if handle != gpu.dlpack() {
            earlier.record().and_then(|event| gpu.stream.wait(&event)).map_err(to_python)?;
        }
    }
    Ok(Some(array))
}

/// The array that `object` describes by `key`, and the description.
fn described<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
    key: &Bound<'py, PyString>,
    shapes: Shapes,
) -> PyResult<Option<(Array, Bound<'py, PyDict>)>> {
    let Some(interface) = object.getattr_opt(key)? else {
        return Ok(None);
    };
    let interface = interface.cast_into::<PyDict>()?;
    let field = |field: &str| {
        interface
            .get_item(field)?
            .ok_or_else(|| PyTypeError::new_err(format!("{name}: {key} has no {field:?}")))
    };
    let typestr: String = field("typestr")?.extract()?;
    let element = element(&typestr);
    let shape: Vec<isize> = field("shape")?.extract()?;
    let strides = interface.get_item("strides")?.filter(|s| !s.is_none());
    let strides: Option<Vec<isize>> = strides.map(|s| s.extract()).transpose()?;
    if strides.as_ref().is_some_and(|s| s.len() != shape.len()) {
        let why = format!("as many strides as dimensions are needed in {key}");
        return Err(PyValueError::new_err(format!("{name}: {why}")));
    }
    let (address, readonly): (usize, bool) = field("data")?.extract()?;
    let data = address as *mut u8;
    let dimensions = Dimensions::new(name, &shape, strides.as_deref(), element.bytes(), shapes)?;
    let (gpu, owner) = (None, object.clone().unbind());
    let array = Array { name, element, gpu, data, dimensions, readonly, owner };
    Ok(Some((array, interface)))
}

/// The type that "<f4" and the like name.
fn element(typestr: &str) -> Element {
    let mut letters = typestr.chars();
    let (order, kind) = (letters.next(), letters.next());
    let swapped = if cfg!(target_endian = "little") { '>' } else { '<' };
    match (order, kind, letters.as_str().parse()) {
        (Some(order), Some(kind), Ok(bytes)) if order != swapped => Element::of_kind(kind, bytes),
        _ => Element::Other(typestr.to_owned()),
    }
}
