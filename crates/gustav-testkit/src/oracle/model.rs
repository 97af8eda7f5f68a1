//! How the reference accumulates one element, per semiring and kind of number.

use gustav_core::DType;

use super::expected::Expected;
use super::operand::Value;

/// α, the factor of a nonzero that α times the sum is multiplied by, and β where C is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaling<V> {
    pub alpha: V,
    pub factor: Option<V>,
    pub beta: Option<V>,
}

/// Visits the terms of one element again: calls its argument with every (a, b).
pub(crate) type Terms<'a, V> = &'a dyn Fn(&mut dyn FnMut(V, V));

/// The arithmetic of one semiring over a type wider than the kernel's.
pub(crate) trait Model: Copy + Send + Sync {
    /// Operands: f64, or i64 for the integer types.
    type Value: Value;
    /// State of one element.
    type Sum: Copy + Send + Sync;

    /// The empty sum.
    fn empty(&self) -> Self::Sum;
    /// Takes in one term.
    fn push(&self, sum: &mut Self::Sum, a: Self::Value, b: Self::Value);
    /// What `scale(α, sum) ⊕ scale(β, old)` must be when stored as `dtype`. A factor is that of
    /// plus-times.
    fn finish(
        &self,
        dtype: DType,
        sum: Self::Sum,
        terms: usize,
        scaling: Scaling<Self::Value>,
        old: Option<Self::Value>,
        again: Terms<'_, Self::Value>,
    ) -> Expected;
}

/// Binds `$model` to the model of `$semiring` over `$dtype`, and evaluates `$body`.
macro_rules! with_model {
    ($dtype:expr, $semiring:expr, $model:ident => $body:expr) => {{
        use gustav_core::Semiring as Kind;
        use $crate::oracle::{best, integer, sum, truth};
        let kind: Kind = $semiring;
        let dtype: gustav_core::DType = $dtype;
        if dtype.is_integer() {
            let $model = integer::Integer::new(kind, dtype);
            $body
        } else {
            match kind {
                Kind::PlusTimes => {
                    let $model = sum::Sum::<sum::Times>::default();
                    $body
                }
                Kind::PlusFirst => {
                    let $model = sum::Sum::<sum::First>::default();
                    $body
                }
                Kind::PlusSecond => {
                    let $model = sum::Sum::<sum::Second>::default();
                    $body
                }
                Kind::MinPlus => {
                    let $model = best::Best(best::MinPlus);
                    $body
                }
                Kind::MaxTimes => {
                    let $model = best::Best(best::MaxTimes);
                    $body
                }
                Kind::OrAnd => {
                    let $model = truth::OrAnd;
                    $body
                }
            }
        }
    }};
}
pub(crate) use with_model;
