//! Scalars: the types of stored values and of their sums.

use std::fmt::{Debug, Display};

use half::{bf16, f16};

/// Name of a scalar type at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// IEEE half precision storage, f32 sums.
    F16,
    /// bfloat16 storage, f32 sums.
    Bf16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// 32-bit signed integer; sums wrap.
    I32,
    /// 64-bit signed integer; sums wrap.
    I64,
}

impl DType {
    /// Bytes of one stored value.
    pub const fn bytes(self) -> usize {
        match self {
            DType::F16 | DType::Bf16 => 2,
            DType::F32 | DType::I32 => 4,
            DType::F64 | DType::I64 => 8,
        }
    }

    /// Whether the type is an integer.
    pub const fn is_integer(self) -> bool {
        matches!(self, DType::I32 | DType::I64)
    }

    /// The name used on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::I32 => "i32",
            DType::I64 => "i64",
        }
    }
}

impl Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    /// Sealed: kernels of every backend are compiled for these types and rely on their constants.
    pub trait Sealed {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
}

/// A stored value: `f32`, `f64`, `f16`, `bf16`, `i32` or `i64`. The set is closed.
pub trait Scalar:
    sealed::Sealed
    + Copy
    + PartialEq
    + PartialOrd
    + Default
    + Debug
    + Display
    + Send
    + Sync
    + bytemuck::Pod
    + 'static
{
    /// The type of sums: `f32` for the 16-bit types, otherwise the type itself.
    type Accum: Arith;
    /// The type's name at run time.
    const DTYPE: DType;
    /// Half the distance from 1 to the next value (0 for integers): the rounding of one store.
    const UNIT_ROUNDOFF: f64;

    /// Widens to the type of sums.
    fn to_accum(self) -> Self::Accum;
    /// Rounds a sum to the stored type.
    fn from_accum(sum: Self::Accum) -> Self;
    /// The value as `f64`; exact for all but `i64` past 2^53.
    fn to_f64(self) -> f64;
    /// The nearest stored value (integers: truncated and saturated).
    fn from_f64(value: f64) -> Self;
    /// The value as an integer, for exact checks: truncated for floating-point types.
    fn to_i64(self) -> i64;
    /// The nearest stored value.
    fn from_i64(value: i64) -> Self;
    /// Zero.
    fn zero() -> Self {
        Self::from_i64(0)
    }
    /// One.
    fn one() -> Self {
        Self::from_i64(1)
    }
    /// Whether the value is exactly zero (of either sign).
    fn is_zero(self) -> bool {
        self == Self::zero()
    }
}

/// Arithmetic on the type of sums: `f32`, `f64`, `i32`, `i64`.
///
/// Integers wrap in `plus` and `times`; `plus_saturating` is for min-plus, where the
/// largest value stands for infinity.
pub trait Arith: Scalar<Accum = Self> {
    /// Plus infinity, or the largest integer.
    const INFINITY: Self;
    /// Minus infinity, or the smallest integer.
    const NEG_INFINITY: Self;

    /// Sum.
    fn plus(self, other: Self) -> Self;
    /// Product.
    fn times(self, other: Self) -> Self;
    /// `self * a + b`, with one rounding if the target has a fused instruction.
    fn times_plus(self, a: Self, b: Self) -> Self;
    /// Sum that keeps infinity infinite.
    fn plus_saturating(self, other: Self) -> Self;
    /// The smaller value; NaN if either is NaN.
    fn minimum(self, other: Self) -> Self;
    /// The larger value; NaN if either is NaN.
    fn maximum(self, other: Self) -> Self;
}

/// Implements [`Scalar`] for a type whose sums have the type itself.
macro_rules! own_accum {
    ($t:ty, $dtype:ident, $roundoff:expr, from_i64: |$v:ident| $from_i64:expr) => {
        impl Scalar for $t {
            type Accum = $t;
            const DTYPE: DType = DType::$dtype;
            const UNIT_ROUNDOFF: f64 = $roundoff;
            #[inline(always)]
            fn to_accum(self) -> $t {
                self
            }
            #[inline(always)]
            fn from_accum(sum: $t) -> Self {
                sum
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $t
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn from_i64($v: i64) -> Self {
                $from_i64
            }
        }
    };
}

macro_rules! float {
    ($t:ty, $dtype:ident) => {
        own_accum!($t, $dtype, <$t>::EPSILON as f64 / 2.0, from_i64: |v| v as $t);

        impl Arith for $t {
            const INFINITY: Self = <$t>::INFINITY;
            const NEG_INFINITY: Self = <$t>::NEG_INFINITY;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn times_plus(self, a: Self, b: Self) -> Self {
                // A fused operation without hardware support is a slow library call.
                if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
                    self.mul_add(a, b)
                } else {
                    self * a + b
                }
            }
            #[inline(always)]
            fn plus_saturating(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn minimum(self, other: Self) -> Self {
                if self < other || self.is_nan() { self } else { other }
            }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self {
                if self > other || self.is_nan() { self } else { other }
            }
        }
    };
}

float!(f32, F32);
float!(f64, F64);

macro_rules! half {
    ($t:ty, $dtype:ident, $roundoff:expr) => {
        impl Scalar for $t {
            type Accum = f32;
            const DTYPE: DType = DType::$dtype;
            const UNIT_ROUNDOFF: f64 = $roundoff;
            #[inline(always)]
            fn to_accum(self) -> f32 {
                self.to_f32()
            }
            #[inline(always)]
            fn from_accum(sum: f32) -> Self {
                <$t>::from_f32(sum)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                <$t>::to_f64(self)
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                <$t>::from_f64(value)
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self.to_f32() as i64
            }
            #[inline(always)]
            fn from_i64(value: i64) -> Self {
                <$t>::from_f64(value as f64)
            }
        }
    };
}

half!(f16, F16, 1.0 / 2048.0);
half!(bf16, Bf16, 1.0 / 256.0);

macro_rules! integer {
    ($t:ty, $dtype:ident) => {
        own_accum!($t, $dtype, 0.0, from_i64: |v| {
            v.clamp(<$t>::MIN as i64, <$t>::MAX as i64) as $t
        });

        impl Arith for $t {
            const INFINITY: Self = <$t>::MAX;
            const NEG_INFINITY: Self = <$t>::MIN;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn times_plus(self, a: Self, b: Self) -> Self {
                self.wrapping_mul(a).wrapping_add(b)
            }
            #[inline(always)]
            fn plus_saturating(self, other: Self) -> Self {
                if self == Self::INFINITY || other == Self::INFINITY {
                    Self::INFINITY
                } else {
                    self.saturating_add(other)
                }
            }
            #[inline(always)]
            fn minimum(self, other: Self) -> Self {
                self.min(other)
            }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self {
                self.max(other)
            }
        }
    };
}

integer!(i32, I32);
integer!(i64, I64);

/// Runs `$body` with `$T` as the type of values that `$dtype` names: for callers that know types
/// only when they run.
///
/// ```
/// use gustav_core::{DType, with_scalar};
///
/// let bytes = |dtype: DType| with_scalar!(dtype, |T| size_of::<T>());
/// assert_eq!(bytes(DType::Bf16), 2);
/// ```
#[macro_export]
macro_rules! with_scalar {
    ($dtype:expr, |$T:ident| $body:expr) => {
        match $dtype {
            $crate::DType::F16 => {
                type $T = $crate::f16;
                $body
            }
            $crate::DType::Bf16 => {
                type $T = $crate::bf16;
                $body
            }
            $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            $crate::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::DType::I64 => {
                type $T = i64;
                $body
            }
        }
    };
}
