//! Operands of an execution: in host memory, or in a GPU's.

use gustav_core::{
    Buffer, Csr, CsrView, Dense, DenseView, DenseViewMut, Error, Index, IndexSlice, Result, Scalar,
    Values, WinnersMut,
};

use crate::cuda::{
    DeviceBuffer, DeviceCsr, DeviceDense, DeviceValues, DeviceWinners, DeviceWinnersMut,
};

/// The values of a sparse operand. Those of a matrix carry the identity of its pattern, which a
/// plan compares; a plain slice or buffer is in the order of the plan's nonzeros by the caller's
/// word.
#[derive(Clone, Copy, Debug)]
pub enum SparseValues<'v, T> {
    /// In host memory.
    Host(Values<'v, T>),
    /// In a GPU's memory.
    Device(DeviceValues<'v, T>),
}

/// A dense operand that is read.
pub enum DenseOperand<'v, T: Scalar> {
    /// In host memory.
    Host(DenseView<'v, T>),
    /// In a GPU's memory.
    Device(&'v DeviceDense<T>),
}

/// A dense operand that is written.
pub enum DenseResult<'v, T: Scalar> {
    /// In host memory.
    Host(DenseViewMut<'v, T>),
    /// In a GPU's memory.
    Device(&'v mut DeviceDense<T>),
}

/// A vector that is read.
pub enum VectorOperand<'v, T> {
    /// In host memory.
    Host(&'v [T]),
    /// In a GPU's memory.
    Device(&'v DeviceBuffer<T>),
}

/// A vector that is written.
pub enum VectorResult<'v, T> {
    /// In host memory.
    Host(&'v mut [T]),
    /// In a GPU's memory.
    Device(&'v mut DeviceBuffer<T>),
}

/// The nonzeros that won an SpMM with max or min, as
/// [`SpmmPlan::execute_with_winners`](crate::SpmmPlan::execute_with_winners) writes them.
#[derive(Clone, Copy, Debug)]
pub enum WinnersOperand<'v> {
    /// In host memory.
    Host(IndexSlice<'v>),
    /// In a GPU's memory.
    Device(DeviceWinners<'v>),
}

/// The same, to be written.
pub enum WinnersResult<'v> {
    /// In host memory.
    Host(WinnersMut<'v>),
    /// In a GPU's memory.
    Device(DeviceWinnersMut<'v>),
}

/// What an execution takes as a dense matrix or a vector: [`Dense`], [`DenseView`] and
/// [`DeviceDense`] as [`DenseOperand`], slices, `Vec` and [`DeviceBuffer`] as [`VectorOperand`],
/// and mutable ones as [`DenseResult`] and [`VectorResult`]. Features add matrices of other crates,
/// see [`interop`](crate::interop).
pub trait IntoOperand<O> {
    /// The operand, in place.
    ///
    /// # Errors
    /// [`Error::Argument`] for strides that no layout with a leading dimension expresses.
    fn into_operand(self) -> Result<O>;
}

impl<O, X: Into<O>> IntoOperand<O> for X {
    fn into_operand(self) -> Result<O> {
        Ok(self.into())
    }
}

macro_rules! convert {
    ($([$($generics:tt)*] $from:ty => $to:ty, $variant:ident, |$x:ident| $convert:expr;)*) => {$(
        impl<$($generics)*> From<$from> for $to {
            fn from($x: $from) -> Self {
                <$to>::$variant($convert)
            }
        }
    )*};
}

convert! {
    ['v, T] Values<'v, T> => SparseValues<'v, T>, Host, |x| x;
    ['v, T] &'v [T] => SparseValues<'v, T>, Host, |x| x.into();
    ['v, T] &'v Vec<T> => SparseValues<'v, T>, Host, |x| x.into();
    ['v, T] &'v Buffer<T> => SparseValues<'v, T>, Host, |x| x.into();
    ['v, T, const N: usize] &'v [T; N] => SparseValues<'v, T>, Host, |x| x.into();
    ['v, T: Scalar, I: Index, O: Index] &'v Csr<T, I, O> => SparseValues<'v, T>, Host, |x| x.values();
    ['v, T: Scalar, I: Index, O: Index] CsrView<'v, T, I, O> => SparseValues<'v, T>, Host, |x| x.values();
    ['v, T] DeviceValues<'v, T> => SparseValues<'v, T>, Device, |x| x;
    ['v, T] &'v DeviceBuffer<T> => SparseValues<'v, T>, Device, |x| x.into();
    ['v, T: Scalar, I: Index, O: Index] &'v DeviceCsr<T, I, O> => SparseValues<'v, T>, Device, |x| x.values();
    ['v, T: Scalar] DenseView<'v, T> => DenseOperand<'v, T>, Host, |x| x;
    ['v, T: Scalar] &'v Dense<T> => DenseOperand<'v, T>, Host, |x| x.view();
    ['v, T: Scalar] &'v DeviceDense<T> => DenseOperand<'v, T>, Device, |x| x;
    ['v, T: Scalar] DenseViewMut<'v, T> => DenseResult<'v, T>, Host, |x| x;
    ['v, T: Scalar] &'v mut Dense<T> => DenseResult<'v, T>, Host, |x| x.view_mut();
    ['v, T: Scalar] &'v mut DeviceDense<T> => DenseResult<'v, T>, Device, |x| x;
    ['v, T] &'v [T] => VectorOperand<'v, T>, Host, |x| x;
    ['v, T] &'v Vec<T> => VectorOperand<'v, T>, Host, |x| x;
    ['v, T, const N: usize] &'v [T; N] => VectorOperand<'v, T>, Host, |x| x;
    ['v, T] &'v Buffer<T> => VectorOperand<'v, T>, Host, |x| x;
    ['v, T] &'v DeviceBuffer<T> => VectorOperand<'v, T>, Device, |x| x;
    ['v, T] &'v mut [T] => VectorResult<'v, T>, Host, |x| x;
    ['v, T] &'v mut Vec<T> => VectorResult<'v, T>, Host, |x| x;
    ['v, T, const N: usize] &'v mut [T; N] => VectorResult<'v, T>, Host, |x| x;
    ['v, T] &'v mut Buffer<T> => VectorResult<'v, T>, Host, |x| x;
    ['v, T] &'v mut DeviceBuffer<T> => VectorResult<'v, T>, Device, |x| x;
    ['v, I: Index] &'v [I] => WinnersOperand<'v>, Host, |x| IndexSlice::new(x);
    ['v, I: Index] &'v Vec<I> => WinnersOperand<'v>, Host, |x| IndexSlice::new(x);
    ['v] &'v DeviceBuffer<u32> => WinnersOperand<'v>, Device, |x| x.into();
    ['v] &'v DeviceBuffer<u64> => WinnersOperand<'v>, Device, |x| x.into();
    ['v] &'v mut [u32] => WinnersResult<'v>, Host, |x| WinnersMut::U32(x);
    ['v] &'v mut [u64] => WinnersResult<'v>, Host, |x| WinnersMut::U64(x);
    ['v] &'v mut Vec<u32> => WinnersResult<'v>, Host, |x| WinnersMut::U32(x);
    ['v] &'v mut Vec<u64> => WinnersResult<'v>, Host, |x| WinnersMut::U64(x);
    ['v] &'v mut DeviceBuffer<u32> => WinnersResult<'v>, Device, |x| x.into();
    ['v] &'v mut DeviceBuffer<u64> => WinnersResult<'v>, Device, |x| x.into();
}

/// The refusal of operands that are in different memory, or not in that of the plan.
pub(crate) fn mixed<R>(device: &str) -> Result<R> {
    Err(Error::Argument {
        name: "operands",
        found: format!("in memory that a plan of {device} does not reach, or of two kinds"),
        expected: match device {
            "cpu" => "all of them in host memory".into(),
            _ => format!("all of them in host memory, or all in the memory of {device}"),
        },
    })
}
