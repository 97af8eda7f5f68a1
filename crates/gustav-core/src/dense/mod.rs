//! Dense matrices: row- or column-major, any leading dimension, owned and borrowed.

mod batch;
mod layout;
mod view;

pub use batch::{Batch, Strides};
pub use layout::Layout;
pub use view::{DenseView, DenseViewMut};

use crate::{Buffer, Error, Result, Scalar};
use layout::{check, span};

/// A dense matrix, owned.
#[derive(Clone, Debug)]
pub struct Dense<T: Scalar> {
    nrows: usize,
    ncols: usize,
    layout: Layout,
    ld: usize,
    data: Buffer<T>,
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

    /// A matrix from values with a given leading dimension.
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
        let (what, ld) = ("dense matrix", layout.lines(nrows, ncols).1);
        let elements = nrows as u128 * ncols as u128;
        let data = match usize::try_from(elements) {
            Ok(len) => Buffer::zeroed(len, what)?,
            Err(_) => {
                let needed = elements.saturating_mul(size_of::<T>() as u128);
                let available = crate::buffer::available_memory();
                return Err(Error::OutOfMemory { what, needed, available });
            }
        };
        Ok(Dense { nrows, ncols, layout, ld, data })
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
        // A matrix of empty lines may have any number of them: skip the loop.
        for line in 0..if len == 0 { 0 } else { lines } {
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
        DenseView::of(self.nrows, self.ncols, self.layout, self.ld, &self.data)
    }

    /// The matrix as a mutable view.
    pub fn view_mut(&mut self) -> DenseViewMut<'_, T> {
        DenseViewMut::of(self.nrows, self.ncols, self.layout, self.ld, &mut self.data)
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.nrows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.ncols
    }

    /// The layout.
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

    /// The stored values, owned.
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
        self.view().to_layout(layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_in_another_layout_has_the_same_elements() {
        for (m, n) in [(0, 3), (3, 0), (1, 1), (33, 129), (130, 65)] {
            let a = Dense::from_fn(m, n, Layout::RowMajor, |i, j| (i * 1000 + j) as f64).unwrap();
            let b = a.to_layout(Layout::ColumnMajor).unwrap();
            let element = |k: usize| ((k % m) * 1000 + k / m) as f64;
            assert!(b.data().iter().enumerate().all(|(k, v)| *v == element(k)), "{m} × {n}");
            assert_eq!((b.layout(), b.data().len()), (Layout::ColumnMajor, m * n));
            assert_eq!(b.to_layout(Layout::RowMajor).unwrap().data(), a.data());
        }
    }

    #[test]
    fn values_between_lines_are_in_no_slice_unless_they_are_borrowed() {
        let mut values = [1.0, 2.0, -1.0, 3.0, 4.0, -1.0];
        let at = values.as_mut_ptr();
        for (layout, second) in [(Layout::RowMajor, (1, 0)), (Layout::ColumnMajor, (0, 1))] {
            // SAFETY: the lines are within `values`, which nothing else uses.
            let view = unsafe { DenseView::<f64>::from_raw_parts(2, 2, layout, 3, at) }.unwrap();
            assert_eq!((view.as_slice(), view.get(second.0, second.1)), (None, 3.0));
            assert_eq!((view.line(0), view.line(1)), (&[1.0, 2.0][..], &[3.0, 4.0][..]));
            assert_eq!(view.to_layout(layout).unwrap().data(), [1.0, 2.0, 3.0, 4.0]);
            // SAFETY: as above; one line, or lines without gaps.
            let (line, packed) = unsafe {
                let (rows, columns) = if layout == Layout::RowMajor { (1, 3) } else { (3, 1) };
                let line = DenseView::from_raw_parts(rows, columns, layout, 5, at);
                (line.unwrap(), DenseView::from_raw_parts(3, 2, Layout::RowMajor, 2, at).unwrap())
            };
            assert_eq!(line.as_slice(), Some(&[1.0, 2.0, -1.0][..]));
            assert_eq!(packed.as_slice().map(<[f64]>::len), Some(6));
        }
        let view = DenseView::new(2, 2, Layout::RowMajor, 3, &values).unwrap();
        assert_eq!(view.as_slice(), Some(&values[..]));

        let at = values.as_mut_ptr();
        // SAFETY: the lines are within `values`, which nothing else uses.
        let view = unsafe { DenseViewMut::from_raw_parts(2, 2, Layout::RowMajor, 3, at) };
        let mut view = view.unwrap();
        assert!(view.as_mut_slice().is_none() && view.reborrow().as_mut_slice().is_none());
        view.set(0, 1, 5.0);
        view.line_mut(1).copy_from_slice(&[6.0, 7.0]);
        assert_eq!(values, [1.0, 5.0, -1.0, 6.0, 7.0, -1.0]);
        // SAFETY: refused before anything is read.
        let refused = unsafe { DenseView::from_raw_parts(2, 2, Layout::RowMajor, 1, at) };
        assert!(matches!(refused, Err(Error::Shape { .. })));
    }

    #[test]
    fn values_come_row_by_row_or_column_by_column() {
        let values = || vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let rows = Dense::<f64>::from_row_major(2, 3, values()).unwrap();
        let columns = Dense::<f64>::from_column_major(2, 3, values()).unwrap();
        assert_eq!((rows.layout(), rows.leading_dimension()), (Layout::RowMajor, 3));
        assert_eq!((columns.layout(), columns.leading_dimension()), (Layout::ColumnMajor, 2));
        let all =
            |m: &Dense<f64>| [m.get(0, 0), m.get(0, 1), m.get(0, 2), m.get(1, 0), m.get(1, 2)];
        assert_eq!(all(&rows), [1.0, 2.0, 3.0, 4.0, 6.0]);
        assert_eq!(all(&columns), [1.0, 3.0, 5.0, 2.0, 6.0]);
        for wrong in [5, 7] {
            let refused = Dense::<f64>::from_column_major(2, 3, vec![0.0; wrong]);
            assert!(matches!(refused, Err(Error::Length { expected: 6, .. })), "{wrong}");
        }
    }
}
