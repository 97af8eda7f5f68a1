//! Products on sparse patterns in CSR, on CPUs and NVIDIA GPUs: sparse × dense ([`spmm`]), sparse ×
//! vector ([`spmv`]), sparse × sparse ([`spgemm`]), and dense × dense at the nonzeros of a pattern
//! ([`sddmm`]).
//!
//! # One call
//!
//! A program that holds CSR arrays borrows them as a [`CsrView`], which checks them and copies
//! nothing, and multiplies:
//!
//! ```
//! use gustav::{CsrView, DenseView};
//!
//! // 2 × 3: row 0 has 1 in column 0 and 2 in column 2, row 1 has 3 in column 1.
//! let (offsets, indices, values) = ([0_u32, 2, 3], [0_u32, 2, 1], [1.0_f32, 2.0, 3.0]);
//! let a = CsrView::new(2, 3, &offsets, &indices, &values)?;
//! let b = DenseView::row_major(3, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//!
//! let c = gustav::spmm(a, b)?;
//! assert_eq!(c.data(), [11.0, 14.0, 9.0, 12.0]);
//! # Ok::<(), gustav::Error>(())
//! ```
//!
//! [`Csr`] and [`Dense`] own their arrays. Values are `f32`, `f64`, [`struct@f16`], [`bf16`], `i32`
//! or `i64`. Column indices and row offsets are `u32` or `u64`, independently; [`index::unsigned`]
//! reads `i32` and `i64` in place. [`io`] reads and writes files and generates matrices.
//!
//! The builders [`Spmm`], [`Spmv`] and [`Spgemm`] have the options: α, Aᵀ, semirings, threads, the
//! device, a named algorithm, results that are the same to the bit.
//!
//! # A plan for many calls
//!
//! A matrix is a [`Pattern`] (where the nonzeros are) and values. A plan analyses the pattern once,
//! chooses an algorithm for the expected number of calls, and multiplies with any values:
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
//! // Other values, and C = 0.5·A·B + C.
//! plan.execute(&[3.0, 4.0], &b, &mut c, Scale::new().alpha(0.5).beta(1.0))?;
//! assert_eq!(c.data(), [50.0, 40.0]);
//! # Ok::<(), gustav::Error>(())
//! ```
//!
//! Gradients of a product are products of the same pattern: [`SpmmGradients`] plans those of an
//! SpMM, with respect to B and to the values of A, for sums, means, max and min, and forms nothing
//! dense of A's shape.
//!
//! # What was chosen, and why
//!
//! [`SpmmPlan::explain`] says which algorithm a plan runs, with which configuration and workspace,
//! and what in the pattern led to it. Print it, or read its fields:
//!
//! ```
//! # use gustav::{Algorithm, Chooser, Csr, Device, SpmvPlan};
//! # let a = Csr::<f64>::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![1.0, 2.0])?;
//! let plan: SpmvPlan<'_, f64> = a.pattern().spmv().plan(&Device::cpu())?;
//! println!("{}", plan.explain());
//!
//! // Another choice: by name, or the fastest of all in a trial.
//! let named = Device::cpu().choose(Chooser::Named(Algorithm::MergePath));
//! let plan: SpmvPlan<'_, f64> = a.pattern().spmv().plan(&named)?;
//! assert_eq!(plan.algorithm(), Algorithm::MergePath);
//! # Ok::<(), gustav::Error>(())
//! ```
//!
//! # On a GPU
//!
//! [`Device::cuda`] finds the driver at run time, and the calls are the same. Matrices that stay in
//! the GPU's memory are multiplied there, and executions are queued; see [`cuda`].
//!
//! ```no_run
//! # use gustav::{Csr, Dense, Device, Layout};
//! # let a = Csr::<f32>::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![1.0, 2.0])?;
//! # let b = Dense::from_row_major(2, 1, vec![10.0, 20.0])?;
//! let gpu = Device::cuda(0)?;
//! let (a, b) = (gpu.upload(&a)?, gpu.upload(&b)?);
//! let mut c = gpu.zeros(2, 1, Layout::RowMajor)?;
//! let mut plan = a.pattern().spmm(1).calls(1000).plan(&gpu)?;
//! plan.execute(&a, &b, &mut c, ())?;
//! let c = c.download()?; // waits for the product
//! # Ok::<(), gustav::Error>(())
//! ```
//!
//! # Errors
//!
//! Every function that can fail returns an [`Error`]: what is wrong, where, and what would work.
//! Arrays are checked when a matrix is made of them, operands at every execution; values of another
//! pattern than the plan's are refused.
//!
//! ```
//! use gustav::{Csr, Error};
//!
//! let found = Csr::<f32>::new(2, 3, vec![0, 2, 3], vec![0, 7, 1], vec![1.0, 2.0, 3.0]);
//! let Err(e @ Error::Index { row: 0, value: 7, .. }) = found else { panic!() };
//! assert_eq!(e.to_string(), "row 0, entry 1: index 7 is out of range (must be below 3)");
//! ```
//!
//! # Matrices of other crates
//!
//! With the features `ndarray`, `sprs`, `nalgebra-sparse` and `faer`, their matrices are read and
//! written in place; see [`interop`].
#![cfg_attr(
    feature = "ndarray",
    doc = "
```
use gustav::Csr;
use ndarray::array;

let a = Csr::<f64>::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![1.0, 2.0])?;
let c = gustav::spmm(&a, &array![[10.0], [20.0]])?;
assert_eq!(c.data(), [20.0, 20.0]);
# Ok::<(), gustav::Error>(())
```"
)]

mod catalog;
pub mod cuda;
mod device;
mod explain;
mod gradient;
pub mod interop;
mod operands;
mod plan;
mod product;

pub use device::{Device, DeviceInfo};
pub use explain::{Config, Considered, Explanation, OrderFacts};
pub use gradient::{SddmmGradients, SpgemmGradients, SpmmGradients};
pub use gustav_core::{
    Arith, AttentionGradientsRequest, AttentionRequest, Batch, Buffer, Coo, CooView, Csc, CscView,
    Csr, CsrView, DType, Dcsr, DcsrView, Dense, DenseView, DenseViewMut, Epilogue, Error, Extremum,
    HeadValues, Index, IndexSlice, IndexType, Layout, Operation, Pattern, PatternId, PatternRef,
    PatternView, Permutation, Plans, Problem, Reduce, Result, Scalar, Scale, ScoreOptions,
    SddmmRequest, Semiring, SoftmaxRequest, SpgemmRequest, SpmmRequest, SpmvRequest, Strides,
    TransposedPattern, Values, WinnersMut, bf16, buffer, f16, index, parallel, with_scalar,
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
    WinnersOperand, WinnersResult,
};
pub use plan::{
    AttentionCall, AttentionGradients, AttentionGradientsCall, AttentionGradientsPlan,
    AttentionInputs, AttentionPlan, SddmmCall, SddmmPlan, SoftmaxCall, SoftmaxPlan, SpgemmPlan,
    SpmmPlan, SpmvPlan, intermediate_products,
};
pub use product::{Spgemm, Spmm, Spmv, sddmm, spgemm, spmm, spmv};
