//! Dense matrices over borrowed values.

use std::marker::PhantomData;

use super::layout::{check, span};
use super::{Dense, Layout};
use crate::{Result, Scalar, parallel};

// Block of a copy to another layout: lines written together, so that whole cache lines of the
// source are read, and elements of each, few enough for these to stay in cache.
const LINES: usize = 32;
const ELEMENTS: usize = 128;

/// A dense matrix over borrowed values.
///
/// Element (i, j) is at `i * ld + j` (row-major) or `j * ld + i` (column-major). A *line* is a row
/// of a row-major matrix or a column of a column-major one; the values between two lines do not
/// belong to the matrix and are not read.
#[derive(Clone, Copy, Debug)]
pub struct DenseView<'a, T: Scalar> {
    nrows: usize,
    ncols: usize,
    layout: Layout,
    ld: usize,
    data: *const T,
    /// Number of values from `data` on that are borrowed; `None` if those between the lines are
    /// not.
    len: Option<usize>,
    borrow: PhantomData<&'a [T]>,
}

// SAFETY: a view is a shared borrow of its elements, as `&[T]` is.
unsafe impl<T: Scalar> Send for DenseView<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Scalar> Sync for DenseView<'_, T> {}

/// A dense matrix over mutably borrowed values. Values between its lines are neither read nor
/// written, see [`DenseView`].
#[derive(Debug)]
pub struct DenseViewMut<'a, T: Scalar> {
    nrows: usize,
    ncols: usize,
    layout: Layout,
    ld: usize,
    data: *mut T,
    /// Number of values from `data` on that are borrowed; `None` if those between the lines are
    /// not.
    len: Option<usize>,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: a view is an exclusive borrow of its elements, as `&mut [T]` is.
unsafe impl<T: Scalar> Send for DenseViewMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Scalar> Sync for DenseViewMut<'_, T> {}

/// The length of the slice over a matrix of which only the lines are borrowed: `None` if there are
/// gaps between them.
fn packed(nrows: usize, ncols: usize, layout: Layout, ld: usize) -> Result<Option<usize>> {
    let span = span(nrows, ncols, layout, ld)?;
    let (lines, len) = layout.lines(nrows, ncols);
    Ok((lines <= 1 || len == 0 || ld == len).then_some(span))
}

impl<'a, T: Scalar> DenseView<'a, T> {
    /// A matrix over borrowed values.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when `ld` is too small, [`crate::Error::Length`] when values are
    /// missing.
    pub fn new(
        nrows: usize,
        ncols: usize,
        layout: Layout,
        ld: usize,
        data: &'a [T],
    ) -> Result<Self> {
        check(nrows, ncols, layout, ld, data.len())?;
        Ok(Self::of(nrows, ncols, layout, ld, data))
    }

    /// A matrix over values whose number was checked.
    pub(super) fn of(nrows: usize, ncols: usize, layout: Layout, ld: usize, data: &'a [T]) -> Self {
        let (len, data) = (Some(data.len()), data.as_ptr());
        DenseView { nrows, ncols, layout, ld, data, len, borrow: PhantomData }
    }

    /// A matrix at `data` of which only the lines are borrowed, such as a block of columns of a
    /// row-major array.
    ///
    /// # Safety
    /// For `'a`, every element is readable at its position (see [`DenseView`]), all of them lie in
    /// one allocation, and nobody writes them. `data` is aligned and not null.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when `ld` is too small.
    pub unsafe fn from_raw_parts(
        nrows: usize,
        ncols: usize,
        layout: Layout,
        ld: usize,
        data: *const T,
    ) -> Result<Self> {
        let len = packed(nrows, ncols, layout, ld)?;
        Ok(DenseView { nrows, ncols, layout, ld, data, len, borrow: PhantomData })
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

    /// The layout.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Distance between neighbouring rows (row-major) or columns (column-major).
    pub fn leading_dimension(&self) -> usize {
        self.ld
    }

    /// The stored values including those between the lines; `None` if the latter are not borrowed.
    #[inline(always)]
    pub fn as_slice(&self) -> Option<&'a [T]> {
        // SAFETY: `len` values from `data` on are borrowed.
        self.len.map(|len| unsafe { std::slice::from_raw_parts(self.data, len) })
    }

    /// Address of element (0, 0).
    #[inline(always)]
    pub fn as_ptr(&self) -> *const T {
        self.data
    }

    /// Row `line` of a row-major matrix, column `line` of a column-major one.
    ///
    /// # Panics
    /// When there is no such line, as slices do.
    #[inline(always)]
    pub fn line(&self, line: usize) -> &'a [T] {
        let (lines, len) = self.layout.lines(self.nrows, self.ncols);
        assert!(line < lines, "line {line} of {lines}");
        if len == 0 {
            return &[];
        }
        // SAFETY: the line exists, and its elements are borrowed.
        unsafe { std::slice::from_raw_parts(self.data.add(line * self.ld), len) }
    }

    /// Element (i, j).
    ///
    /// # Panics
    /// When `i` or `j` is out of range, as slices do.
    #[inline(always)]
    pub fn get(&self, i: usize, j: usize) -> T {
        assert!(i < self.nrows && j < self.ncols, "({i}, {j}) is outside the matrix");
        // SAFETY: the element exists, and is borrowed.
        unsafe { *self.data.add(self.layout.position(i, j, self.ld)) }
    }

    /// A packed copy in `layout`.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn to_layout(&self, layout: Layout) -> Result<Dense<T>> {
        let mut copy = Dense::zeros(self.nrows, self.ncols, layout)?;
        self.copy_to(&mut copy)?;
        Ok(copy)
    }

    /// Copies the elements to `copy`, of the same shape in any layout.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when it has another shape or is not packed.
    pub fn copy_to(&self, copy: &mut Dense<T>) -> Result<()> {
        let layout = copy.layout();
        let (shape, len) = ((self.nrows, self.ncols), layout.lines(self.nrows, self.ncols).1);
        let packed = copy.leading_dimension() == len || copy.data().is_empty();
        if (copy.nrows(), copy.ncols()) != shape || !packed {
            return Err(crate::Error::Shape {
                op: "copy of a dense matrix",
                expected: format!("a packed matrix of {} x {}", shape.0, shape.1),
                found: format!("{} x {}", copy.nrows(), copy.ncols()),
            });
        }
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
        Ok(())
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
    /// A matrix over mutably borrowed values.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when `ld` is too small, [`crate::Error::Length`] when values are
    /// missing.
    pub fn new(
        nrows: usize,
        ncols: usize,
        layout: Layout,
        ld: usize,
        data: &'a mut [T],
    ) -> Result<Self> {
        check(nrows, ncols, layout, ld, data.len())?;
        Ok(Self::of(nrows, ncols, layout, ld, data))
    }

    /// A matrix over values whose number was checked.
    pub(super) fn of(
        nrows: usize,
        ncols: usize,
        layout: Layout,
        ld: usize,
        data: &'a mut [T],
    ) -> Self {
        let (len, data) = (Some(data.len()), data.as_mut_ptr());
        DenseViewMut { nrows, ncols, layout, ld, data, len, borrow: PhantomData }
    }

    /// A matrix at `data` of which only the lines are borrowed; see [`DenseView::from_raw_parts`].
    ///
    /// # Safety
    /// For `'a`, every element is readable and writable at its position (see [`DenseView`]), all of
    /// them lie in one allocation, and nobody else reads or writes them. `data` is aligned and not
    /// null.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when `ld` is too small.
    pub unsafe fn from_raw_parts(
        nrows: usize,
        ncols: usize,
        layout: Layout,
        ld: usize,
        data: *mut T,
    ) -> Result<Self> {
        let len = packed(nrows, ncols, layout, ld)?;
        Ok(DenseViewMut { nrows, ncols, layout, ld, data, len, borrow: PhantomData })
    }

    /// The same matrix as a shared view.
    pub fn as_view(&self) -> DenseView<'_, T> {
        let DenseViewMut { nrows, ncols, layout, ld, data, len, .. } = *self;
        DenseView { nrows, ncols, layout, ld, data, len, borrow: PhantomData }
    }

    /// The same matrix with a shorter lifetime, so that it can be passed on and used again.
    pub fn reborrow(&mut self) -> DenseViewMut<'_, T> {
        DenseViewMut { borrow: PhantomData, ..*self }
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

    /// The stored values including those between the lines; `None` if the latter are not borrowed.
    #[inline(always)]
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        // SAFETY: `len` values from `data` on are borrowed.
        self.len.map(|len| unsafe { std::slice::from_raw_parts_mut(self.data, len) })
    }

    /// Address of element (0, 0).
    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.data
    }

    /// Row `line` of a row-major matrix, column `line` of a column-major one.
    ///
    /// # Panics
    /// When there is no such line, as slices do.
    pub fn line_mut(&mut self, line: usize) -> &mut [T] {
        let (lines, len) = self.layout.lines(self.nrows, self.ncols);
        assert!(line < lines, "line {line} of {lines}");
        if len == 0 {
            return &mut [];
        }
        // SAFETY: the line exists, and its elements are borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(line * self.ld), len) }
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
        // SAFETY: the element exists, and is borrowed.
        unsafe { *self.data.add(self.layout.position(i, j, self.ld)) = value };
    }
}
