//! The banner, the comments and the size line.

use gustav_core::{Error, Result};

use crate::files::header::{Field, Symmetry};
use crate::files::text::{shown, unexpected};

/// Longest banner, size or data line; the format's own limit.
pub(super) const LONGEST_LINE: usize = 1024;

/// The lines before the entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prologue {
    /// Array rather than coordinate.
    pub dense: bool,
    pub field: Field,
    pub symmetry: Symmetry,
    pub rows: u64,
    pub cols: u64,
    /// Entries stored in the file.
    pub entries: u64,
    /// First byte of the size line.
    pub size_line: usize,
    /// First byte after the size line.
    pub body: usize,
}

/// Parses the lines before the entries. `Ok(None)` if `text` ends too early and is not `complete`.
pub(crate) fn parse(text: &[u8], complete: bool) -> Result<Option<Prologue>> {
    let Some((banner, mut next)) = line(text, 0, complete)? else { return Ok(None) };
    let (dense, field, symmetry) = self::banner(text, banner)?;
    loop {
        let start = next;
        let comment = text.get(start) == Some(&b'%');
        let end = if comment { skip_line(text, start, complete) } else { None };
        if comment {
            match end {
                Some(end) => next = end,
                None => return Ok(None),
            }
            continue;
        }
        if start >= text.len() && complete {
            return Err(unexpected(text, start, "the size line", "the end of the file"));
        }
        let Some((end, after)) = line(text, start, complete)? else { return Ok(None) };
        next = after;
        if !text[start..end].iter().all(u8::is_ascii_whitespace) {
            let (rows, cols, entries) = sizes(text, start, end, dense, symmetry)?;
            let (size_line, body) = (start, after);
            return Ok(Some(Prologue {
                dense,
                field,
                symmetry,
                rows,
                cols,
                entries,
                size_line,
                body,
            }));
        }
    }
}

fn skip_line(text: &[u8], start: usize, complete: bool) -> Option<usize> {
    match text[start..].iter().position(|b| *b == b'\n') {
        Some(len) => Some(start + len + 1),
        None => complete.then_some(text.len()),
    }
}

/// End of the line at `start` (without the line end) and start of the next.
fn line(text: &[u8], start: usize, complete: bool) -> Result<Option<(usize, usize)>> {
    let window = &text[start..text.len().min(start + LONGEST_LINE + 1)];
    match window.iter().position(|b| *b == b'\n') {
        Some(len) => Ok(Some((start + len, start + len + 1))),
        None if window.len() > LONGEST_LINE => Err(unexpected(
            text,
            start + LONGEST_LINE,
            format!("a line of at most {LONGEST_LINE} bytes"),
            "a longer one",
        )),
        None if complete => Ok(Some((text.len(), text.len()))),
        None => Ok(None),
    }
}

/// Tokens of a line with their positions.
pub(super) fn tokens(
    text: &[u8],
    start: usize,
    end: usize,
) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = start;
    std::iter::from_fn(move || {
        while at < end && text[at].is_ascii_whitespace() {
            at += 1;
        }
        let from = at;
        while at < end && !text[at].is_ascii_whitespace() {
            at += 1;
        }
        (from < at).then(|| (from, &text[from..at]))
    })
}

fn banner(text: &[u8], end: usize) -> Result<(bool, Field, Symmetry)> {
    let mut words = tokens(text, 0, end);
    let mut word = |expected: &str| match words.next() {
        Some((at, token)) => Ok((at, token.to_ascii_lowercase())),
        None => Err(unexpected(text, end, expected, "the end of the line")),
    };
    let wrong = |at, expected: &str| unexpected(text, at, expected, shown(text, at));
    let refuse = |what: &str, instead: &str| Error::Format {
        path: None,
        format: "Matrix Market",
        reason: format!("{what} matrices are not supported; {instead}"),
    };
    const COMPLEX: &str = "gustav multiplies real numbers: write the real and the imaginary part \
                           to files of their own";

    let (at, token) = word("%%MatrixMarket")?;
    if token != b"%%matrixmarket" {
        return Err(wrong(at, "%%MatrixMarket"));
    }
    let (at, token) = word("matrix")?;
    if token != b"matrix" {
        return Err(wrong(at, "matrix"));
    }
    let (at, token) = word("coordinate or array")?;
    let dense = match &token[..] {
        b"coordinate" => false,
        b"array" => true,
        _ => return Err(wrong(at, "coordinate or array")),
    };
    const FIELDS: &str = "real, double, integer or pattern";
    let (at, token) = word(FIELDS)?;
    let field = match &token[..] {
        b"real" | b"double" => Field::Real,
        b"integer" | b"unsigned-integer" => Field::Integer,
        b"pattern" if dense => return Err(wrong(at, "real, double or integer in an array")),
        b"pattern" => Field::Pattern,
        b"complex" => return Err(refuse("complex", COMPLEX)),
        _ => return Err(wrong(at, FIELDS)),
    };
    const SYMMETRIES: &str = "general, symmetric or skew-symmetric";
    let (at, token) = word(SYMMETRIES)?;
    let symmetry = match &token[..] {
        b"general" => Symmetry::General,
        b"symmetric" => Symmetry::Symmetric,
        b"skew-symmetric" if field == Field::Pattern => {
            return Err(wrong(at, "general or symmetric for a pattern"));
        }
        b"skew-symmetric" => Symmetry::SkewSymmetric,
        b"hermitian" => return Err(refuse("hermitian", COMPLEX)),
        _ => return Err(wrong(at, SYMMETRIES)),
    };
    if let Some((at, _)) = words.next() {
        return Err(wrong(at, "the end of the line"));
    }
    Ok((dense, field, symmetry))
}

fn sizes(
    text: &[u8],
    start: usize,
    end: usize,
    dense: bool,
    symmetry: Symmetry,
) -> Result<(u64, u64, u64)> {
    let mut words = tokens(text, start, end);
    let mut size = |what: &str| {
        let Some((at, token)) = words.next() else {
            return Err(unexpected(text, end, what, "the end of the line"));
        };
        let digits = token.iter().all(u8::is_ascii_digit);
        let number = std::str::from_utf8(token).ok().filter(|_| digits);
        let wrong = |expected: String| unexpected(text, at, expected, shown(text, at));
        let number = number.ok_or_else(|| wrong(what.to_string()))?;
        number.parse::<u64>().map_err(|_| wrong(format!("{what} below 2^64")))
    };
    let rows = size("the number of rows")?;
    let cols = size("the number of columns")?;
    let entries = if dense { None } else { Some(size("the number of entries")?) };
    if let Some((at, _)) = words.next() {
        return Err(unexpected(text, at, "the end of the line", shown(text, at)));
    }
    if symmetry != Symmetry::General && rows != cols {
        return Err(unexpected(
            text,
            start,
            format!("as many rows as columns in a {} matrix", symmetry.name()),
            format!("{rows} x {cols}"),
        ));
    }
    let entries = match entries {
        Some(entries) => entries,
        None => {
            let n = u128::from(rows);
            let all = match symmetry {
                Symmetry::General => n * u128::from(cols),
                Symmetry::Symmetric => n * (n + 1) / 2,
                Symmetry::SkewSymmetric => n * n.saturating_sub(1) / 2,
            };
            u64::try_from(all).map_err(|_| {
                unexpected(text, start, "fewer than 2^64 elements", format!("{rows} x {cols}"))
            })?
        }
    };
    Ok((rows, cols, entries))
}
