//! COO: one (row, column, value) triple per entry.

use crate::{Error, Index, Result, Scalar, validate};

/// A sparse matrix as triples, in any order, duplicates allowed.
#[derive(Clone, Debug, PartialEq)]
pub struct Coo<T, I = u32>
where
    T: Scalar,
    I: Index,
{
    nrows: usize,
    ncols: usize,
    rows: Vec<I>,
    cols: Vec<I>,
    values: Vec<T>,
}

/// A sparse matrix as triples over borrowed arrays.
#[derive(Clone, Copy, Debug)]
pub struct CooView<'a, T, I = u32>
where
    T: Scalar,
    I: Index,
{
    nrows: usize,
    ncols: usize,
    rows: &'a [I],
    cols: &'a [I],
    values: &'a [T],
}

impl<T: Scalar, I: Index> Coo<T, I> {
    /// A matrix from row indices, column indices and values, checked.
    ///
    /// # Errors
    /// As [`CooView::new`].
    pub fn new(
        nrows: usize,
        ncols: usize,
        rows: Vec<I>,
        cols: Vec<I>,
        values: Vec<T>,
    ) -> Result<Self> {
        CooView::new(nrows, ncols, &rows, &cols, &values)?;
        Ok(Coo { nrows, ncols, rows, cols, values })
    }

    /// The matrix as a view.
    pub fn view(&self) -> CooView<'_, T, I> {
        let Coo { nrows, ncols, rows, cols, values } = self;
        CooView { nrows: *nrows, ncols: *ncols, rows, cols, values }
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.nrows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.ncols
    }

    /// Number of triples.
    pub fn nnz(&self) -> usize {
        self.rows.len()
    }

    /// Row indices.
    pub fn rows(&self) -> &[I] {
        &self.rows
    }

    /// Column indices.
    pub fn cols(&self) -> &[I] {
        &self.cols
    }

    /// Values.
    pub fn values(&self) -> &[T] {
        &self.values
    }
}

impl<'a, T: Scalar, I: Index> CooView<'a, T, I> {
    /// A matrix over borrowed row indices, column indices and values, checked. For `i32` or
    /// `i64` arrays see [`crate::index::unsigned`].
    ///
    /// # Errors
    /// [`Error::Length`] when the arrays differ in length, [`Error::Index`] for the first
    /// index out of range.
    pub fn new(
        nrows: usize,
        ncols: usize,
        rows: &'a [I],
        cols: &'a [I],
        values: &'a [T],
    ) -> Result<Self> {
        validate::length("column indices", rows.len(), cols.len())?;
        validate::length("values", rows.len(), values.len())?;
        for (position, (r, c)) in rows.iter().zip(cols).enumerate() {
            let (row, col) = (r.to_usize(), c.to_usize());
            if row >= nrows {
                return Err(Error::Index { row, position, value: row as u64, bound: nrows });
            }
            if col >= ncols {
                return Err(Error::Index { row, position, value: col as u64, bound: ncols });
            }
        }
        Ok(CooView { nrows, ncols, rows, cols, values })
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.nrows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.ncols
    }

    /// Number of triples.
    pub fn nnz(&self) -> usize {
        self.rows.len()
    }

    /// Row indices.
    pub fn rows(&self) -> &'a [I] {
        self.rows
    }

    /// Column indices.
    pub fn cols(&self) -> &'a [I] {
        self.cols
    }

    /// Values.
    pub fn values(&self) -> &'a [T] {
        self.values
    }
}

impl<'a, T: Scalar, I: Index> From<&'a Coo<T, I>> for CooView<'a, T, I> {
    fn from(a: &'a Coo<T, I>) -> Self {
        a.view()
    }
}
