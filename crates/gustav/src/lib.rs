//! Sparse matrix multiplication, straight from CSR: sparse × dense ([`spmm`]), sparse × vector
//! ([`spmv`]) and sparse × sparse ([`spgemm`]).
//!
//! ```
//! use gustav::{Csr, Dense};
//!
//! // 2 x 3, row 0 holds 1 at column 0 and 2 at column 2, row 1 holds 3 at column 1.
//! let a = Csr::<f32>::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
//! let b = Dense::from_row_major(3, 2, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! let c = gustav::spmm(&a, &b)?;
//! assert_eq!(c.data(), [11.0, 14.0, 9.0, 12.0]);
//! # Ok::<(), gustav::Error>(())
//! ```
//!
//! Options stand on the builders [`Spmm`], [`Spmv`] and [`Spgemm`]: α, Aᵀ, another semiring,
//! threads, a named algorithm, deterministic results.
//!
//! A matrix is a [`Pattern`] and values. A plan is made for a pattern once and multiplies any number
//! of times, with any values:
//!
//! ```
//! use gustav::{Csr, Dense, Device, Layout, Scale};
//!
//! let a = Csr::<f64>::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![1.0, 2.0])?;
//! let b = Dense::from_row_major(2, 1, vec![10.0, 20.0])?;
//! let mut c = Dense::zeros(2, 1, Layout::RowMajor)?;
//!
//! let mut plan = a.pattern().spmm(1).calls(1000).plan(&Device::cpu())?;
//! plan.execute(&a, &b, &mut c, ())?;
//! assert_eq!(c.data(), [20.0, 20.0]);
//! plan.execute(&[3.0, 4.0], &b, &mut c, Scale::new().alpha(0.5).beta(1.0))?; // other values
//! assert_eq!(c.data(), [50.0, 40.0]);
//! println!("{}", plan.explain()); // algorithm, facts, why, workspace
//! # Ok::<(), gustav::Error>(())
//! ```
//!
//! A plan refuses the values of a matrix of another pattern. On a GPU the calls are the same, with
//! matrices in its memory, and queued; see [`cuda`].
//!
//! Arrays that a program already holds are borrowed by [`CsrView`] and [`PatternView`]; `i32` and
//! `i64` index arrays are read in place through [`index::unsigned`]. Column indices and row offsets are
//! `u32` or `u64`, independently. Files are read and written, and test matrices generated, by
//! [`io`].

mod catalog;
pub mod cuda;
mod device;
mod explain;
#[cfg(any(feature = "faer", feature = "nalgebra-sparse", feature = "ndarray", feature = "sprs"))]
pub mod interop;
mod operands;
mod plan;
mod product;

pub use device::{Device, DeviceInfo};
pub use explain::{Config, Considered, Explanation, OrderFacts};
pub use gustav_core::{
    Arith, Buffer, Coo, CooView, Csc, CscView, Csr, CsrView, DType, Dcsr, DcsrView, Dense,
    DenseView, DenseViewMut, Epilogue, Error, Index, IndexType, Layout, Operation, Pattern,
    PatternId, PatternRef, PatternView, Permutation, Plans, Problem, Result, Scalar, Scale,
    SemiringKind, SpgemmRequest, SpmmRequest, SpmvRequest, TransposedPattern, Values, bf16, buffer,
    f16, index, parallel,
};
pub use gustav_cpu::spgemm::SpgemmCall;
pub use gustav_cpu::{CpuScalar, Threads};
pub use gustav_io as io;
pub use gustav_plan::facts::{Density, Features, SampledFeatures};
pub use gustav_plan::orders::{Search, WarpShape};
pub use gustav_plan::predictor;
pub use gustav_plan::{Algorithm, Choice, Chooser, DeviceProfile, Order, RowOrder, RowStats};
pub use operands::{
    DenseOperand, DenseResult, IntoOperand, SparseValues, VectorOperand, VectorResult,
};
pub use plan::{SpgemmPlan, SpmmPlan, SpmvPlan, intermediate_products};
pub use product::{Spgemm, Spmm, Spmv, spgemm, spmm, spmv};
