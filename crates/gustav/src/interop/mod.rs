//! Matrices of other crates and tensors of other libraries, read and written in place.
//!
//! [`dlpack`] has the structs that libraries of C and C++ exchange. Each crate of Rust has a
//! feature and a module of its name, off by default:
//!
//! | feature | read in place | product |
//! |---|---|---|
//! | `ndarray` | `ArrayView2` as dense operand, `ArrayView1` as vector | into `ArrayViewMut2`, or as `Array2` |
//! | `sprs` | `CsMatView` in CSR and CSC | as `CsMat` |
//! | `nalgebra-sparse` | `CsrMatrix`, `CscMatrix`; `DMatrix` as dense operand | into `DMatrix`, or as `CsrMatrix` |
//! | `faer` | `SparseRowMatRef`, `SparseColMatRef`; `MatRef` as dense operand | into `MatMut` |
//!
//! Dense matrices and vectors are taken by [`spmm`](crate::spmm), [`spmv`](crate::spmv) and the
//! `execute` of plans as they are; elsewhere `dense_view` gives a [`DenseView`](crate::DenseView).
//! Sparse ones go through `csr_view` or `csc_view`, which validate their indices as
//! [`CsrView::new`](crate::CsrView::new) does. Do that once and hold the view: each call makes a
//! pattern with an identity of its own, and a plan refuses the values of another pattern.
//!
//! A matrix in CSC is the transpose of one in CSR: multiply with
//! [`CscView::transpose`](crate::CscView::transpose) and `transpose(true)`.

pub mod dlpack;
#[cfg(feature = "faer")]
pub mod faer;
#[cfg(feature = "nalgebra-sparse")]
pub mod nalgebra_sparse;
#[cfg(feature = "ndarray")]
pub mod ndarray;
#[cfg(feature = "sprs")]
pub mod sprs;

#[cfg(any(feature = "sprs", feature = "nalgebra-sparse", feature = "faer"))]
mod indices;
mod strides;

#[cfg(any(feature = "sprs", feature = "nalgebra-sparse", feature = "faer"))]
pub use indices::Indices;
