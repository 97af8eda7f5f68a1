//! Every semiring over i32 and i64: exact, wrapping where the types wrap.

use gustav_core::{DType, Semiring};

use super::expected::Expected;
use super::model::{Model, Scaling, Terms};

/// Sums in i128, brought back to the width of the type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integer {
    kind: Semiring,
    bits: u32,
}

impl Integer {
    /// The model of `kind` over `dtype`.
    pub fn new(kind: Semiring, dtype: DType) -> Self {
        Integer { kind, bits: 8 * dtype.bytes() as u32 }
    }

    fn max(&self) -> i128 {
        (1 << (self.bits - 1)) - 1
    }

    fn min(&self) -> i128 {
        -(1 << (self.bits - 1))
    }

    /// The value that the type holds after wrapping around.
    fn wrap(&self, value: i128) -> i128 {
        let unused = 128 - self.bits;
        (value << unused) >> unused
    }

    /// Sum in which the largest value is infinity.
    fn plus_saturating(&self, a: i128, b: i128) -> i128 {
        if a == self.max() || b == self.max() {
            self.max()
        } else {
            (a + b).clamp(self.min(), self.max())
        }
    }

    fn add(&self, a: i128, b: i128) -> i128 {
        match self.kind {
            Semiring::MinPlus => a.min(b),
            Semiring::MaxTimes => a.max(b),
            Semiring::OrAnd => i128::from(a != 0 || b != 0),
            _ => self.wrap(a + b),
        }
    }

    fn scale(&self, factor: i128, sum: i128) -> i128 {
        match self.kind {
            Semiring::MinPlus => self.plus_saturating(factor, sum),
            Semiring::MaxTimes if sum == self.min() => sum,
            Semiring::OrAnd => i128::from(factor != 0 && sum != 0),
            _ => self.wrap(factor * sum),
        }
    }
}

impl Model for Integer {
    type Value = i64;
    type Sum = i128;

    fn empty(&self) -> i128 {
        match self.kind {
            Semiring::MinPlus => self.max(),
            Semiring::MaxTimes => self.min(),
            _ => 0,
        }
    }

    fn push(&self, sum: &mut i128, a: i64, b: i64) {
        let (a, b) = (i128::from(a), i128::from(b));
        let term = match self.kind {
            Semiring::PlusTimes | Semiring::MaxTimes => self.wrap(a * b),
            Semiring::MinPlus => self.plus_saturating(a, b),
            Semiring::OrAnd => i128::from(a != 0 && b != 0),
            Semiring::PlusFirst => a,
            Semiring::PlusSecond => b,
        };
        *sum = self.add(*sum, term);
    }

    fn finish(
        &self,
        _dtype: DType,
        sum: i128,
        _terms: usize,
        scaling: Scaling<i64>,
        old: Option<i64>,
        _again: Terms<'_, i64>,
    ) -> Expected {
        let factor =
            scaling.factor.map_or(scaling.alpha, |factor| scaling.alpha.wrapping_mul(factor));
        let mut value = self.scale(i128::from(factor), sum);
        if let Some((c, beta)) = old.zip(scaling.beta) {
            value = self.add(value, self.scale(i128::from(beta), i128::from(c)));
        }
        Expected::Integer(value as i64)
    }
}
