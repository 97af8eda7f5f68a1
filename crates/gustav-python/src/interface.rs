//! Objects with `__array_interface__`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::{Array, dimensions};
use crate::element::Element;

/// The array that `object` describes, if it has `__array_interface__`.
pub fn array(name: &'static str, object: &Bound<'_, PyAny>) -> PyResult<Option<Array>> {
    let py = object.py();
    let Some(interface) = object.getattr_opt(intern!(py, "__array_interface__"))? else {
        return Ok(None);
    };
    let interface = interface.cast_into::<PyDict>()?;
    let field = |key: &str| {
        interface.get_item(key)?.ok_or_else(|| {
            PyTypeError::new_err(format!("{name}: __array_interface__ has no {key:?}"))
        })
    };
    let typestr: String = field("typestr")?.extract()?;
    let element = element(&typestr);
    let shape: Vec<isize> = field("shape")?.extract()?;
    let strides = interface.get_item("strides")?.filter(|s| !s.is_none());
    let strides: Option<Vec<isize>> = strides.map(|s| s.extract()).transpose()?;
    if strides.as_ref().is_some_and(|s| s.len() != shape.len()) {
        let why = "as many strides as dimensions are needed in __array_interface__";
        return Err(PyValueError::new_err(format!("{name}: {why}")));
    }
    let (address, readonly): (usize, bool) = field("data")?.extract()?;
    let data = address as *mut u8;
    let (dimensions, shape, strides) =
        dimensions(name, &shape, strides.as_deref(), element.bytes())?;
    let owner = object.clone().unbind();
    Ok(Some(Array { name, element, data, dimensions, shape, strides, readonly, _owner: owner }))
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
