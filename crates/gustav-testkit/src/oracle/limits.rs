//! The numbers that describe a floating-point type.

use gustav_core::{DType, Scalar, bf16, f16};

/// Range and precision of a floating-point type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Unit roundoff.
    pub unit: f64,
    /// The smallest positive value.
    pub tiny: f64,
    /// Exact results from here on round to infinity (up to the rounding of f64).
    pub overflow: f64,
}

impl Limits {
    /// The numbers of a type; of f64 for an integer type, which has no use for them.
    pub fn of(dtype: DType) -> Self {
        let (unit, max, tiny) = match dtype {
            DType::F16 => (f16::UNIT_ROUNDOFF, f64::from(f16::MAX), 2f64.powi(-24)),
            DType::Bf16 => (bf16::UNIT_ROUNDOFF, f64::from(bf16::MAX), 2f64.powi(-133)),
            DType::F32 => (f32::UNIT_ROUNDOFF, f64::from(f32::MAX), 2f64.powi(-149)),
            DType::F64 | DType::I32 | DType::I64 => {
                (f64::UNIT_ROUNDOFF, f64::MAX, f64::from_bits(1))
            }
        };
        Limits { unit, tiny, overflow: max * (1.0 + unit / 2.0) }
    }

    /// The numbers of the type that sums of `dtype` are kept in.
    pub fn of_sums(dtype: DType) -> Self {
        Self::of(match dtype {
            DType::F16 | DType::Bf16 => DType::F32,
            other => other,
        })
    }

    /// `value` with what is out of range made infinite.
    pub fn clip(&self, value: f64) -> f64 {
        if value.abs() >= self.overflow { value.signum() * f64::INFINITY } else { value }
    }
}
