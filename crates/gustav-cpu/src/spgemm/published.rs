//! What the algorithms of Chen et al. take, the types and the product of the paper, and the way
//! there from code that is generic over more: they are compiled for these types only.

use std::any::Any;

use bytemuck::cast_slice;
use gustav_core::{
    Csr, CsrView, DType, Error, Index, IndexType, Problem, Result, Scalar, Semiring, SemiringKind,
};
use gustav_plan::Algorithm;

use super::{any, dense_naive, hash_rows};
use crate::Threads;

pub(super) fn supports(problem: &Problem) -> Result<()> {
    any(problem)?;
    let float = matches!(problem.dtype, DType::F32 | DType::F64);
    let narrow = problem.index_type == IndexType::U32 && problem.offset_type == IndexType::U32;
    if float && narrow && !problem.transpose_a && problem.semiring == SemiringKind::PlusTimes {
        return Ok(());
    }
    Err(refusal(problem.to_string()))
}

fn refusal(problem: String) -> Error {
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
/// [`Error::Unsupported`] for another semiring or other types than the paper's, and those of the
/// algorithm.
pub(super) fn multiply<S: Semiring<T::Accum>, U: Scalar, T: Scalar, I: Index, O: Index>(
    algorithm: Algorithm,
    threads: &Threads,
    a: CsrView<'_, T, I, O>,
    alpha: T::Accum,
    b: CsrView<'_, T, I, O>,
) -> Result<Csr<U, I, O>> {
    let narrow = I::TYPE == IndexType::U32 && O::TYPE == IndexType::U32;
    let plus_times = S::KIND == SemiringKind::PlusTimes;
    let c: Box<dyn Any> = match T::DTYPE {
        DType::F32 if narrow && plus_times => {
            Box::new(f32(algorithm, threads, same(a), bytemuck::cast(alpha), same(b))?)
        }
        DType::F64 if narrow && plus_times => {
            Box::new(f64(algorithm, threads, same(a), bytemuck::cast(alpha), same(b))?)
        }
        _ => Box::new(()),
    };
    let other = || refusal(format!("{} over {} with {} indices", S::KIND, T::DTYPE, I::TYPE));
    c.downcast().map(|c| *c).map_err(|_| other())
}

macro_rules! compiled {
    ($($t:ident),*) => {$(
        fn $t(
            algorithm: Algorithm,
            threads: &Threads,
            a: CsrView<'_, $t>,
            alpha: $t,
            b: CsrView<'_, $t>,
        ) -> Result<Csr<$t>> {
            match algorithm {
                Algorithm::DenseNaive => dense_naive::multiply(a, alpha, b),
                _ => hash_rows::multiply(threads, a, alpha, b),
            }
        }
    )*};
}

compiled!(f32, f64);

/// `a` under the names of the types that it has.
fn same<'a, T: Scalar, I: Index, O: Index, E: Scalar>(a: CsrView<'a, T, I, O>) -> CsrView<'a, E> {
    let (offsets, indices) = (cast_slice(a.offsets()), cast_slice(a.indices()));
    // SAFETY: the arrays of a valid matrix; the caller compared the types.
    unsafe {
        CsrView::new_unchecked(a.nrows(), a.ncols(), offsets, indices, cast_slice(a.values()))
    }
}
