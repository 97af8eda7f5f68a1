//! Parses one entry per line: a fast path for usual lines, a careful one for all others.

use std::marker::PhantomData;

use gustav_core::{Index, Scalar};

use super::prologue::{LONGEST_LINE, Prologue, tokens};
use crate::files::header::{Field, Symmetry};
use crate::files::text::{self, shown, unexpected};
use crate::files::value::{self, Bad};

/// The text after the two indices.
pub(super) trait ValueText<T: Scalar>: Sync {
    /// Whether there is a value.
    const PRESENT: bool;
    /// Its name in messages.
    const NAME: &'static str;
    /// Parses usual spellings; `None` for all others.
    fn quick(text: &[u8], at: &mut usize) -> Option<T>;
    /// Parses any spelling.
    fn careful(token: &[u8]) -> Result<T, Bad>;
}

/// Values of a real matrix.
pub(super) struct RealText;
/// Values of an integer matrix.
pub(super) struct IntegerText;
/// No value, for patterns.
pub(super) struct NoText;

impl<T: Scalar> ValueText<T> for RealText {
    const PRESENT: bool = true;
    const NAME: &'static str = "a real value";
    #[inline(always)]
    fn quick(text: &[u8], at: &mut usize) -> Option<T> {
        value::nearest_of_decimal(text::real(text, at)?)
    }
    fn careful(token: &[u8]) -> Result<T, Bad> {
        value::real(token)
    }
}

impl<T: Scalar> ValueText<T> for IntegerText {
    const PRESENT: bool = true;
    const NAME: &'static str = "an integer value";
    #[inline(always)]
    fn quick(text: &[u8], at: &mut usize) -> Option<T> {
        value::exact(text::signed(text, at)?)
    }
    fn careful(token: &[u8]) -> Result<T, Bad> {
        value::integer(token)
    }
}

impl<T: Scalar> ValueText<T> for NoText {
    const PRESENT: bool = false;
    const NAME: &'static str = "no value";
    #[inline(always)]
    fn quick(_: &[u8], _: &mut usize) -> Option<T> {
        Some(T::one())
    }
    fn careful(_: &[u8]) -> Result<T, Bad> {
        Ok(T::one())
    }
}

/// Runs `$body` with `$V` naming the [`ValueText`] of a field.
macro_rules! with_value_text {
    ($field:expr, $V:ident => $body:expr) => {
        match $field {
            $crate::files::header::Field::Real => {
                type $V = $crate::files::matrix_market::line::RealText;
                $body
            }
            $crate::files::header::Field::Integer => {
                type $V = $crate::files::matrix_market::line::IntegerText;
                $body
            }
            $crate::files::header::Field::Pattern => {
                type $V = $crate::files::matrix_market::line::NoText;
                $body
            }
        }
    };
}
pub(super) use with_value_text;

/// One entry, indices counted from 0.
pub(super) struct Entry<T, I> {
    pub row: I,
    pub col: I,
    pub value: T,
}

/// An error at a byte of the text; line and column are computed only when it is reported.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    Unexpected {
        at: usize,
        expected: String,
        found: String,
    },
    Value {
        at: usize,
        token: String,
    },
    /// The text changed after its lines were counted.
    Changed,
}

impl Fault {
    fn unexpected(text: &[u8], at: usize, expected: impl Into<String>) -> Self {
        Fault::Unexpected { at, expected: expected.into(), found: shown(text, at) }
    }

    pub(super) fn into_error<T: Scalar>(self, text: &[u8]) -> gustav_core::Error {
        match self {
            Fault::Unexpected { at, expected, found } => unexpected(text, at, expected, found),
            Fault::Value { at, token } => {
                let (line, column) = text::line_and_column(text, at);
                gustav_core::Error::Value {
                    what: format!("line {line}, column {column}"),
                    value: token,
                    dtype: T::DTYPE,
                }
            }
            Fault::Changed => gustav_core::Error::Format {
                path: None,
                format: "Matrix Market",
                reason: "the file changed while it was read; read it again once nobody writes \
                         to it"
                    .into(),
            },
        }
    }
}

/// Reads the value in `token` at byte `at`.
pub(super) fn careful_value<T: Scalar, V: ValueText<T>>(
    text: &[u8],
    at: usize,
    token: &[u8],
) -> Result<T, Fault> {
    V::careful(token).map_err(|bad| match bad {
        Bad::Syntax => Fault::unexpected(text, at, V::NAME),
        Bad::Range => Fault::Value { at, token: text::owned(token) },
    })
}

/// Reads the lines of a coordinate matrix.
pub(super) struct Lines<'a, T, I, V> {
    text: &'a [u8],
    rows: u64,
    cols: u64,
    symmetry: Symmetry,
    types: PhantomData<fn() -> (T, I, V)>,
}

impl<'a, T: Scalar, I: Index, V: ValueText<T>> Lines<'a, T, I, V> {
    pub(super) fn new(text: &'a [u8], prologue: &Prologue) -> Self {
        debug_assert_eq!(V::PRESENT, prologue.field != Field::Pattern);
        let Prologue { rows, cols, symmetry, .. } = *prologue;
        Lines { text, rows, cols, symmetry, types: PhantomData }
    }

    /// The entry on the line at `at`, which moves to the next line; `None` for a blank line
    /// or a comment.
    #[inline(always)]
    pub(super) fn next(&self, at: &mut usize) -> Result<Option<Entry<T, I>>, Fault> {
        let mut cursor = *at;
        if let Some(entry) = self.quick(&mut cursor)
            && cursor - *at <= LONGEST_LINE
        {
            *at = cursor;
            return Ok(Some(entry));
        }
        self.careful(at)
    }

    #[inline(always)]
    fn quick(&self, at: &mut usize) -> Option<Entry<T, I>> {
        let text = self.text;
        self.spaces(at);
        let row = text::unsigned(text, at)?.wrapping_sub(1);
        self.separator(at)?;
        let col = text::unsigned(text, at)?.wrapping_sub(1);
        let value = if V::PRESENT {
            self.separator(at)?;
            V::quick(text, at)?
        } else {
            T::one()
        };
        self.spaces(at);
        if text.get(*at) == Some(&b'\r') {
            *at += 1;
        }
        let line_end = text.get(*at) == Some(&b'\n');
        *at += 1;
        // Index 0 wrapped around to the largest number, so one comparison rejects it too.
        let placed = match self.symmetry {
            Symmetry::General => true,
            Symmetry::Symmetric => row >= col,
            Symmetry::SkewSymmetric => row > col && value::negated(value).is_some(),
        };
        let usual = line_end && row < self.rows && col < self.cols && placed;
        usual.then(|| Entry {
            row: I::truncate(row as usize),
            col: I::truncate(col as usize),
            value,
        })
    }

    #[inline(always)]
    fn spaces(&self, at: &mut usize) {
        while matches!(self.text.get(*at), Some(b' ' | b'\t')) {
            *at += 1;
        }
    }

    #[inline(always)]
    fn separator(&self, at: &mut usize) -> Option<()> {
        let before = *at;
        self.spaces(at);
        (*at > before).then_some(())
    }

    #[cold]
    #[inline(never)]
    fn careful(&self, at: &mut usize) -> Result<Option<Entry<T, I>>, Fault> {
        let (text, start) = (self.text, *at);
        let rest = &text[start..];
        let len = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        let end = start + len;
        *at = (end + 1).min(text.len());
        let mut words = tokens(text, start, end);
        let Some((row_at, row)) = words.next() else { return Ok(None) };
        if row[0] == b'%' {
            return Ok(None);
        }
        if len > LONGEST_LINE {
            return Err(Fault::Unexpected {
                at: start + LONGEST_LINE,
                expected: format!("a line of at most {LONGEST_LINE} bytes"),
                found: format!("one of {len}"),
            });
        }
        let row = self.index(row_at, row, "row", self.rows)?;
        let (col_at, col) =
            words.next().ok_or_else(|| Fault::unexpected(text, end, "a column index"))?;
        let col = self.index(col_at, col, "column", self.cols)?;
        let mut value = T::one();
        if V::PRESENT {
            let (at, token) = words.next().ok_or_else(|| Fault::unexpected(text, end, V::NAME))?;
            value = careful_value::<T, V>(text, at, token)?;
            if self.symmetry == Symmetry::SkewSymmetric && value::negated(value).is_none() {
                return Err(Fault::Value { at, token: text::owned(token) });
            }
        }
        if let Some(expected) = self.misplaced(row, col) {
            let found = format!("entry ({}, {})", row + 1, col + 1);
            return Err(Fault::Unexpected { at: row_at, expected, found });
        }
        if let Some((at, _)) = words.next() {
            let expected = if V::PRESENT {
                "the end of the line after the value"
            } else {
                "the end of the line after the column index of a pattern"
            };
            return Err(Fault::unexpected(text, at, expected));
        }
        Ok(Some(Entry { row: I::truncate(row as usize), col: I::truncate(col as usize), value }))
    }

    /// What was expected, if an entry is outside the half of the matrix that its symmetry stores.
    fn misplaced(&self, row: u64, col: u64) -> Option<String> {
        match self.symmetry {
            Symmetry::SkewSymmetric if row == col => {
                Some("no diagonal in a skew-symmetric matrix".into())
            }
            Symmetry::General => None,
            // Its mirror image would be counted twice.
            symmetry if row < col => Some(format!(
                "the lower triangle only in a {0} matrix (a file that holds both is {1})",
                symmetry.name(),
                Symmetry::General.name(),
            )),
            _ => None,
        }
    }

    /// An index counted from 1 in the file, from 0 in the result.
    fn index(&self, at: usize, token: &[u8], what: &str, bound: u64) -> Result<u64, Fault> {
        let fault = |expected: String| Fault::unexpected(self.text, at, expected);
        let digits = token.iter().all(u8::is_ascii_digit);
        let text = std::str::from_utf8(token).ok().filter(|_| digits);
        let text = text.ok_or_else(|| fault(format!("a {what} index")))?;
        match text.parse::<u64>() {
            Ok(0) => Err(fault(format!("a {what} index from 1 (Matrix Market counts from 1)"))),
            Ok(index) if index <= bound => Ok(index - 1),
            _ => Err(fault(format!("a {what} index of at most {bound}"))),
        }
    }
}
