//! Factors of a product as Python gives them.

use gustav::{Arith, DType, Reduce, Scalar, Scale, Semiring};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyComplex;

use crate::arguments::not_taken;

/// α and β, before the type of the sums is known.
#[derive(Clone, Copy, Default)]
pub struct Factors {
    alpha: Option<Factor>,
    beta: Option<Factor>,
}

#[derive(Clone, Copy)]
enum Factor {
    Real(f64),
    Integer(i64),
}

impl Factors {
    /// α and β for values of `dtype`; none where the call does not say.
    ///
    /// # Errors
    /// `TypeError` for what is no number, `ValueError` for integers that do not fit.
    pub fn new(
        alpha: Option<&Bound<'_, PyAny>>,
        beta: Option<&Bound<'_, PyAny>>,
        dtype: DType,
    ) -> PyResult<Self> {
        let factor = |name: &str, value: &Bound<'_, PyAny>| -> PyResult<Factor> {
            let too_large = |found: String| {
                PyValueError::new_err(format!("{name}: {found} does not fit in {dtype}"))
            };
            let refused =
                |e: PyErr, expected: &str| match e.is_instance_of::<PyOverflowError>(value.py()) {
                    true => too_large(value.to_string()),
                    false => not_taken(name, value, expected),
                };
            if !dtype.is_integer() {
                // NumPy's complex numbers are floats too, of which the imaginary part is dropped.
                if value.is_instance_of::<PyComplex>() {
                    return Err(not_taken(name, value, "a real number"));
                }
                return Ok(Factor::Real(value.extract().map_err(|e| refused(e, "a real number"))?));
            }
            let expected = "an integer, as the values are";
            let integer: i64 = value.extract().map_err(|e| refused(e, expected))?;
            match dtype == DType::I32 && i32::try_from(integer).is_err() {
                true => Err(too_large(integer.to_string())),
                false => Ok(Factor::Integer(integer)),
            }
        };
        Ok(Factors {
            alpha: alpha.map(|value| factor("alpha", value)).transpose()?,
            beta: beta.map(|value| factor("beta", value)).transpose()?,
        })
    }

    /// The factors in the type of the sums.
    pub fn scale<A: Arith>(self) -> Scale<A> {
        let of = |factor| match factor {
            Factor::Real(value) => <A as Scalar>::from_f64(value),
            Factor::Integer(value) => <A as Scalar>::from_i64(value),
        };
        Scale { alpha: self.alpha.map(of), beta: self.beta.map(of) }
    }
}

/// The semiring with this name, in which Python writes underscores.
///
/// # Errors
/// `ValueError` naming all.
pub fn semiring(name: &str) -> PyResult<Semiring> {
    let spelled = |s: &Semiring| s.name().replace('-', "_");
    Semiring::ALL.into_iter().find(|s| spelled(s) == name || s.name() == name).ok_or_else(|| {
        let names = Semiring::ALL.iter().map(spelled).collect::<Vec<_>>().join(", ");
        PyValueError::new_err(format!("semiring: {name:?} is not known; {names} are"))
    })
}

/// The reduction with this name.
///
/// # Errors
/// `ValueError` naming all.
pub fn reduction(name: &str) -> PyResult<Reduce> {
    Reduce::ALL.into_iter().find(|reduce| reduce.name() == name).ok_or_else(|| {
        let names = Reduce::ALL.map(Reduce::name).join(", ");
        PyValueError::new_err(format!("reduce: {name:?} is not known; {names} are"))
    })
}
