//! Published algorithms, as they were published, for comparison: they run only when named, `auto`
//! never chooses them. Those of Chen et al. (2025) multiply sparse matrices of f32 or f64 with
//! 32-bit indices.

mod dense_naive;
mod hash_rows;

use gustav_core::{Csr, CsrView, DType, Error, IndexType, Problem, Result, Scalar, Semiring};
use gustav_plan::Algorithm;

use crate::Threads;

pub(crate) use dense_naive::supports as dense_naive_supports;

/// Whether the algorithms of Chen et al. can compute `problem`.
///
/// # Errors
/// [`Error::Unsupported`] when they cannot.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    crate::spgemm::any(problem)?;
    let float = matches!(problem.dtype, DType::F32 | DType::F64);
    let narrow = problem.index_type == IndexType::U32 && problem.offset_type == IndexType::U32;
    if float && narrow && !problem.transpose_a && problem.semiring == Semiring::PlusTimes {
        return Ok(());
    }
    Err(refusal(problem.to_string()))
}

/// The error for problems that the algorithms of Chen et al. do not cover.
pub(crate) fn refusal(problem: String) -> Error {
    Error::Unsupported {
        problem,
        backend: "the paper's CPU implementation".into(),
        reason: "it is kept as published: f32 or f64, u32 indices, plus-times, A as stored".into(),
        nearest: Algorithm::Gustavson.name().into(),
    }
}

/// C = α·A·B by `algorithm`.
///
/// # Errors
/// [`Error::OutOfMemory`], and [`Error::Overflow`] when the entries of C outnumber the offsets.
pub(crate) fn multiply<T: Scalar>(
    algorithm: Algorithm,
    threads: &Threads,
    a: CsrView<'_, T>,
    alpha: T::Accum,
    b: CsrView<'_, T>,
) -> Result<Csr<T>> {
    match algorithm {
        Algorithm::DenseNaive => dense_naive::multiply(a, alpha, b),
        _ => hash_rows::multiply(threads, a, alpha, b),
    }
}
