//! Patterns whose rows are spread over ranks.

use gustav::{Buffer, Index, Pattern as Owned, PatternView, Scalar};
use gustav_mpi::DistPattern as Dist;
use pyo3::prelude::*;

use super::ranks::{Ranks, detached_on, partition, reported};
use crate::block::Block;
use crate::error::{Fault, to_python};
use crate::pattern::{AnyRef, Source, with_indices};
use crate::place::Place;

/// A pattern over ranks, by the width of its column indices, which is the same on every rank; offsets have 64 bits.
#[derive(Clone)]
pub enum AnyDist {
    Long(Dist<u32, u64>),
    Large(Dist<u64, u64>),
}

/// Runs `$body` with `$p` as the pattern over ranks.
macro_rules! with_dist {
    ($any:expr, |$p:ident| $body:expr) => {
        match $any {
            $crate::mpi::pattern::AnyDist::Long($p) => $body,
            $crate::mpi::pattern::AnyDist::Large($p) => $body,
        }
    };
}
pub(super) use with_dist;

/// A pattern whose rows are spread over ranks.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct DistPattern {
    pub inner: AnyDist,
}

/// A copy with indices of these types.
pub(super) fn converted<I: Index, O: Index, J: Index>(
    view: &PatternView<'_, I, O>,
) -> Result<Owned<J, u64>, Fault> {
    let offsets: Vec<u64> = view.offsets().iter().map(|o| o.to_usize() as u64).collect();
    let indices: Vec<J> = view.indices().iter().map(|i| J::truncate(i.to_usize())).collect();
    Ok(Owned::new(view.nrows(), view.ncols(), offsets, indices)?)
}

/// A copy of values of the library. Where there is no memory, other ranks do not know, and are told as of errors of
/// Python.
pub(super) fn copied<T: Scalar>(values: &[T]) -> Result<Buffer<T>, Fault> {
    let zeroed = Buffer::<T>::zeroed(values.len(), "values of a matrix");
    let mut copy = zeroed.map_err(|e| Fault::Python(to_python(e)))?;
    copy.copy_from_slice(values);
    Ok(copy)
}

fn joined<J: Index>(
    ranks: &gustav_mpi::Ranks,
    local: AnyRef<'_>,
    counts: Option<Vec<usize>>,
) -> Result<Dist<J, u64>, Fault> {
    let prepared = with_indices!(AnyRef, local, |p| {
        let view = p.view();
        partition(ranks, "columns", view.ncols(), counts)
            .and_then(|columns| Ok((converted::<_, _, J>(&view)?, columns)))
    });
    let (local, columns) = reported(ranks, prepared.map_err(PyErr::from))?;
    Ok(Dist::new(ranks, &columns, local)?)
}

#[pymethods]
impl DistPattern {
    /// Rows `local` of this rank, `(indptr, indices, shape)`, over all columns, of which rank r has `columns[r]`,
    /// or evenly as many. Collective.
    #[new]
    #[pyo3(signature = (ranks, local, columns=None))]
    fn new(
        py: Python<'_>,
        ranks: &Bound<'_, Ranks>,
        local: &Bound<'_, PyAny>,
        columns: Option<Vec<usize>>,
    ) -> PyResult<Self> {
        let ranks = ranks.get().inner.clone();
        let source = reported(&ranks, Source::of(local, &Place::Host))?;
        let inner = detached_on(py, &ranks.clone(), move || {
            let local = reported(&ranks, source.pattern().map_err(PyErr::from))?;
            let width = with_indices!(AnyRef, &local, |p| p.view().ncols());
            Ok(match u32::try_from(width) {
                Ok(_) => AnyDist::Long(joined(&ranks, local, columns)?),
                Err(_) => AnyDist::Large(joined(&ranks, local, columns)?),
            })
        })?;
        Ok(DistPattern { inner })
    }

    /// Rows and columns over all ranks.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        with_dist!(&self.inner, |p| (p.nrows(), p.ncols()))
    }

    /// Nonzeros over all ranks.
    #[getter]
    fn nnz(&self) -> usize {
        with_dist!(&self.inner, |p| p.nnz())
    }

    /// Nonzeros of this rank.
    #[getter]
    fn local_nnz(&self) -> usize {
        with_dist!(&self.inner, |p| p.local().nnz())
    }

    /// First rows of the ranks, then the number of rows.
    #[getter]
    fn row_offsets(&self) -> Vec<usize> {
        with_dist!(&self.inner, |p| p.rows().offsets().to_vec())
    }

    /// First columns of the ranks, then the number of columns.
    #[getter]
    fn column_offsets(&self) -> Vec<usize> {
        with_dist!(&self.inner, |p| p.columns().offsets().to_vec())
    }

    /// Row offsets of this rank's rows.
    #[getter]
    fn indptr(&self) -> Block {
        with_dist!(&self.inner, |p| {
            let local = p.local().clone();
            let owner = local.clone();
            // SAFETY: the pattern keeps its arrays and nobody writes them.
            unsafe { Block::indices(local.offsets(), true, owner) }
        })
    }

    /// Columns of this rank's rows.
    #[getter]
    fn indices(&self) -> Block {
        with_dist!(&self.inner, |p| {
            let local = p.local().clone();
            let owner = local.clone();
            // SAFETY: the pattern keeps its arrays and nobody writes them.
            unsafe { Block::indices(local.indices(), true, owner) }
        })
    }
}
