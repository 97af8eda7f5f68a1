//! Arrays of `ndarray` (feature `ndarray`).
//!
//! ```
//! use gustav::{Csr, Device};
//! use ndarray::{Array2, array, s};
//!
//! let a = Csr::<f64>::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
//! let b = array![[1.0, 2.0, 0.0], [3.0, 4.0, 0.0], [5.0, 6.0, 0.0]];
//! let b = b.slice(s![.., ..2]); // read in place
//!
//! let c = gustav::spmm(&a, &b)?;
//! let c: Array2<f64> = gustav::interop::ndarray::array(c)?;
//! assert_eq!(c, array![[11.0, 14.0], [9.0, 12.0]]);
//!
//! let mut into = Array2::zeros((2, 2));
//! let mut plan = a.pattern().spmm(2).plan(&Device::cpu())?;
//! plan.execute(&a, &b, &mut into, ())?;
//! assert_eq!(into, c);
//!
//! assert_eq!(gustav::spmv(&a, &array![1.0, 10.0, 100.0])?, [201.0, 30.0]);
//! # Ok::<(), gustav::Error>(())
//! ```

use ::ndarray::{
    Array2, ArrayBase, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Data, DataMut, Ix1,
    Ix2, ShapeBuilder, ShapeError,
};
use gustav_core::{Dense, DenseView, DenseViewMut, Error, Layout, Result, Scalar};

use super::strides;
use crate::{DenseOperand, DenseResult, IntoOperand, VectorOperand, VectorResult};

const COPY: &str = "`as_standard_layout().into_owned()`";

/// `array` in place: row-major or column-major, with any distance between its rows or columns.
///
/// # Errors
/// [`Error::Argument`] with the strides when they are others: both above 1, negative, or 0, as of a
/// broadcast array.
pub fn dense_view<T: Scalar>(array: ArrayView2<'_, T>) -> Result<DenseView<'_, T>> {
    let (nrows, ncols) = array.dim();
    let (layout, ld) = layout([nrows, ncols], array.strides())?;
    // SAFETY: the array borrows its elements, which are at these strides in one allocation.
    unsafe { DenseView::from_raw_parts(nrows, ncols, layout, ld, array.as_ptr()) }
}

/// `array` in place, to be written; see [`dense_view`].
///
/// # Errors
/// As [`dense_view`].
pub fn dense_view_mut<T: Scalar>(mut array: ArrayViewMut2<'_, T>) -> Result<DenseViewMut<'_, T>> {
    let (nrows, ncols) = array.dim();
    let (layout, ld) = layout([nrows, ncols], array.strides())?;
    // SAFETY: the array, which ends here, borrows its elements exclusively; they are at these
    // strides in one allocation, and no two are at one position.
    unsafe { DenseViewMut::from_raw_parts(nrows, ncols, layout, ld, array.as_mut_ptr()) }
}

fn layout(shape: [usize; 2], of: &[isize]) -> Result<(Layout, usize)> {
    strides::layout("ndarray matrix", shape, [of[0], of[1]], Layout::RowMajor, COPY)
}

/// `dense` as an array of the same layout, packed. Values that came from a `Vec` stay where they
/// are. Those that gustav allocated, as every product of [`spmm`](crate::spmm), are copied, as an
/// array's memory is that of a `Vec`; a plan that executes into an array copies nothing.
///
/// # Errors
/// [`Error::OutOfMemory`] for a copy, [`Error::Argument`] for sizes that `ndarray` refuses.
pub fn array<T: Scalar>(dense: Dense<T>) -> Result<Array2<T>> {
    let (nrows, ncols, layout) = (dense.nrows(), dense.ncols(), dense.layout());
    let packed = match dense.data().len() == nrows * ncols {
        true => dense,
        false => dense.to_layout(layout)?,
    };
    let shape = (nrows, ncols).set_f(layout == Layout::ColumnMajor);
    Array2::from_shape_vec(shape, packed.into_data().into_vec()).map_err(refused)
}

/// `dense` as an array in place.
///
/// # Errors
/// [`Error::Argument`] for sizes that `ndarray` refuses.
pub fn array_view<T: Scalar>(dense: &Dense<T>) -> Result<ArrayView2<'_, T>> {
    let (nrows, ncols, ld) = (dense.nrows(), dense.ncols(), dense.leading_dimension());
    let shape = match dense.layout() {
        _ if nrows == 0 || ncols == 0 => (nrows, ncols).into(),
        Layout::RowMajor => (nrows, ncols).strides((ld, 1)),
        Layout::ColumnMajor => (nrows, ncols).strides((1, ld)),
    };
    ArrayView2::from_shape(shape, dense.data()).map_err(refused)
}

fn refused(e: ShapeError) -> Error {
    Error::Argument {
        name: "dense matrix",
        found: "a shape that no array has".into(),
        expected: format!("one that ndarray takes ({e})"),
    }
}

fn gaps(len: usize, stride: isize) -> Error {
    Error::Argument {
        name: "ndarray vector",
        found: format!("{len} elements with a stride of {stride}"),
        expected: format!("a stride of 1; {COPY} makes a copy that has it"),
    }
}

impl<'v, T: Scalar> IntoOperand<DenseOperand<'v, T>> for ArrayView2<'v, T> {
    fn into_operand(self) -> Result<DenseOperand<'v, T>> {
        dense_view(self).map(DenseOperand::Host)
    }
}

impl<'v, T: Scalar, S: Data<Elem = T>> IntoOperand<DenseOperand<'v, T>> for &'v ArrayBase<S, Ix2> {
    fn into_operand(self) -> Result<DenseOperand<'v, T>> {
        self.view().into_operand()
    }
}

impl<'v, T: Scalar> IntoOperand<DenseResult<'v, T>> for ArrayViewMut2<'v, T> {
    fn into_operand(self) -> Result<DenseResult<'v, T>> {
        dense_view_mut(self).map(DenseResult::Host)
    }
}

impl<'v, T: Scalar, S: DataMut<Elem = T>> IntoOperand<DenseResult<'v, T>>
    for &'v mut ArrayBase<S, Ix2>
{
    fn into_operand(self) -> Result<DenseResult<'v, T>> {
        self.view_mut().into_operand()
    }
}

impl<'v, T> IntoOperand<VectorOperand<'v, T>> for ArrayView1<'v, T> {
    fn into_operand(self) -> Result<VectorOperand<'v, T>> {
        let slice = self.to_slice().ok_or_else(|| gaps(self.len(), self.strides()[0]))?;
        Ok(VectorOperand::Host(slice))
    }
}

impl<'v, T, S: Data<Elem = T>> IntoOperand<VectorOperand<'v, T>> for &'v ArrayBase<S, Ix1> {
    fn into_operand(self) -> Result<VectorOperand<'v, T>> {
        self.view().into_operand()
    }
}

impl<'v, T> IntoOperand<VectorResult<'v, T>> for ArrayViewMut1<'v, T> {
    fn into_operand(self) -> Result<VectorResult<'v, T>> {
        let (len, stride) = (self.len(), self.strides()[0]);
        self.into_slice().map(VectorResult::Host).ok_or_else(|| gaps(len, stride))
    }
}

impl<'v, T, S: DataMut<Elem = T>> IntoOperand<VectorResult<'v, T>> for &'v mut ArrayBase<S, Ix1> {
    fn into_operand(self) -> Result<VectorResult<'v, T>> {
        self.view_mut().into_operand()
    }
}
