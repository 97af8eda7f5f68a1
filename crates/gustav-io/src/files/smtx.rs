//! The text form of the Deep Learning Matrix Collection (T. Gale, M. Zaharia, C. Young and
//! E. Elsen, "Sparse GPU Kernels for Deep Learning", SC 2020): rows, columns and nonzeros
//! separated by commas, then the row offsets, then the column indices, counted from 0.
//! There are no values.

use std::io::{self, Write};

use gustav_core::{Buffer, Csr, CsrView, Index, Result, Scalar, buffer::try_vec};

use super::options::ReadOptions;
use super::pattern;
use super::text::{self, shown, unexpected};

/// Rows, columns and nonzeros, and the first byte after their line.
pub(crate) fn sizes(text: &[u8]) -> Result<([u64; 3], usize)> {
    let mut numbers = Numbers { text, at: 0 };
    let mut sizes = [0; 3];
    for (k, what) in ["the number of rows", "the number of columns", "the number of nonzeros"]
        .into_iter()
        .enumerate()
    {
        numbers.spaces();
        sizes[k] = numbers.next(what)?;
        numbers.spaces();
        if k < 2 {
            if text.get(numbers.at) != Some(&b',') {
                return Err(unexpected(text, numbers.at, "a comma", shown(text, numbers.at)));
            }
            numbers.at += 1;
        }
    }
    match text.get(numbers.at) {
        None | Some(b'\n' | b'\r') => Ok((sizes, numbers.at)),
        Some(_) => {
            Err(unexpected(text, numbers.at, "the end of the line", shown(text, numbers.at)))
        }
    }
}

/// The matrix in `text`.
pub(crate) fn read<T: Scalar, I: Index, O: Index>(
    text: &[u8],
    options: &ReadOptions<'_>,
) -> Result<Csr<T, I, O>> {
    let ([rows, cols, nnz], body) = sizes(text)?;
    text::check_index::<I>(text, 0, "columns", cols)?;
    O::try_from_usize(nnz as usize, "entries").map_err(|e| text::at(text, 0, e))?;
    // A number takes at least a digit and a space: absurd sizes are rejected before memory is
    // allocated.
    let left = (text.len() - body) as u64;
    if rows.saturating_add(nnz) > left / 2 {
        let expected = format!("{rows} + 1 row offsets and {nnz} column indices");
        let found = format!("{left} bytes until the end of the file");
        return Err(unexpected(text, text.len(), expected, found));
    }
    let (rows, cols, nnz) = (rows as usize, cols as usize, nnz as usize);
    let mut numbers = Numbers { text, at: body };
    let mut offsets = try_vec::<O>(rows + 1, "row offsets")?;
    let mut last = 0;
    for row in 0..=rows {
        numbers.whitespace();
        let at = numbers.at;
        let offset = numbers.next("a row offset")?;
        let rule = match () {
            () if row == 0 && offset != 0 => Some("0 as the first row offset".to_string()),
            () if offset < last => Some(format!("a row offset of at least {last}")),
            () if offset > nnz as u64 => Some(format!("a row offset of at most {nnz}")),
            () if row == rows && offset != nnz as u64 => Some(format!("{nnz} as the last offset")),
            () => None,
        };
        if let Some(expected) = rule {
            return Err(unexpected(text, at, expected, shown(text, at)));
        }
        last = offset;
        offsets.push(O::truncate(offset as usize));
    }
    let mut indices = try_vec::<I>(nnz, "column indices")?;
    for _ in 0..nnz {
        numbers.whitespace();
        let at = numbers.at;
        let index = numbers.next("a column index")?;
        if index >= cols as u64 {
            let expected = format!("a column index below {cols} (smtx counts from 0)");
            return Err(unexpected(text, at, expected, shown(text, at)));
        }
        indices.push(I::truncate(index as usize));
    }
    numbers.whitespace();
    if numbers.at < text.len() {
        let expected = format!("the end of the file after {nnz} column indices");
        return Err(unexpected(text, numbers.at, expected, shown(text, numbers.at)));
    }
    options.advance(text.len());
    let values: Buffer<T> = match pattern::values(options.values, nnz)? {
        Some(values) => values,
        None => pattern::ones(nnz)?,
    };
    Csr::new(rows, cols, offsets, indices, values)
}

struct Numbers<'a> {
    text: &'a [u8],
    at: usize,
}

impl Numbers<'_> {
    fn next(&mut self, what: &str) -> Result<u64> {
        let start = self.at;
        if let Some(number) = text::unsigned(self.text, &mut self.at) {
            return Ok(number);
        }
        let rest = &self.text[start..];
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        self.at = start + digits;
        let number = std::str::from_utf8(&rest[..digits]).ok().and_then(|t| t.parse().ok());
        let wrong = || {
            let what = if digits > 0 { format!("{what} below 2^64") } else { what.into() };
            unexpected(self.text, start, what, shown(self.text, start))
        };
        number.ok_or_else(wrong)
    }

    fn spaces(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    fn whitespace(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }
}

/// Writes the pattern of a matrix.
pub(crate) fn write<T: Scalar, I: Index, O: Index>(
    to: &mut (impl Write + ?Sized),
    matrix: CsrView<'_, T, I, O>,
) -> io::Result<()> {
    writeln!(to, "{}, {}, {}", matrix.nrows(), matrix.ncols(), matrix.nnz())?;
    line(to, matrix.offsets())?;
    line(to, matrix.indices())
}

fn line<N: Index>(to: &mut (impl Write + ?Sized), numbers: &[N]) -> io::Result<()> {
    for (k, number) in numbers.iter().enumerate() {
        let space = if k == 0 { "" } else { " " };
        write!(to, "{space}{number}")?;
    }
    writeln!(to)
}
