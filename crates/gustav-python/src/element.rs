//! Types of the elements of arrays, as Python has them.

use std::fmt::Display;

use gustav::{DType, Scalar};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// The type of an array's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// A type of values.
    Value(DType),
    /// Unsigned indices of 4 bytes.
    U32,
    /// Unsigned indices of 8 bytes.
    U64,
    /// Any other, by its name.
    Other(String),
}

impl Element {
    /// The type of a scalar.
    pub fn of<T: Scalar>() -> Self {
        Element::Value(T::DTYPE)
    }

    /// Bytes of one element; 0 for types that are not taken.
    pub fn bytes(&self) -> usize {
        match self {
            Element::Value(dtype) => dtype.bytes(),
            Element::U32 => 4,
            Element::U64 => 8,
            Element::Other(_) => 0,
        }
    }

    /// The type with this name of NumPy.
    pub fn named(name: &str) -> Self {
        match name {
            "float16" => Element::Value(DType::F16),
            "bfloat16" => Element::Value(DType::Bf16),
            "float32" => Element::Value(DType::F32),
            "float64" => Element::Value(DType::F64),
            "int32" => Element::Value(DType::I32),
            "int64" => Element::Value(DType::I64),
            "uint32" => Element::U32,
            "uint64" => Element::U64,
            other => Element::Other(other.to_owned()),
        }
    }

    /// The type of a kind ('f', 'i', 'u', 'c', 'b') with elements of `bytes`.
    pub fn of_kind(kind: char, bytes: usize) -> Self {
        let name = match kind {
            'f' => "float",
            'i' => "int",
            'u' => "uint",
            'c' => "complex",
            'b' => return Element::Other("bool".into()),
            other => return Element::Other(format!("kind {other} of {bytes} bytes")),
        };
        Self::named(&format!("{name}{}", bytes * 8))
    }

    /// The type as one of values.
    ///
    /// # Errors
    /// `TypeError` naming `what` and the types that are taken.
    pub fn value(&self, what: &str) -> PyResult<DType> {
        if let Element::Value(dtype) = self {
            return Ok(*dtype);
        }
        Err(PyTypeError::new_err(format!(
            "{what}: values of type {self} are not taken; float16, bfloat16, float32, float64, int32 and \
             int64 are"
        )))
    }
}

impl Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Element::Value(dtype) => name(*dtype),
            Element::U32 => "uint32",
            Element::U64 => "uint64",
            Element::Other(name) => name,
        })
    }
}

/// The name of NumPy.
pub fn name(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "float16",
        DType::Bf16 => "bfloat16",
        DType::F32 => "float32",
        DType::F64 => "float64",
        DType::I32 => "int32",
        DType::I64 => "int64",
    }
}
