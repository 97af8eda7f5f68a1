//! Types for matrices: scalars, indices, semirings, CSR, CSC, COO, DCSR and dense matrices (owned
//! and borrowed), permutations, and the description of a product.
//!
//! Nothing here multiplies, reads files or chooses algorithms. The other crates of
//! the workspace build on these types; most users import them through `gustav`.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("gustav needs a 64-bit target: row offsets and sizes pass 2^32");

mod attention;
pub mod buffer;
pub mod convert;
pub mod coo;
pub mod csc;
pub mod csr;
pub mod dcsr;
pub mod dense;
mod epilogue;
pub mod error;
pub mod index;
pub mod parallel;
pub mod pattern;
pub mod permutation;
pub mod problem;
mod recycle;
mod reduce;
mod request;
pub mod scalar;
mod scale;
pub mod semiring;
pub mod validate;
mod values;

pub use attention::{
    AttentionGradientsRequest, AttentionRequest, HeadValues, ScoreOptions, SoftmaxRequest,
    WIDEST_HEAD,
};
pub use buffer::Buffer;
pub use coo::{Coo, CooView};
pub use csc::{Csc, CscView};
pub use csr::{Csr, CsrView};
pub use dcsr::{Dcsr, DcsrView};
pub use dense::{Batch, Dense, DenseView, DenseViewMut, Layout, Strides};
pub use epilogue::Epilogue;
pub use error::{Error, Result};
pub use half::{bf16, f16};
pub use index::{Index, IndexSlice, IndexType};
pub use pattern::{AnyPattern, Pattern, PatternId, PatternRef, PatternView, TransposedPattern};
pub use permutation::Permutation;
pub use problem::{Operation, Problem};
pub use reduce::{Extremum, Reduce, WinnersMut};
pub use request::{Plans, SddmmRequest, SpgemmRequest, SpmmRequest, SpmvRequest};
pub use scalar::{Arith, DType, Scalar};
pub use scale::Scale;
pub use semiring::{
    MaxTimes, MinPlus, Ops, OrAnd, PlusFirst, PlusSecond, PlusTimes, Semiring, StaticSemiring,
};
pub use values::Values;
