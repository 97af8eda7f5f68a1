//! Files, and what this machine has.

use std::path::PathBuf;

use gustav::io::{self, ReadOptions, WriteOptions};
use gustav::{Csr, DType, Index, Scalar, with_scalar};
use pyo3::prelude::*;

use crate::array::Array;
use crate::block::Block;
use crate::element::Element;
use crate::error::{Fault, detached};
use crate::pattern::{AnyRef, Source, with_indices};
use crate::place::Place;
use crate::threads;

// How long a file takes, its size does not say: it may be a pipe, or on another machine.
const UNKNOWN: usize = usize::MAX;

type Arrays = (Block, Block, Block, (usize, usize));

/// Row offsets, column indices, values and shape of the matrix in a file, as `dtype` or in the type that
/// suits the file.
#[pyfunction]
#[pyo3(signature = (path, dtype=None))]
pub fn read(py: Python<'_>, path: PathBuf, dtype: Option<&str>) -> PyResult<Arrays> {
    let dtype = dtype.map(|name| Element::named(name).value("dtype")).transpose()?;
    let device = threads::device(None)?;
    Place::Host.run_long(py, UNKNOWN, &device, move || {
        let header = io::read_header(&path)?;
        let suits = match header.field {
            io::Field::Integer => DType::I64,
            io::Field::Real | io::Field::Pattern => DType::F64,
        };
        let options = ReadOptions::default();
        let most = header.rows.max(header.cols).max(header.entries.saturating_mul(2));
        with_scalar!(dtype.unwrap_or(suits), |T| match i32::try_from(most) {
            Ok(_) => arrays(io::read_csr::<T, u32, u32>(&path, &options)?),
            Err(_) => arrays(io::read_csr::<T, u64, u64>(&path, &options)?),
        })
    })
}

fn arrays<T: Scalar, I: Index, O: Index>(a: Csr<T, I, O>) -> Result<Arrays, Fault> {
    let shape = (a.nrows(), a.ncols());
    let (offsets, indices, values) = a.into_parts()?;
    Ok((Block::owned_indices(offsets), Block::owned_indices(indices), Block::values(values), shape))
}

/// Writes a matrix to a file, whose name says the format.
#[pyfunction]
pub fn write(
    py: Python<'_>,
    path: PathBuf,
    pattern: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let source = Source::of(pattern, &Place::Host)?;
    let values = Array::vector("values", values, &Place::Host)?;
    let dtype = values.element.value("values")?;
    let device = threads::device(None)?;
    with_scalar!(dtype, |T| Place::Host.run_long(py, UNKNOWN, &device, move || {
        with_indices!(AnyRef, source.pattern()?, |p| {
            let a = p.view().with_values(values.slice::<T>()?)?;
            Ok(io::write_csr(&path, a, &WriteOptions::default())?)
        })
    }))
}

/// Name, whether products run there, and what it is or lacks, of every device.
#[pyfunction]
pub fn devices(py: Python<'_>) -> PyResult<Vec<(String, bool, String)>> {
    detached(py, || {
        let list = gustav::Device::list().into_iter();
        Ok(list.map(|d| (d.name, d.available, d.description)).collect())
    })
}
