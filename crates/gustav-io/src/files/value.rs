//! Conversion of numbers in files to scalars: integers exactly or not at all, reals rounded to
//! nearest.

use gustav_core::{DType, Scalar};

/// Why a token is not a value of the matrix.
pub(crate) enum Bad {
    /// Not a number of the field.
    Syntax,
    /// A number that the scalar type cannot hold.
    Range,
}

/// The integer as a scalar, when the scalar type holds it exactly.
#[inline(always)]
pub(crate) fn exact<T: Scalar>(value: i64) -> Option<T> {
    let scalar = T::from_i64(value);
    let same = match T::DTYPE {
        DType::I32 | DType::I64 => scalar.to_i64() == value,
        DType::F64 if value.unsigned_abs() <= 1 << 53 => true,
        DType::F32 if value.unsigned_abs() <= 1 << 24 => true,
        _ => scalar.to_f64() as i128 == i128::from(value),
    };
    same.then_some(scalar)
}

fn exact_wide<T: Scalar>(value: i128) -> Option<T> {
    match i64::try_from(value) {
        Ok(narrow) => exact(narrow),
        Err(_) if T::DTYPE.is_integer() => None,
        // Beyond 2^127 a cast back would saturate, so the comparison would be meaningless.
        Err(_) => {
            let scalar = T::from_f64(value as f64);
            let back = scalar.to_f64();
            (back.abs() < 1e38 && back as i128 == value && value as f64 as i128 == value)
                .then_some(scalar)
        }
    }
}

/// The nearest scalar; `None` when a finite number would become infinite, and for integer
/// types when the number is not an integer within range.
#[inline(always)]
pub(crate) fn nearest<T: Scalar>(value: f64) -> Option<T> {
    if T::DTYPE.is_integer() {
        let integral = value.fract() == 0.0 && value.abs() < 9.3e18;
        return if integral { exact_wide(value as i128) } else { None };
    }
    let scalar = T::from_f64(value);
    if T::DTYPE != DType::F64 && value.is_finite() && !scalar.to_f64().is_finite() {
        return None;
    }
    Some(scalar)
}

/// As [`nearest`] for a number that was itself rounded from decimal text: `None` also when
/// rounding twice could differ from rounding once.
#[inline(always)]
pub(crate) fn nearest_of_decimal<T: Scalar>(value: f64) -> Option<T> {
    match T::DTYPE {
        DType::F64 => Some(T::from_f64(value)),
        DType::F32 => {
            const MIDPOINT: u64 = 1 << 28;
            let on_midpoint = value.to_bits() & ((1 << 29) - 1) == MIDPOINT;
            let normal = value == 0.0 || value.abs() >= f64::from(f32::MIN_POSITIVE);
            if on_midpoint || !normal { None } else { nearest(value) }
        }
        // Near and above 2^53 the f64 may be another integer than the text.
        DType::I32 | DType::I64 if value.abs() >= 9e15 => None,
        _ => nearest(value),
    }
}

/// An integer written in full.
pub(crate) fn integer<T: Scalar>(token: &[u8]) -> Result<T, Bad> {
    // A copy: a mapped file could change after the check for UTF-8.
    let text = String::from_utf8(token.to_vec()).map_err(|_| Bad::Syntax)?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(&text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Bad::Syntax);
    }
    let value = text.parse::<i128>().map_err(|_| Bad::Range)?;
    exact_wide(value).ok_or(Bad::Range)
}

/// A decimal number, `nan`, `inf` or `infinity`, in any case and with any sign.
pub(crate) fn real<T: Scalar>(token: &[u8]) -> Result<T, Bad> {
    // A copy: the parser relies on text that does not change, and a mapped file may.
    let token = &token.to_vec()[..];
    if T::DTYPE.is_integer()
        && let Ok(value) = integer(token)
    {
        return Ok(value);
    }
    let unsigned = match token {
        [b'+', b'+' | b'-', ..] => return Err(Bad::Syntax),
        [b'+', rest @ ..] => rest,
        _ => token,
    };
    let wide = fast_float2::parse::<f64, _>(unsigned).map_err(|_| Bad::Syntax)?;
    let named_infinity = token.iter().any(|b| b | 0x20 == b'n');
    if wide.is_infinite() && !named_infinity {
        return Err(Bad::Range);
    }
    if T::DTYPE == DType::F32 {
        // Directly to f32: by way of f64 the value would be rounded twice.
        let value = fast_float2::parse::<f32, _>(unsigned).map_err(|_| Bad::Syntax)?;
        return if value.is_infinite() && wide.is_finite() {
            Err(Bad::Range)
        } else {
            Ok(T::from_f64(f64::from(value)))
        };
    }
    nearest(wide).ok_or(Bad::Range)
}

/// The value with the other sign; `None` for the smallest integer.
#[inline(always)]
pub(crate) fn negated<T: Scalar>(value: T) -> Option<T> {
    if T::DTYPE.is_integer() {
        exact(value.to_i64().checked_neg()?)
    } else {
        Some(T::from_f64(-value.to_f64()))
    }
}
