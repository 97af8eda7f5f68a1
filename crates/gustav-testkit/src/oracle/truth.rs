//! or-and over floating-point numbers: exact.

use gustav_core::DType;

use super::expected::Expected;
use super::model::{Model, Scaling, Terms};

/// Any value other than zero is true, NaN too; the result is 1 or 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrAnd;

impl Model for OrAnd {
    type Value = f64;
    type Sum = bool;

    fn empty(&self) -> bool {
        false
    }

    fn push(&self, sum: &mut bool, a: f64, b: f64) {
        *sum |= a != 0.0 && b != 0.0;
    }

    fn finish(
        &self,
        _dtype: DType,
        sum: bool,
        _terms: usize,
        scaling: Scaling<f64>,
        old: Option<f64>,
        _again: Terms<'_, f64>,
    ) -> Expected {
        let old = old.zip(scaling.beta).is_some_and(|(c, beta)| c != 0.0 && beta != 0.0);
        Expected::exact(f64::from(u8::from((sum && scaling.alpha != 0.0) || old)))
    }
}
