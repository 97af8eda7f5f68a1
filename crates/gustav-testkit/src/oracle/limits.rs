//! The numbers that describe a floating-point type.

use gustav_core::{DType, Scalar};

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
    /// The numbers of `T`; of f64 for an integer type, which has no use for them.
    pub fn of<T: Scalar>() -> Self {
        let (max, tiny) = match T::DTYPE {
            DType::F16 => (f64::from(gustav_core::f16::MAX), 2f64.powi(-24)),
            DType::Bf16 => (f64::from(gustav_core::bf16::MAX), 2f64.powi(-133)),
            DType::F32 => (f64::from(f32::MAX), 2f64.powi(-149)),
            DType::F64 | DType::I32 | DType::I64 => (f64::MAX, f64::from_bits(1)),
        };
        Limits { unit: T::UNIT_ROUNDOFF, tiny, overflow: max * (1.0 + T::UNIT_ROUNDOFF / 2.0) }
    }

    /// `value` with what is out of range made infinite.
    pub fn clip(&self, value: f64) -> f64 {
        if value.abs() >= self.overflow { value.signum() * f64::INFINITY } else { value }
    }
}
