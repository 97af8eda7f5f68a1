//! Numbers that a call is given beside its arrays, by the name of their argument.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// How many threads; none where the call does not say.
pub fn threads(value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    if value.is_none() { Ok(None) } else { count("threads", 1, value).map(Some) }
}

/// How many columns.
pub fn columns(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    count("columns", 0, value)
}

/// How many calls are expected.
pub fn calls(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    count("calls", 0, value).map(|calls| calls as u64)
}

/// The count of `set_num_threads`.
pub fn of_threads(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    count("count", 1, value)
}

/// A number of things, `least` or more.
///
/// # Errors
/// `TypeError` for what is no integer, `ValueError` for one that is less or does not fit.
fn count(name: &str, least: usize, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    const MOST: usize = isize::MAX as usize;
    let out_of_range = || {
        PyValueError::new_err(format!(
            "{name}: expected an integer of at least {least} and at most {MOST}, found {value}"
        ))
    };
    match value.extract::<isize>() {
        Ok(number) => {
            let number = usize::try_from(number).ok().filter(|number| *number >= least);
            number.ok_or_else(out_of_range)
        }
        Err(e) if e.is_instance_of::<PyOverflowError>(value.py()) => Err(out_of_range()),
        Err(_) => Err(not_taken(name, value, "an integer")),
    }
}

/// The refusal of a value by its type, with what would work.
pub fn not_taken(name: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let kind = value.get_type().qualname().map_or_else(|_| "this".into(), |n| n.to_string());
    PyTypeError::new_err(format!("{name}: expected {expected}, found {value} of type {kind}"))
}
