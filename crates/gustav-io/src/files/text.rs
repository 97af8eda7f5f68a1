//! Parsing of numbers, eight bytes at a time, and positions in text for error messages.
//!
//! Digits are found and converted within one 64-bit word (SWAR), as described by D. Lemire,
//! "Number parsing at a gigabyte per second" (Software: Practice and Experience, 2021), §4.

use gustav_core::{Error, Index, Result};

// Tables are statics: indexing a constant array would copy it first.
const ZEROS: u64 = 0x3030_3030_3030_3030;
static POW10: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Powers of ten that f64 holds exactly.
static EXACT: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Powers of five that fit in a word.
static POW5: [u64; 28] = {
    let mut powers = [1; 28];
    let mut k = 1;
    while k < powers.len() {
        powers[k] = powers[k - 1] * 5;
        k += 1;
    }
    powers
};

#[inline(always)]
fn load(text: &[u8], at: usize) -> Option<u64> {
    let bytes = text.get(at..at + 8)?;
    Some(u64::from_le_bytes([
        bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
    ]))
}

/// Number of leading digits of `word` (text xored with "00000000").
#[inline(always)]
fn leading_digits(word: u64) -> usize {
    let above_nine = (word & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676;
    (((above_nine | word) & 0x8080_8080_8080_8080).trailing_zeros() / 8) as usize
}

/// The number of the first `n` > 0 digits of `word`.
#[inline(always)]
fn convert(word: u64, n: usize) -> u64 {
    const MASK: u64 = 0x0000_00ff_0000_00ff;
    let digits = word << (64 - 8 * n);
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let high = (pairs & MASK).wrapping_mul(100 + (1_000_000 << 32));
    let low = ((pairs >> 16) & MASK).wrapping_mul(1 + (10_000 << 32));
    high.wrapping_add(low) >> 32
}

/// Appends the digits at `at` to `number`, at most `8 * WORDS` of them (past 19 the number wraps);
/// returns how many there were. `None` near the end of the text and if there are more digits.
#[inline(always)]
fn digits<const WORDS: usize>(text: &[u8], at: &mut usize, number: &mut u64) -> Option<usize> {
    let mut total = 0;
    for _ in 0..WORDS {
        let word = load(text, *at)? ^ ZEROS;
        let n = leading_digits(word);
        if n > 0 {
            *number = number.wrapping_mul(POW10[n]).wrapping_add(convert(word, n));
        }
        *at += n;
        total += n;
        if n < 8 {
            return Some(total);
        }
    }
    match text.get(*at) {
        Some(b) if !b.is_ascii_digit() => Some(total),
        _ => None,
    }
}

/// An unsigned integer of at most 16 digits at `at`; `None` if there is none or if the end of the
/// text is too near.
#[inline(always)]
pub(crate) fn unsigned(text: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0;
    let n = digits::<2>(text, at, &mut number)?;
    (n > 0).then_some(number)
}

/// As [`unsigned`], with an optional minus sign.
#[inline(always)]
pub(crate) fn signed(text: &[u8], at: &mut usize) -> Option<i64> {
    let negative = text.get(*at) == Some(&b'-');
    *at += usize::from(negative);
    let magnitude = unsigned(text, at)? as i64;
    Some(if negative { -magnitude } else { magnitude })
}

/// A decimal number, correctly rounded; `None` for all cases that need the careful parser (the end
/// of the text, very long numbers, `nan`, `inf`, overflow, other text).
#[inline(always)]
pub(crate) fn real(text: &[u8], at: &mut usize) -> Option<f64> {
    let start = *at;
    let negative = text.get(start) == Some(&b'-');
    *at += usize::from(negative);
    let mut mantissa = 0;
    let whole = digits::<3>(text, at, &mut mantissa)?;
    let mut fraction = 0;
    if text.get(*at) == Some(&b'.') {
        *at += 1;
        fraction = digits::<3>(text, at, &mut mantissa)?;
    }
    if whole + fraction == 0 {
        return None;
    }
    let mut exponent = -(fraction as i64);
    if text.get(*at).is_some_and(|b| b | 0x20 == b'e') {
        *at += 1;
        let minus = text.get(*at) == Some(&b'-');
        *at += usize::from(minus || text.get(*at) == Some(&b'+'));
        let mut power = 0;
        let n = digits::<1>(text, at, &mut power)?;
        if n == 0 || n > 4 {
            return None;
        }
        exponent += if minus { -(power as i64) } else { power as i64 };
    }
    if whole + fraction <= 19
        && let Some(magnitude) = scaled(mantissa, exponent)
    {
        return Some(if negative { -magnitude } else { magnitude });
    }
    // A copy: the parser relies on text that does not change, and a mapped file may. Sign, digits,
    // point and exponent as parsed above take 59 bytes at most.
    let mut token = [0; 64];
    let token = token.get_mut(..*at - start)?;
    token.copy_from_slice(&text[start..*at]);
    fast_float2::parse::<f64, _>(token).ok().filter(|v| v.is_finite())
}

/// `mantissa` × 10^`exponent`, correctly rounded; `None` for large exponents.
#[inline(always)]
fn scaled(mantissa: u64, exponent: i64) -> Option<f64> {
    let power = exponent.unsigned_abs() as usize;
    // Clinger's fast path: both operands are exact, so there is only one rounding.
    if mantissa <= 1 << 53 && power < EXACT.len() {
        let (mantissa, scale) = (mantissa as f64, EXACT[power]);
        return Some(if exponent < 0 { mantissa / scale } else { mantissa * scale });
    }
    // Otherwise 5^power still fits in a word, and a power of two rounds nothing.
    let five = *POW5.get(power)?;
    if exponent >= 0 {
        return Some((u128::from(mantissa) * u128::from(five)) as f64 * power_of_two(exponent));
    }
    // With both top bits set the quotient has at least 63 bits, more than rounding needs; of the
    // remainder only whether it is zero matters, so one (sticky) bit represents it.
    let (up, down) = (mantissa.leading_zeros(), five.leading_zeros());
    let (dividend, divisor) = (u128::from(mantissa << up) << 63, u128::from(five << down));
    let (quotient, remainder) = (dividend / divisor, dividend % divisor);
    let sticky = quotient as u64 | u64::from(remainder != 0);
    Some(sticky as f64 * power_of_two(exponent + i64::from(down) - i64::from(up) - 63))
}

/// 2^`exponent`, which is within the range of normal numbers.
#[inline(always)]
fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// Line and column of byte `at`, both counted from 1.
pub(crate) fn line_and_column(text: &[u8], at: usize) -> (u64, u64) {
    let before = &text[..at.min(text.len())];
    let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |p| p + 1);
    (newlines(before) as u64 + 1, (before.len() - line_start) as u64 + 1)
}

/// Number of line ends.
pub(crate) fn newlines(text: &[u8]) -> usize {
    // One-byte counters over short chunks: the compiler vectorises them.
    text.chunks(128).map(|run| run.iter().map(|b| u8::from(*b == b'\n')).sum::<u8>() as usize).sum()
}

/// The text at `at` for a message: a token in quotes, or the end of the line or of the file.
pub(crate) fn shown(text: &[u8], at: usize) -> String {
    const LONGEST: usize = 40;
    let rest = &text[at.min(text.len())..];
    match rest.first() {
        None => "the end of the file".into(),
        Some(b'\n' | b'\r') => "the end of the line".into(),
        Some(_) => {
            let len = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len()).max(1);
            let dots = if len > LONGEST { "..." } else { "" };
            format!("\"{}{dots}\"", rest[..len.min(LONGEST)].escape_ascii())
        }
    }
}

/// Bytes of the text as a string, with other than ASCII characters escaped.
pub(crate) fn owned(token: &[u8]) -> String {
    // Byte by byte: a mapped file may change, so it must not be taken for UTF-8.
    token.escape_ascii().to_string()
}

/// Adds the line and column of byte `at` to `error`.
pub(crate) fn at(text: &[u8], at: usize, error: Error) -> Error {
    let (line, column) = line_and_column(text, at);
    error.at(format!("line {line}, column {column}"))
}

/// Checks that `I` holds indices below `size`, the number of `what` at byte `at`.
pub(crate) fn check_index<I: Index>(
    text: &[u8],
    at: usize,
    what: &'static str,
    size: u64,
) -> Result<()> {
    if size.saturating_sub(1) <= I::MAX {
        return Ok(());
    }
    let overflow = Error::Overflow { what, need: size.into(), index_type: I::TYPE };
    Err(self::at(text, at, overflow))
}

/// A parse error at byte `at`.
pub(crate) fn unexpected(
    text: &[u8],
    at: usize,
    expected: impl Into<String>,
    found: impl Into<String>,
) -> Error {
    let (line, column) = line_and_column(text, at);
    Error::Parse { path: None, line, column, expected: expected.into(), found: found.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(number: &str) -> Option<f64> {
        let text = format!("{number}\n                        ");
        let mut at = 0;
        let value = real(text.as_bytes(), &mut at);
        value.inspect(|_| assert_eq!(at, number.len(), "{number}"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn reals_are_those_of_the_standard_library(
            mantissa in prop_oneof![any::<u64>(), 0..1u64 << 54, 0..100_000u64],
            exponent in -40i32..40,
            point in 0usize..20,
        ) {
            let digits = mantissa.to_string();
            let (whole, fraction) = digits.split_at(point.min(digits.len()));
            for number in [
                format!("{digits}e{exponent}"),
                format!("-{whole}.{fraction}E{exponent:+}"),
                format!("0.{digits}"),
            ] {
                if let Some(value) = read(&number) {
                    prop_assert_eq!(value.to_bits(), number.parse::<f64>().unwrap().to_bits());
                } else {
                    prop_assert!(number.len() > 19, "{} is usual", number);
                }
            }
        }

        #[test]
        fn shortest_forms_read_back(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            if let Some(read) = read(&format!("{value:e}")) {
                prop_assert_eq!(read.to_bits(), bits);
            }
        }

        #[test]
        fn integers_are_those_of_the_standard_library(value in any::<i64>(), shift in 0u32..64) {
            let value = value >> shift;
            let text = format!("{value} rest of the line");
            let mut at = 0;
            match signed(text.as_bytes(), &mut at) {
                Some(read) => prop_assert_eq!((read, at), (value, value.to_string().len())),
                None => prop_assert!(value.unsigned_abs() >= 10_000_000_000_000_000),
            }
        }
    }

    #[test]
    fn halfway_cases_round_to_even() {
        for number in [
            "9007199254740993",
            "9007199254740995",
            "9007199254740993.0",
            "900719925474099.3e1",
            "4503599627370497.5",
            "4503599627370496.5",
            "0.5000000000000000001e1",
        ] {
            if let Some(value) = read(number) {
                assert_eq!(value, number.parse::<f64>().unwrap(), "{number}");
            }
        }
    }
}
