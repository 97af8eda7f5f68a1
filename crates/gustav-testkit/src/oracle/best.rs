//! min-plus and max-times over floating-point numbers.
//!
//! Rounding is monotone, so the best of rounded terms is the best term rounded: the error is
//! that of one term and of its scaling, however many terms there are.

use gustav_core::Scalar;

use super::expected::{Expected, Overflow};
use super::limits::Limits;
use super::model::{Model, Scaling, Terms};

/// ⊕ is min, ⊗ and scaling are +.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinPlus;

/// ⊕ is max, ⊗ and scaling are ×.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaxTimes;

/// A value and how far off a kernel's may be.
#[derive(Clone, Copy)]
struct Rounded {
    value: f64,
    error: f64,
}

impl Rounded {
    /// One operation's result with the error it inherits.
    fn new(value: f64, inherited: f64, limits: &Limits) -> Self {
        let value = limits.clip(value);
        let unit = limits.unit + f64::EPSILON;
        let error = if value.is_finite() {
            inherited + unit * (value.abs() + inherited) + limits.tiny
        } else {
            0.0
        };
        Rounded { value, error }
    }
}

/// NaN if either is, otherwise `a` where `better(a, b)`, else `b`.
fn choose(a: f64, b: f64, better: impl Fn(f64, f64) -> bool) -> f64 {
    if a.is_nan() || better(a, b) { a } else { b }
}

fn combine<T: Scalar>(
    scaled: Rounded,
    old: Option<Rounded>,
    better: impl Fn(f64, f64) -> bool,
) -> Expected {
    let best = match old {
        None => scaled,
        Some(old) => Rounded {
            value: choose(scaled.value, old.value, better),
            error: scaled.error.max(old.error),
        },
    };
    Expected::stored::<T>(best.value, best.error, Overflow::Impossible)
}

impl Model for MinPlus {
    type Value = f64;
    type Sum = f64;

    fn read<T: Scalar>(value: T) -> f64 {
        value.to_f64()
    }

    fn empty(&self) -> f64 {
        f64::INFINITY
    }

    fn push(&self, sum: &mut f64, a: f64, b: f64) {
        *sum = choose(a + b, *sum, |x, y| x < y);
    }

    fn finish<T: Scalar>(
        &self,
        sum: f64,
        _terms: usize,
        scaling: Scaling<f64>,
        old: Option<f64>,
        _again: Terms<'_, f64>,
    ) -> Expected {
        let limits = Limits::of::<T::Accum>();
        let best = Rounded::new(sum, 0.0, &limits);
        let scaled = Rounded::new(scaling.alpha + best.value, best.error, &limits);
        let old = old.zip(scaling.beta).map(|(c, beta)| Rounded::new(beta + c, 0.0, &limits));
        combine::<T>(scaled, old, |x, y| x < y)
    }
}

impl Model for MaxTimes {
    type Value = f64;
    type Sum = f64;

    fn read<T: Scalar>(value: T) -> f64 {
        value.to_f64()
    }

    fn empty(&self) -> f64 {
        f64::NEG_INFINITY
    }

    fn push(&self, sum: &mut f64, a: f64, b: f64) {
        *sum = choose(a * b, *sum, |x, y| x > y);
    }

    fn finish<T: Scalar>(
        &self,
        sum: f64,
        _terms: usize,
        scaling: Scaling<f64>,
        old: Option<f64>,
        _again: Terms<'_, f64>,
    ) -> Expected {
        let limits = Limits::of::<T::Accum>();
        // An empty maximum stays empty, whatever the sign of the factor.
        let scale = |factor: f64, x: f64| if x == f64::NEG_INFINITY { x } else { factor * x };
        let best = Rounded::new(sum, 0.0, &limits);
        let error = best.error * scaling.alpha.abs();
        let scaled = Rounded::new(scale(scaling.alpha, best.value), error, &limits);
        let old = old.zip(scaling.beta).map(|(c, b)| Rounded::new(scale(b, c), 0.0, &limits));
        combine::<T>(scaled, old, |x, y| x > y)
    }
}
