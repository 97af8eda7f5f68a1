//! The softmax of a row of scores, and how far off a kernel's may be.
//!
//! u is the unit roundoff of sums, n the number of scores sⱼ of the row, M their maximum, pⱼ the
//! softmax. A kernel's weight wⱼ(1 + δⱼ) = exp(sⱼ − m)(1 + δⱼ) has |δⱼ| ≤ exp(ηⱼ) − 1 with
//!
//! ηⱼ = eⱼ + 3u(M − sⱼ) + EXPONENTIAL·n·u:
//!
//! eⱼ is the error of its score; 3u that of its exponent (the subtraction, and log₂e with its
//! product where exponentials are powers of two); the last term that of exponentials, one for
//! itself and one for every time that the maximum grows afterwards, n − 1 times at most, the
//! exponents of which add up to M − sⱼ. The maximum m divides out, whatever it is.
//!
//! Sums of n terms, each multiplied again whenever the maximum grows, have relative errors θ =
//! (2n + 2)u a term. With D = Σ(pⱼ|δⱼ| + θ pⱼ(1 + |δⱼ|)), what the sum of weights may be off, a mean of
//! values vⱼ is off by
//!
//! Σ(pⱼ|δⱼ||vⱼ − mean| + θ pⱼ(1 + |δⱼ|)(|vⱼ| + |mean|)) / (1 − D),
//!
//! because Σ pⱼ(vⱼ − mean) = 0; and whatever the weights are, it lies between the smallest and the
//! largest vⱼ.

use gustav_core::DType;

use super::expected::{Expected, Overflow};
use super::limits::Limits;

/// Error of an exponential or a logarithm in u: two units in the last place, as CUDA's `exp2f` has;
/// those of C libraries are closer.
pub(super) const EXPONENTIAL: f64 = 4.0;

/// How the sums of a type round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounding {
    /// Unit roundoff of sums, and of the reference.
    pub unit: f64,
    /// What underflow can lose.
    pub tiny: f64,
    /// Sums of magnitudes below do not overflow in any order.
    pub safe: f64,
}

impl Rounding {
    pub fn of_sums(dtype: DType) -> Self {
        let Limits { unit, tiny, overflow } = Limits::of_sums(dtype);
        Rounding { unit: unit + f64::EPSILON / 2.0, tiny, safe: 0.99 * overflow }
    }

    /// The inner product of two rows.
    pub fn inner(&self, x: &[f64], y: &[f64]) -> Inner {
        let mut inner = Inner { value: 0.0, magnitude: 0.0, finite: 0.0 };
        for (x, y) in x.iter().zip(y) {
            let term = x * y;
            inner.value += term;
            inner.magnitude += term.abs();
            if x.is_finite() && y.is_finite() {
                inner.finite += term.abs();
            }
        }
        inner
    }

    /// Whether sums of finite terms of this magnitude may overflow.
    pub fn overflows(&self, magnitude: f64) -> bool {
        // NaN is no magnitude of finite terms.
        magnitude >= self.safe
    }
}

/// Σ x y, Σ |x y|, and Σ |x y| over the terms of finite operands.
#[derive(Clone, Copy)]
pub(super) struct Inner {
    pub value: f64,
    pub magnitude: f64,
    pub finite: f64,
}

/// A score, and how far off a kernel's may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Score {
    pub value: f64,
    pub error: f64,
    /// Whether it overflows in one order of summation and not in another.
    pub unsure: bool,
}

impl Score {
    pub fn exact(value: f64) -> Self {
        Score { value, error: 0.0, unsure: false }
    }
}

/// What becomes of a row.
pub(super) enum Row {
    /// There is no score but −∞: zeros.
    Zeros,
    /// A score is NaN or +∞: NaN.
    Nan,
    /// A score may overflow or not: nothing is known.
    Unsure,
    /// The softmax.
    Softmax(Softmax),
}

/// The softmax of a row.
pub(super) struct Softmax {
    /// pⱼ.
    pub weights: Vec<f64>,
    /// pⱼ|δⱼ|.
    pub slack: Vec<f64>,
    /// The logarithm of the sum of exponentials, and how far off it may be.
    pub lse: (f64, f64),
    /// D.
    pub off: f64,
    /// θ.
    theta: f64,
    rounding: Rounding,
}

impl Row {
    pub fn new(scores: &[Score], rounding: Rounding) -> Row {
        if scores.iter().any(|s| s.unsure) {
            return Row::Unsure;
        }
        if scores.iter().any(|s| s.value.is_nan() || s.value == f64::INFINITY) {
            return Row::Nan;
        }
        let largest = scores.iter().fold(f64::NEG_INFINITY, |m, s| m.max(s.value));
        if largest == f64::NEG_INFINITY {
            return Row::Zeros;
        }
        Row::Softmax(Softmax::new(scores, largest, rounding))
    }
}

impl Softmax {
    fn new(scores: &[Score], largest: f64, rounding: Rounding) -> Self {
        let (unit, n) = (rounding.unit, scores.len() as f64);
        let total: f64 = scores.iter().map(|s| (s.value - largest).exp()).sum();
        let of = |s: &Score| (s.value - largest).exp() / total;
        let weights: Vec<f64> = scores.iter().map(of).collect();
        let eta = |s: &Score| s.error + 3.0 * unit * (largest - s.value) + EXPONENTIAL * n * unit;
        let slack = |(s, p): (&Score, &f64)| match s.value - largest == f64::NEG_INFINITY {
            true => 0.0,
            // In one exponential: that of the exponent alone may be infinite.
            false => ((s.value - largest + eta(s)).exp() / total - p).max(p * eta(s).exp_m1()),
        };
        let slack: Vec<f64> = scores.iter().zip(&weights).map(slack).collect();
        let theta = (2.0 * n + 2.0) * unit;
        let spread: f64 = slack.iter().sum();
        let off = spread + theta * (1.0 + spread) + n * rounding.tiny;
        let finite = scores.iter().filter(|s| s.value > f64::NEG_INFINITY);
        let most = finite.map(eta).fold(0.0, f64::max) + 2.0 * theta;
        let of_sum = if off < 0.5 { most.min(-(-off).ln_1p()) } else { most };
        let logarithm = total.ln();
        let parts = largest.abs() + logarithm + 2.0 * of_sum;
        let lse = (largest + logarithm, of_sum + EXPONENTIAL * unit * parts);
        Softmax { weights, slack, lse, off, theta, rounding }
    }

    /// Σ pⱼ vⱼ, divided and stored as `dtype`.
    pub fn mean(&self, values: impl Iterator<Item = f64> + Clone, dtype: DType) -> Expected {
        let Softmax { weights, slack, off, theta, rounding, .. } = self;
        let (mut mean, mut sum, mut largest, mut smallest) = (0.0, 0.0, f64::MIN, f64::MAX);
        for (p, v) in weights.iter().zip(values.clone()) {
            mean += p * v;
            sum += v.abs();
            largest = v.max(largest);
            smallest = v.min(smallest);
        }
        if mean.is_nan() {
            return Expected::exact(f64::NAN);
        }
        if mean.is_infinite() {
            return Expected::Real { value: mean, bound: 0.0, overflow: Overflow::Any };
        }
        let mut error = 0.0;
        for ((p, slack), v) in weights.iter().zip(slack).zip(values) {
            error += slack * (v - mean).abs() + theta * (p + slack) * (v.abs() + mean.abs());
        }
        let n = weights.len() as f64;
        let underflow = rounding.tiny * (3.0 * n + sum);
        let error = if *off < 1.0 { (error + underflow) / (1.0 - off) } else { f64::INFINITY };
        let hull = largest - smallest + 4.0 * theta * largest.abs().max(smallest.abs()) + underflow;
        let bound = if *theta < 0.25 { error.min(hull) } else { error };
        // The division and the product with it.
        let bound = bound + 3.0 * rounding.unit * (mean.abs() + bound) + rounding.tiny;
        let overflows = rounding.overflows(sum);
        let overflow = if overflows { Overflow::Any } else { Overflow::Impossible };
        Expected::stored(dtype, mean, bound, overflow)
    }
}

/// An element of which nothing is known.
pub(super) const UNKNOWN: Expected =
    Expected::Real { value: 0.0, bound: f64::INFINITY, overflow: Overflow::Any };
