//! Matrices that one rank has, and whose rows it sends to all.

use gustav::{Csr, Index, with_scalar};
use gustav_mpi::{DistCsr, DistPattern as Dist, DistScalar};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::pattern::{AnyDist, DistPattern, converted, copied};
use super::ranks::{Ranks, detached_on, reported};
use crate::array::Array;
use crate::block::Block;
use crate::element::{self, Element};
use crate::error::Fault;
use crate::pattern::{AnyRef, Source, with_indices};
use crate::place::Place;

/// A pattern over ranks, this rank's values, and the number that each of its rows had.
type Scattered = (AnyDist, Block, Block);

/// A matrix as it is given: its pattern and values.
type Whole = (Source, Array);

/// Sends rows of a matrix, `(indptr, indices, shape)` and values, which rank 0 gives and others do not, to the ranks,
/// in an order and in balanced parts. Collective.
#[pyfunction]
#[pyo3(signature = (ranks, whole, order))]
pub fn scatter(
    py: Python<'_>,
    ranks: &Bound<'_, Ranks>,
    whole: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    order: &str,
) -> PyResult<(DistPattern, Block, Block)> {
    let ranks = ranks.get().inner.clone();
    let parsed = || -> PyResult<_> {
        let Some((pattern, values)) = &whole else { return Ok((None, "")) };
        let source = Source::of(pattern, &Place::Host)?;
        let values = Array::vector("values", values, &Place::Host)?;
        let name = element::name(values.element.value("values")?);
        Ok((Some((source, values)), name))
    };
    let (whole, name) = reported(&ranks, parsed())?;
    let (inner, values, rows) = detached_on(py, &ranks.clone(), move || {
        // Others do not know what rank 0 has.
        let names = ranks.gather_text(name)?;
        if names[0].is_empty() {
            return Err(PyValueError::new_err("a: rank 0 gives no matrix").into());
        }
        let dtype = Element::named(&names[0]).value("dtype")?;
        let (scattered, ranks): (_, &_) = (whole.as_ref(), &ranks);
        let is_wide = ranks.any(reported(ranks, is_wide(scattered).map_err(PyErr::from))?)?;
        with_scalar!(dtype, |T| match is_wide {
            false => typed::<T, u32>(ranks, scattered, order, AnyDist::Long),
            true => typed::<T, u64>(ranks, scattered, order, AnyDist::Large),
        })
    })?;
    Ok((DistPattern { inner }, values, rows))
}

/// Whether column indices need 64 bits.
fn is_wide(whole: Option<&Whole>) -> Result<bool, Fault> {
    let Some((source, _)) = whole else { return Ok(false) };
    let columns = with_indices!(AnyRef, source.pattern()?, |p| p.view().ncols());
    Ok(u32::try_from(columns).is_err())
}

fn typed<T: DistScalar, I: Index>(
    ranks: &gustav_mpi::Ranks,
    whole: Option<&Whole>,
    order: &str,
    wrap: fn(Dist<I, u64>) -> AnyDist,
) -> Result<Scattered, Fault> {
    let csr = |(source, values): &Whole| -> Result<Csr<T, I, u64>, Fault> {
        let pattern = with_indices!(AnyRef, source.pattern()?, |p| converted(&p.view())?);
        Ok(Csr::from_pattern(&pattern, copied(values.slice::<T>()?)?)?)
    };
    let prepared = || -> Result<_, Fault> { Ok((whole.map(csr).transpose()?, order.parse()?)) };
    let (whole, order) = reported(ranks, prepared().map_err(PyErr::from))?;
    let (a, rows) = DistCsr::scatter_ordered(ranks, whole.as_ref(), order)?;
    let found = || -> Result<_, Fault> {
        let rows: Vec<u64> = rows.iter().map(|row| u64::from(*row)).collect();
        Ok((Block::values(copied(a.values().as_slice())?), Block::owned_indices(rows.into())))
    };
    // Other ranks do not know of an error here, and hear of it at their next call.
    let (values, rows) = reported(ranks, found().map_err(PyErr::from))?;
    Ok((wrap(a.pattern().clone()), values, rows))
}
