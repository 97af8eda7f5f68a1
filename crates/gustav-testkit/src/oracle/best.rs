//! min-plus and max-times over floating-point numbers.
//!
//! Rounding is monotone, so the best of rounded terms is the best term rounded: the error is
//! that of one term and of its scaling, however many terms there are.

use gustav_core::DType;

use super::expected::{Expected, Overflow};
use super::limits::Limits;
use super::model::{Model, Scaling, Terms};

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

/// What ⊕ keeps, and what ⊗ and scaling do.
pub(crate) trait Ordered: Copy + Send + Sync {
    /// The value of an empty sum.
    const EMPTY: f64;
    /// Whether ⊕ keeps `a` rather than `b`.
    fn better(a: f64, b: f64) -> bool;
    /// ⊗.
    fn times(a: f64, b: f64) -> f64;
    /// What α and β do to a value.
    fn scale(factor: f64, x: f64) -> f64;
    /// By how much scaling enlarges an error.
    fn magnify(factor: f64) -> f64;
}

/// ⊕ is min, ⊗ and scaling are +.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinPlus;

impl Ordered for MinPlus {
    const EMPTY: f64 = f64::INFINITY;
    fn better(a: f64, b: f64) -> bool {
        a < b
    }
    fn times(a: f64, b: f64) -> f64 {
        a + b
    }
    fn scale(factor: f64, x: f64) -> f64 {
        factor + x
    }
    fn magnify(_factor: f64) -> f64 {
        1.0
    }
}

/// ⊕ is max, ⊗ and scaling are ×.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaxTimes;

impl Ordered for MaxTimes {
    const EMPTY: f64 = f64::NEG_INFINITY;
    fn better(a: f64, b: f64) -> bool {
        a > b
    }
    fn times(a: f64, b: f64) -> f64 {
        a * b
    }
    fn scale(factor: f64, x: f64) -> f64 {
        // An empty maximum stays empty, whatever the sign of the factor.
        if x == f64::NEG_INFINITY { x } else { factor * x }
    }
    fn magnify(factor: f64) -> f64 {
        factor.abs()
    }
}

/// NaN if either is, otherwise `a` where it is better, else `b`.
fn choose<K: Ordered>(a: f64, b: f64) -> f64 {
    if a.is_nan() || K::better(a, b) { a } else { b }
}

/// The model of a semiring whose ⊕ keeps the better value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Best<K>(pub K);

impl<K: Ordered> Model for Best<K> {
    type Value = f64;
    type Sum = f64;

    fn empty(&self) -> f64 {
        K::EMPTY
    }

    fn push(&self, sum: &mut f64, a: f64, b: f64) {
        *sum = choose::<K>(K::times(a, b), *sum);
    }

    fn finish(
        &self,
        dtype: DType,
        sum: f64,
        _terms: usize,
        scaling: Scaling<f64>,
        old: Option<f64>,
        _again: Terms<'_, f64>,
    ) -> Expected {
        let limits = Limits::of_sums(dtype);
        let best = Rounded::new(sum, 0.0, &limits);
        let inherited = best.error * K::magnify(scaling.alpha);
        let scaled = Rounded::new(K::scale(scaling.alpha, best.value), inherited, &limits);
        let old = old.zip(scaling.beta).map(|(c, b)| Rounded::new(K::scale(b, c), 0.0, &limits));
        let best = old.map_or(scaled, |old| Rounded {
            value: choose::<K>(scaled.value, old.value),
            error: scaled.error.max(old.error),
        });
        Expected::stored(dtype, best.value, best.error, Overflow::Impossible)
    }
}
