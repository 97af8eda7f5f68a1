//! Numbers in text, eight bytes at a time, and places in text for error messages.
//!
//! Digits are found and converted within one 64-bit word (SWAR), as described by D. Lemire,
//! "Number parsing at a gigabyte per second" (Software: Practice and Experience, 2021), §4.

use gustav_core::Error;

const ZEROS: u64 = 0x3030_3030_3030_3030;
const POW10: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Powers of ten that f64 holds exactly.
const EXACT: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

#[inline(always)]
fn load(text: &[u8], at: usize) -> Option<u64> {
    let bytes = text.get(at..at + 8)?;
    Some(u64::from_le_bytes([
        bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
    ]))
}

/// Number of digits that `word` (text with the zeros xored out) begins with.
#[inline(always)]
fn leading_digits(word: u64) -> usize {
    let above_nine = (word & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676;
    (((above_nine | word) & 0x8080_8080_8080_8080).trailing_zeros() / 8) as usize
}

/// The number that the first `n` > 0 digits of `word` stand for.
#[inline(always)]
fn convert(word: u64, n: usize) -> u64 {
    const MASK: u64 = 0x0000_00ff_0000_00ff;
    let digits = word << (64 - 8 * n);
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let high = (pairs & MASK).wrapping_mul(100 + (1_000_000 << 32));
    let low = ((pairs >> 16) & MASK).wrapping_mul(1 + (10_000 << 32));
    high.wrapping_add(low) >> 32
}

/// Appends the digits at `at` to `number`, at most `8 * WORDS` of them (past 19 the number
/// wraps); returns how many there were. `None` near the end of the text and when there are more.
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

/// An unsigned integer of at most 16 digits at `at`; `None` when there is no such thing or
/// when the end of the text is too near to tell.
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

/// A decimal number, correctly rounded; `None` for what the caller should look at with care
/// (the end of the text, very long numbers, `nan`, `inf`, overflow, things that are no number).
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
    // Clinger's fast path: both operands are exact, so one rounding is all there is.
    if whole + fraction <= 19 && mantissa <= 1 << 53 && exponent.unsigned_abs() <= 22 {
        let scale = EXACT[exponent.unsigned_abs() as usize];
        let magnitude =
            if exponent < 0 { mantissa as f64 / scale } else { mantissa as f64 * scale };
        return Some(if negative { -magnitude } else { magnitude });
    }
    fast_float2::parse::<f64, _>(&text[start..*at]).ok().filter(|v| v.is_finite())
}

/// Line and column of byte `at`, both counted from 1.
pub(crate) fn place(text: &[u8], at: usize) -> (u64, u64) {
    let before = &text[..at.min(text.len())];
    let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |p| p + 1);
    (newlines(before) as u64 + 1, (before.len() - line_start) as u64 + 1)
}

/// Number of line ends.
pub(crate) fn newlines(text: &[u8]) -> usize {
    // Short runs of one-byte counters become vector instructions.
    text.chunks(128).map(|run| run.iter().map(|b| u8::from(*b == b'\n')).sum::<u8>() as usize).sum()
}

/// What stands at `at`: a token in quotes, or the end of the line or of the file.
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

/// A parse error at byte `at`.
pub(crate) fn unexpected(
    text: &[u8],
    at: usize,
    expected: impl Into<String>,
    found: impl Into<String>,
) -> Error {
    let (line, column) = place(text, at);
    Error::Parse { path: None, line, column, expected: expected.into(), found: found.into() }
}
