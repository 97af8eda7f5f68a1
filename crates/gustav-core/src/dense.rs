//! Dense matrices: row- or column-major, any leading dimension, owned and borrowed.

use std::fmt::Display;

use crate::{Buffer, Error, Result, Scalar};

/// Which index runs fastest in memory.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Elements of a row are neighbours.
    #[default]
    RowMajor,
    /// Elements of a column are neighbours.
    ColumnMajor,
}

impl Layout {
    /// The name used on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Layout::RowMajor => "row-major",
            Layout::ColumnMajor => "column-major",
        }
    }

    /// Number of lines (rows of row-major, columns of column-major) and their length.
    const fn lines(self, nrows: usize, ncols: usize) -> (usize, usize) {
        match self {
            Layout::RowMajor => (nrows, ncols),
            Layout::ColumnMajor => (ncols, nrows),
        }
    }
}

impl Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A dense matrix, owned.
#[derive(Clone, Debug)]
pub struct Dense<T: Scalar> {
    nrows: usize,
    ncols: usize,
    layout: Layout,
    ld: usize,
    data: Buffer<T>,
}

/// A dense matrix over values that somebody else holds.
///
/// Element (i, j) is at `i * ld + j` (row-major) or `j * ld + i` (column-major).
#[derive(Clone, Copy, Debug)]
pub struct DenseView<'a, T: Scalar> {
    nrows: usize,
    ncols: usize,
    layout: Layout,
    ld: usize,
    data: &'a [T],
}

/// A dense matrix over values that somebody else holds, to be written.
#[derive(Debug)]
pub struct DenseViewMut<'a, T: Scalar> {
    nrows: usize,
    ncols: usize,
    layout: Layout,
    ld: usize,
    data: &'a mut [T],
}

/// Checks a leading dimension and returns how many values the matrix spans.
fn span(nrows: usize, ncols: usize, layout: Layout, ld: usize) -> Result<usize> {
    let (lines, len) = layout.lines(nrows, ncols);
    if ld < len {
        return Err(Error::Shape {
            op: "dense matrix",
            expected: format!(
                "a leading dimension of at least {len} for {nrows} x {ncols} {layout}"
            ),
            found: format!("{ld}"),
        });
    }
    if lines == 0 || len == 0 {
        return Ok(0);
    }
    (lines - 1)
        .checked_mul(ld)
        .and_then(|s| s.checked_add(len))
        .filter(|s| *s <= isize::MAX as usize)
        .ok_or(Error::OutOfMemory {
            what: "dense matrix",
            needed: lines as u128 * ld as u128,
            available: None,
        })
}

fn check(nrows: usize, ncols: usize, layout: Layout, ld: usize, found: usize) -> Result<()> {
    let need = span(nrows, ncols, layout, ld)?;
    if found < need {
        return Err(Error::Length { what: "dense matrix values", expected: need, found });
    }
    Ok(())
}

impl<T: Scalar> Dense<T> {
    /// A matrix from `nrows * ncols` values, rows one after another.
    ///
    /// # Errors
    /// [`Error::Length`] when there are too few or too many values.
    pub fn from_row_major(nrows: usize, ncols: usize, values: Vec<T>) -> Result<Self> {
        Self::from_values(nrows, ncols, Layout::RowMajor, values)
    }

    /// A matrix from `nrows * ncols` values, columns one after another.
    ///
    /// # Errors
    /// [`Error::Length`] when there are too few or too many values.
    pub fn from_column_major(nrows: usize, ncols: usize, values: Vec<T>) -> Result<Self> {
        Self::from_values(nrows, ncols, Layout::ColumnMajor, values)
    }

    fn from_values(nrows: usize, ncols: usize, layout: Layout, values: Vec<T>) -> Result<Self> {
        let ld = layout.lines(nrows, ncols).1;
        crate::validate::length(
            "dense matrix values",
            span(nrows, ncols, layout, ld)?,
            values.len(),
        )?;
        Ok(Dense { nrows, ncols, layout, ld, data: values.into() })
    }

    /// A matrix from values with a leading dimension of its own.
    ///
    /// # Errors
    /// [`Error::Shape`] when `ld` is too small, [`Error::Length`] when values are missing.
    pub fn with_leading_dimension(
        nrows: usize,
        ncols: usize,
        layout: Layout,
        ld: usize,
        values: impl Into<Buffer<T>>,
    ) -> Result<Self> {
        let data = values.into();
        check(nrows, ncols, layout, ld, data.len())?;
        Ok(Dense { nrows, ncols, layout, ld, data })
    }

    /// A matrix of zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn zeros(nrows: usize, ncols: usize, layout: Layout) -> Result<Self> {
        let ld = layout.lines(nrows, ncols).1;
        let len = span(nrows, ncols, layout, ld).map_err(|_| Error::OutOfMemory {
            what: "dense matrix",
            needed: nrows as u128 * ncols as u128 * size_of::<T>() as u128,
            available: crate::buffer::available_memory(),
        })?;
        Ok(Dense { nrows, ncols, layout, ld, data: Buffer::zeroed(len, "dense matrix")? })
    }

    /// A matrix whose element (i, j) is `f(i, j)`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn from_fn(
        nrows: usize,
        ncols: usize,
        layout: Layout,
        mut f: impl FnMut(usize, usize) -> T,
    ) -> Result<Self> {
        let mut m = Self::zeros(nrows, ncols, layout)?;
        let (lines, len) = layout.lines(nrows, ncols);
        for line in 0..lines {
            for k in 0..len {
                m.data[line * m.ld + k] = match layout {
                    Layout::RowMajor => f(line, k),
                    Layout::ColumnMajor => f(k, line),
                };
            }
        }
        Ok(m)
    }

    /// The matrix as a view.
    pub fn view(&self) -> DenseView<'_, T> {
        let Dense { nrows, ncols, layout, ld, ref data } = *self;
        DenseView { nrows, ncols, layout, ld, data }
    }

    /// The matrix as a view to be written.
    pub fn view_mut(&mut self) -> DenseViewMut<'_, T> {
        let Dense { nrows, ncols, layout, ld, ref mut data } = *self;
        DenseViewMut { nrows, ncols, layout, ld, data }
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.nrows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.ncols
    }

    /// Which index runs fastest.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Distance between neighbouring rows (row-major) or columns (column-major).
    pub fn leading_dimension(&self) -> usize {
        self.ld
    }

    /// The stored values, padding included.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// The stored values, padding included.
    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// The stored values for their next owner.
    pub fn into_data(self) -> Buffer<T> {
        self.data
    }

    /// Element (i, j).
    ///
    /// # Panics
    /// When `i` or `j` is out of range, as slices do.
    pub fn get(&self, i: usize, j: usize) -> T {
        self.view().get(i, j)
    }

    /// The same matrix in `layout`, packed.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn to_layout(&self, layout: Layout) -> Result<Self> {
        let view = self.view();
        Self::from_fn(self.nrows, self.ncols, layout, |i, j| view.get(i, j))
    }
}

impl<'a, T: Scalar> DenseView<'a, T> {
    /// A matrix over borrowed values.
    ///
    /// # Errors
    /// [`Error::Shape`] when `ld` is too small, [`Error::Length`] when values are missing.
    pub fn new(
        nrows: usize,
        ncols: usize,
        layout: Layout,
        ld: usize,
        data: &'a [T],
    ) -> Result<Self> {
        check(nrows, ncols, layout, ld, data.len())?;
        Ok(DenseView { nrows, ncols, layout, ld, data })
    }

    /// A packed row-major matrix over borrowed values.
    ///
    /// # Errors
    /// [`Error::Length`] when values are missing.
    pub fn row_major(nrows: usize, ncols: usize, data: &'a [T]) -> Result<Self> {
        Self::new(nrows, ncols, Layout::RowMajor, ncols, data)
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.nrows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.ncols
    }

    /// Which index runs fastest.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Distance between neighbouring rows (row-major) or columns (column-major).
    pub fn leading_dimension(&self) -> usize {
        self.ld
    }

    /// The stored values, padding included.
    pub fn data(&self) -> &'a [T] {
        self.data
    }

    /// Element (i, j).
    ///
    /// # Panics
    /// When `i` or `j` is out of range, as slices do.
    #[inline(always)]
    pub fn get(&self, i: usize, j: usize) -> T {
        assert!(i < self.nrows && j < self.ncols, "({i}, {j}) is outside the matrix");
        self.data[match self.layout {
            Layout::RowMajor => i * self.ld + j,
            Layout::ColumnMajor => j * self.ld + i,
        }]
    }

    /// The transpose, without a copy.
    pub fn transpose(&self) -> DenseView<'a, T> {
        DenseView {
            nrows: self.ncols,
            ncols: self.nrows,
            layout: match self.layout {
                Layout::RowMajor => Layout::ColumnMajor,
                Layout::ColumnMajor => Layout::RowMajor,
            },
            ..*self
        }
    }
}

impl<'a, T: Scalar> From<&'a Dense<T>> for DenseView<'a, T> {
    fn from(m: &'a Dense<T>) -> Self {
        m.view()
    }
}

impl<'a, T: Scalar> From<&'a mut Dense<T>> for DenseViewMut<'a, T> {
    fn from(m: &'a mut Dense<T>) -> Self {
        m.view_mut()
    }
}

impl<'a, T: Scalar> DenseViewMut<'a, T> {
    /// A matrix over borrowed values, to be written.
    ///
    /// # Errors
    /// [`Error::Shape`] when `ld` is too small, [`Error::Length`] when values are missing.
    pub fn new(
        nrows: usize,
        ncols: usize,
        layout: Layout,
        ld: usize,
        data: &'a mut [T],
    ) -> Result<Self> {
        check(nrows, ncols, layout, ld, data.len())?;
        Ok(DenseViewMut { nrows, ncols, layout, ld, data })
    }

    /// The same matrix, to be read.
    pub fn as_view(&self) -> DenseView<'_, T> {
        DenseView {
            nrows: self.nrows,
            ncols: self.ncols,
            layout: self.layout,
            ld: self.ld,
            data: self.data,
        }
    }

    /// The same matrix for a shorter time, so that it can be passed on and used again.
    pub fn reborrow(&mut self) -> DenseViewMut<'_, T> {
        DenseViewMut {
            nrows: self.nrows,
            ncols: self.ncols,
            layout: self.layout,
            ld: self.ld,
            data: self.data,
        }
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.nrows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.ncols
    }

    /// Which index runs fastest.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Distance between neighbouring rows (row-major) or columns (column-major).
    pub fn leading_dimension(&self) -> usize {
        self.ld
    }

    /// The stored values, padding included.
    pub fn data(&mut self) -> &mut [T] {
        self.data
    }

    /// Element (i, j).
    ///
    /// # Panics
    /// When `i` or `j` is out of range, as slices do.
    pub fn get(&self, i: usize, j: usize) -> T {
        self.as_view().get(i, j)
    }

    /// Sets element (i, j).
    ///
    /// # Panics
    /// When `i` or `j` is out of range, as slices do.
    pub fn set(&mut self, i: usize, j: usize, value: T) {
        assert!(i < self.nrows && j < self.ncols, "({i}, {j}) is outside the matrix");
        self.data[match self.layout {
            Layout::RowMajor => i * self.ld + j,
            Layout::ColumnMajor => j * self.ld + i,
        }] = value;
    }
}
