//! plus-times, plus-first and plus-second over floating-point numbers.

use std::fmt::Debug;
use std::marker::PhantomData;

use gustav_core::DType;

use super::expected::{Expected, Overflow};
use super::limits::Limits;
use super::model::{Model, Scaling, Terms};

/// The ⊗ of a semiring whose ⊕ is +.
pub(crate) trait Product: Copy + Debug + Default + Send + Sync {
    /// a ⊗ b.
    fn of(a: f64, b: f64) -> f64;
    /// Whether a ⊗ b is infinite because an operand is, not because it overflows.
    fn infinite(a: f64, b: f64) -> bool;
}

/// a·b.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times;

impl Product for Times {
    #[inline(always)]
    fn of(a: f64, b: f64) -> f64 {
        a * b
    }
    fn infinite(a: f64, b: f64) -> bool {
        a.is_infinite() || b.is_infinite()
    }
}

/// a.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct First;

impl Product for First {
    #[inline(always)]
    fn of(a: f64, _b: f64) -> f64 {
        a
    }
    fn infinite(a: f64, _b: f64) -> bool {
        a.is_infinite()
    }
}

/// b.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Second;

impl Product for Second {
    #[inline(always)]
    fn of(_a: f64, b: f64) -> f64 {
        b
    }
    fn infinite(_a: f64, b: f64) -> bool {
        b.is_infinite()
    }
}

/// The sum of products `P`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum<P>(PhantomData<P>);

/// Σ p and Σ |p|.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums {
    value: f64,
    magnitude: f64,
}

impl<P: Product> Model for Sum<P> {
    type Value = f64;
    type Sum = Sums;

    #[inline(always)]
    fn empty(&self) -> Sums {
        Sums { value: 0.0, magnitude: 0.0 }
    }

    #[inline(always)]
    fn push(&self, sum: &mut Sums, a: f64, b: f64) {
        let p = P::of(a, b);
        sum.value += p;
        sum.magnitude += p.abs();
    }

    fn finish(
        &self,
        dtype: DType,
        sum: Sums,
        terms: usize,
        scaling: Scaling<f64>,
        old: Option<f64>,
        again: Terms<'_, f64>,
    ) -> Expected {
        let limits = Limits::of_sums(dtype);
        let added = old.zip(scaling.beta).map(|(c, beta)| beta * c);
        let Scaling { alpha, factor, .. } = scaling;
        let scaled = Scaled { sum, terms, alpha, factor, added };
        if !scaled.may_overflow(&limits) {
            return scaled.expected(dtype, Overflow::Impossible);
        }
        let mut ends = Ends::default();
        let whole = factor.unwrap_or(1.0);
        again(&mut |a, b| ends.push(alpha * P::of(a, b) * whole, P::infinite(a, b)));
        if let Some((c, beta)) = old.zip(scaling.beta) {
            ends.push(beta * c, c.is_infinite() || beta.is_infinite());
        }
        // The finite terms alone say whether anything but the operands can overflow.
        let mut finite = self.empty();
        again(&mut |a, b| {
            if !P::infinite(a, b) {
                self.push(&mut finite, a, b);
            }
        });
        let added = added.filter(|_| old.is_some_and(f64::is_finite));
        let finite = Scaled { sum: finite, terms, alpha, factor, added };
        let overflow = match (finite.may_overflow(&limits), ends.positive && ends.negative) {
            (false, _) => Overflow::Impossible,
            (true, false) => Overflow::Signed,
            (true, true) => Overflow::Any,
        };
        match ends.infinite() {
            Some(value) => Expected::stored(dtype, value, 0.0, overflow),
            None => finite.expected(dtype, overflow),
        }
    }
}

/// α·sum·factor + added, not yet added up.
#[derive(Clone, Copy)]
struct Scaled {
    sum: Sums,
    terms: usize,
    alpha: f64,
    factor: Option<f64>,
    added: Option<f64>,
}

impl Scaled {
    /// Of α·sum, which is rounded before it is multiplied by the factor.
    fn scaled_magnitude(&self) -> f64 {
        self.alpha.abs() * self.sum.magnitude
    }

    fn magnitude(&self) -> f64 {
        let product = self.scaled_magnitude() * self.factor.map_or(1.0, f64::abs);
        product + self.added.map_or(0.0, f64::abs)
    }

    /// Whether some order of the operations can leave the range; true for NaN and infinity.
    fn may_overflow(&self, limits: &Limits) -> bool {
        let safe = 0.99 * limits.overflow;
        let steps = [self.sum.magnitude, self.scaled_magnitude(), self.magnitude()];
        !steps.iter().all(|magnitude| *magnitude < safe)
    }

    fn expected(&self, dtype: DType, overflow: Overflow) -> Expected {
        let limits = Limits::of_sums(dtype);
        let product = self.alpha * self.sum.value * self.factor.unwrap_or(1.0);
        let value = product + self.added.unwrap_or(0.0);
        // The reference rounds too, in f64.
        let unit = limits.unit + f64::EPSILON / 2.0;
        let rounding = (self.terms as f64 + 4.0) * unit * self.magnitude();
        let added = f64::from(u8::from(self.added.is_some()));
        let lost = self.terms as f64 * (1.0 + self.alpha.abs());
        let lost = self.factor.map_or(lost, |factor| lost * factor.abs() + 1.0);
        let underflow = limits.tiny * (lost + added);
        if value.is_finite() || overflow == Overflow::Impossible {
            return Expected::stored(dtype, value, rounding + underflow, overflow);
        }
        // The reference itself left f64: of a finite result only the range can be checked.
        let value = if value.is_nan() { 0.0 } else { value.signum() * f64::MAX };
        Expected::Real { value, bound: f64::INFINITY, overflow }
    }
}

/// The signs of a sum's terms, and its infinite ones.
#[derive(Default)]
struct Ends {
    nan: bool,
    positive: bool,
    negative: bool,
    positive_infinite: bool,
    negative_infinite: bool,
}

impl Ends {
    fn push(&mut self, term: f64, infinite: bool) {
        self.nan |= term.is_nan();
        self.positive |= term > 0.0;
        self.negative |= term < 0.0;
        self.positive_infinite |= infinite && term > 0.0;
        self.negative_infinite |= infinite && term < 0.0;
    }

    /// NaN or the infinity that the operands alone make of the sum.
    fn infinite(&self) -> Option<f64> {
        match (self.positive_infinite, self.negative_infinite) {
            _ if self.nan => Some(f64::NAN),
            (true, true) => Some(f64::NAN),
            (true, false) => Some(f64::INFINITY),
            (false, true) => Some(f64::NEG_INFINITY),
            (false, false) => None,
        }
    }
}
