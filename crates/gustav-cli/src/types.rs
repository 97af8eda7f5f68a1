//! Dispatch from type names on the command line to Rust types.

use std::str::FromStr;

use gustav::{Arith, DType, Error};

use crate::failure::Result;

/// A number as text; it is converted once the type of the product is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor(String);

impl FromStr for Factor {
    type Err = &'static str;
    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        match text.parse::<f64>() {
            Ok(_) => Ok(Factor(text.into())),
            Err(_) => Err("not a number"),
        }
    }
}

impl Factor {
    /// The number in `A`, rounded once; `None` if an integer type cannot hold it or a finite number
    /// would become infinite.
    fn held<A: Arith>(&self) -> Option<A> {
        let text = self.0.as_str();
        let wide = text.parse::<f64>().ok()?;
        if A::DTYPE.is_integer() {
            // From 2^53 on, an f64 may stand for another integer than the text.
            let short = wide.fract() == 0.0 && wide.abs() < (1u64 << 53) as f64;
            let integer = text.parse::<i64>().ok().or(short.then_some(wide as i64))?;
            let value = A::from_i64(integer);
            return (value.to_i64() == integer).then_some(value);
        }
        let value = match A::DTYPE {
            DType::F32 => A::from_f64(text.parse::<f32>().ok()?.into()),
            _ => A::from_f64(wide),
        };
        let infinity = text.contains(['n', 'N']);
        (infinity || value.to_f64().is_finite()).then_some(value)
    }
}

/// `--alpha` or `--beta` as a value, or `default` when it was not given.
///
/// # Errors
/// When the type cannot hold the number.
pub fn factor<A: Arith>(name: &str, given: Option<&Factor>, default: A) -> Result<A> {
    let Some(factor) = given else { return Ok(default) };
    factor.held().ok_or_else(|| {
        let (what, value) = (name.into(), factor.0.clone());
        Error::Value { what, value, dtype: A::DTYPE }.into()
    })
}

/// Runs `$body` with `$T`, `$I` and `$O` as the types named by `$types`.
macro_rules! with_types {
    ($types:expr, |$T:ident, $I:ident, $O:ident| $body:expr) => {{
        macro_rules! arm {
            ($t:ty) => {
                match $types.index {
                    gustav::IndexType::U32 => arm!($t, u32),
                    gustav::IndexType::U64 => arm!($t, u64),
                }
            };
            ($t:ty, $i:ty) => {{
                type $T = $t;
                type $I = $i;
                type $O = $i;
                $body
            }};
        }
        match $types.dtype {
            gustav::DType::F16 => arm!(gustav::f16),
            gustav::DType::Bf16 => arm!(gustav::bf16),
            gustav::DType::F32 => arm!(f32),
            gustav::DType::F64 => arm!(f64),
            gustav::DType::I32 => arm!(i32),
            gustav::DType::I64 => arm!(i64),
        }
    }};
}

pub(crate) use with_types;

#[cfg(test)]
mod tests {
    use super::*;

    fn held<A: Arith>(text: &str) -> Option<A> {
        text.parse::<Factor>().expect("a number").held()
    }

    #[test]
    fn factors_are_exact_integers_or_rounded_once() {
        assert_eq!(held::<i64>("9007199254740993"), Some(9_007_199_254_740_993));
        assert_eq!(held::<i64>("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(held::<i64>("9223372036854775808"), None);
        assert_eq!((held::<i64>("2.0"), held::<i32>("1e3")), (Some(2), Some(1000)));
        assert_eq!((held::<i64>("0.5"), held::<i32>("2147483648")), (None, None));
        // Between two f32 midpoints: through f64 it would be rounded twice.
        assert_eq!(held::<f32>("1.00000017881393432617187499"), Some(1.000_000_1));
        assert_eq!(held::<f64>("0.1"), Some(0.1));
    }

    #[test]
    fn finite_factors_never_become_infinite() {
        for text in ["1e39", "-1e300", "1e400"] {
            assert_eq!(held::<f32>(text), None, "{text}");
        }
        assert_eq!((held::<f64>("1e400"), held::<f64>("1e300")), (None, Some(1e300)));
        assert_eq!(held::<f32>("-inf"), Some(f32::NEG_INFINITY));
        assert!(held::<f32>("NaN").is_some_and(f32::is_nan));
        assert!("x".parse::<Factor>().is_err());
    }
}
