//! What an element must be, and how far a found value is from it.

use gustav_core::DType;

use super::limits::Limits;
use super::operand::Value;

/// The reference value of one element.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected {
    /// Exactly this integer.
    Integer(i64),
    /// This value (which may be NaN or infinite), give or take `bound`.
    Real { value: f64, bound: f64, overflow: Overflow },
}

/// Which non-finite results an overflow on the way may leave in place of a finite one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Overflow {
    /// None: nothing on the way can overflow.
    Impossible,
    /// Infinity with the sign of the value: every term has that sign.
    Signed,
    /// Either infinity or NaN, depending on the order of summation.
    Any,
}

/// How a found value compares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judgement {
    pub error: f64,
    pub bound: f64,
}

impl Judgement {
    const RIGHT: Judgement = Judgement { error: 0.0, bound: 0.0 };
    const WRONG: Judgement = Judgement { error: f64::INFINITY, bound: 0.0 };

    /// Error over bound: at most 1 when right.
    pub fn ratio(&self) -> f64 {
        // An infinite bound holds any error, also one that is infinite itself.
        if self.error == 0.0 || self.bound == f64::INFINITY {
            return 0.0;
        }
        self.error / self.bound
    }
}

impl Expected {
    /// A value known to the last bit.
    pub fn exact(value: f64) -> Self {
        Expected::Real { value, bound: 0.0, overflow: Overflow::Impossible }
    }

    /// A value of the type of sums with its bound, stored as `dtype`.
    pub fn stored(dtype: DType, value: f64, bound: f64, overflow: Overflow) -> Self {
        let mut bound = bound;
        let rounded = matches!(dtype, DType::F16 | DType::Bf16);
        if rounded && value.is_finite() && value != 0.0 {
            let limits = Limits::of(dtype);
            bound += limits.unit * (value.abs() + bound) + limits.tiny;
        }
        Expected::Real { value, bound, overflow }
    }

    /// The value for reports.
    pub fn value(&self) -> f64 {
        match *self {
            Expected::Integer(value) => value as f64,
            Expected::Real { value, .. } => value,
        }
    }

    /// Compares a value that was found in a result of type `dtype`.
    pub fn judge(&self, dtype: DType, found: impl Value) -> Judgement {
        match *self {
            Expected::Integer(value) => {
                let error = (i128::from(found.to_i64()) - i128::from(value)).unsigned_abs() as f64;
                Judgement { error, bound: 0.0 }
            }
            Expected::Real { value, bound, overflow } => {
                judge_real(value, bound, overflow, found.to_f64(), Limits::of(dtype).overflow)
            }
        }
    }
}

fn judge_real(value: f64, bound: f64, overflow: Overflow, found: f64, limit: f64) -> Judgement {
    if value.is_nan() || found.is_nan() {
        let right = found.is_nan() && (value.is_nan() || overflow == Overflow::Any);
        return if right { Judgement::RIGHT } else { Judgement::WRONG };
    }
    if found.is_infinite() {
        let sign = found.signum();
        let right = match overflow {
            Overflow::Any => true,
            Overflow::Signed => value.signum() == sign,
            Overflow::Impossible => sign * value + bound >= limit,
        };
        return if right { Judgement::RIGHT } else { Judgement::WRONG };
    }
    Judgement { error: (found - value).abs(), bound }
}
