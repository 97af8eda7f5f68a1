//! From types named on the command line to types of the compiler.

use gustav::{Arith, Error, Scalar, Semiring, SemiringKind};

use crate::args::Types;
use crate::failure::{Failure, Result};

/// A semiring as values: what takes it so is compiled once for all semirings.
#[derive(Clone, Copy, Debug)]
pub struct Over<A> {
    /// Its name.
    pub kind: SemiringKind,
    /// The α that changes nothing.
    pub one: A,
    /// The β that leaves C unread.
    pub zero: A,
}

impl<A: Arith> Over<A> {
    /// The values of `S`.
    pub fn new<S: Semiring<A>>(_semiring: S) -> Self {
        Over { kind: S::KIND, one: S::one(), zero: S::zero() }
    }
}

/// `--alpha` or `--beta` as a value, or `default` when it was not given.
///
/// # Errors
/// When an integer type cannot hold the number.
pub fn factor<A: Arith>(name: &str, given: Option<f64>, default: A) -> Result<A> {
    let Some(number) = given else { return Ok(default) };
    let value = <A as Scalar>::from_f64(number);
    if A::DTYPE.is_integer() && value.to_f64() != number {
        return Err(
            Error::Value { what: name.into(), value: number.to_string(), dtype: A::DTYPE }.into()
        );
    }
    Ok(value)
}

/// Runs `$body` with `$T`, `$I` and `$O` as the types that `$types` names. Each pair of types
/// is compiled on its own, so rare ones are left out.
macro_rules! with_types {
    ($types:expr, |$T:ident, $I:ident, $O:ident| $body:expr) => {{
        use gustav::{DType, IndexType};
        macro_rules! arm {
            ($t:ty, $i:ty) => {{
                type $T = $t;
                type $I = $i;
                type $O = $i;
                $body
            }};
        }
        match ($types.dtype, $types.index) {
            (DType::F32, IndexType::U32) => arm!(f32, u32),
            (DType::F64, IndexType::U32) => arm!(f64, u32),
            (DType::F16, IndexType::U32) => arm!(gustav::f16, u32),
            (DType::Bf16, IndexType::U32) => arm!(gustav::bf16, u32),
            (DType::I32, IndexType::U32) => arm!(i32, u32),
            (DType::I64, IndexType::U32) => arm!(i64, u32),
            (DType::F32, IndexType::U64) => arm!(f32, u64),
            (DType::F64, IndexType::U64) => arm!(f64, u64),
            (DType::I64, IndexType::U64) => arm!(i64, u64),
            _ => return Err($crate::types::left_out($types, gustav::SemiringKind::PlusTimes)),
        }
    }};
}

/// As [`with_types`], with `$s` as the semiring that `$kind` names.
macro_rules! with_product {
    ($types:expr, $kind:expr, |$T:ident, $I:ident, $O:ident, $s:ident| $body:expr) => {{
        use gustav::{DType, IndexType, SemiringKind};
        macro_rules! arm {
            ($t:ty, $name:ident) => {{
                type $T = $t;
                type $I = u32;
                type $O = u32;
                let $s = gustav::$name;
                $body
            }};
        }
        macro_rules! over {
            ($name:ident) => {
                match ($types.dtype, $types.index) {
                    (DType::F32, IndexType::U32) => arm!(f32, $name),
                    (DType::F64, IndexType::U32) => arm!(f64, $name),
                    _ => return Err($crate::types::left_out($types, $kind)),
                }
            };
        }
        match $kind {
            SemiringKind::PlusTimes => {
                let $s = gustav::PlusTimes;
                $crate::types::with_types!($types, |$T, $I, $O| $body)
            }
            SemiringKind::MinPlus => over!(MinPlus),
            SemiringKind::MaxTimes => over!(MaxTimes),
            SemiringKind::OrAnd => over!(OrAnd),
            SemiringKind::PlusFirst => over!(PlusFirst),
            SemiringKind::PlusSecond => over!(PlusSecond),
        }
    }};
}

pub(crate) use {with_product, with_types};

/// What is said about a combination that the program was not compiled for.
pub fn left_out(types: &Types, semiring: SemiringKind) -> Failure {
    Failure::Library(Error::Unsupported {
        problem: format!("{semiring} over {} with {} indices", types.dtype, types.index),
        backend: "the gustav command".into(),
        reason: "it leaves out rare combinations to stay small; the library has them all".into(),
        nearest: "--dtype f32 or f64 with --index u32".into(),
    })
}
