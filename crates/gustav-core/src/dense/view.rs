//! Dense matrices over values that somebody else holds.

use super::layout::check;
use super::{Dense, Layout};
use crate::{Result, Scalar, parallel};

// Lines of a copy in another layout that are written together, and elements of each at a time:
// the former read whole cache lines of the source, the latter keep them in cache.
const LINES: usize = 32;
const ELEMENTS: usize = 128;

/// A dense matrix over values that somebody else holds.
///
/// Element (i, j) is at `i * ld + j` (row-major) or `j * ld + i` (column-major).
#[derive(Clone, Copy, Debug)]
pub struct DenseView<'a, T: Scalar> {
    pub(super) nrows: usize,
    pub(super) ncols: usize,
    pub(super) layout: Layout,
    pub(super) ld: usize,
    pub(super) data: &'a [T],
}

/// A dense matrix over values that somebody else holds, to be written.
#[derive(Debug)]
pub struct DenseViewMut<'a, T: Scalar> {
    pub(super) nrows: usize,
    pub(super) ncols: usize,
    pub(super) layout: Layout,
    pub(super) ld: usize,
    pub(super) data: &'a mut [T],
}

impl<'a, T: Scalar> DenseView<'a, T> {
    /// A matrix over borrowed values.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when `ld` is too small, [`crate::Error::Length`] when values are missing.
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
    /// [`crate::Error::Length`] when values are missing.
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

    /// A packed copy in `layout`.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn to_layout(&self, layout: Layout) -> Result<Dense<T>> {
        let mut copy = Dense::zeros(self.nrows, self.ncols, layout)?;
        let len = layout.lines(self.nrows, self.ncols).1;
        let of = |line, k| match layout {
            Layout::RowMajor => self.get(line, k),
            Layout::ColumnMajor => self.get(k, line),
        };
        parallel::chunks_mut(copy.data_mut(), LINES * len.max(1), |block, lines| {
            for first in (0..len).step_by(ELEMENTS) {
                for (line, values) in lines.chunks_exact_mut(len).enumerate() {
                    let values = values[first..].iter_mut().take(ELEMENTS).enumerate();
                    values.for_each(|(k, v)| *v = of(block * LINES + line, first + k));
                }
            }
        });
        Ok(copy)
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
    /// [`crate::Error::Shape`] when `ld` is too small, [`crate::Error::Length`] when values are missing.
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
