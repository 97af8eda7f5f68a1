//! Array matrices: every element on a line of its own, columns one after another; of a symmetric
//! matrix the lower triangle, of a skew-symmetric one the elements below the diagonal.

use gustav_core::{Dense, Layout, Result, Scalar};

use super::line::{Fault, ValueText, careful_value, with_value_text};
use super::prologue::{LONGEST_LINE, Prologue, tokens};
use crate::files::header::Symmetry;
use crate::files::options::ReadOptions;
use crate::files::text::{owned, unexpected};
use crate::files::value::negated;

/// The matrix in `text`, column-major, symmetry expanded.
pub(crate) fn read<T: Scalar>(
    text: &[u8],
    prologue: &Prologue,
    options: &ReadOptions<'_>,
) -> Result<Dense<T>> {
    // An element takes at least a digit and a line end: absurd sizes are rejected before memory is
    // allocated.
    let body = text.len() - prologue.body;
    if prologue.entries > body as u64 / 2 + 1 {
        let expected = format!("{} elements as the size line says", prologue.entries);
        let found = format!("{body} bytes until the end of the file");
        return Err(unexpected(text, prologue.size_line, expected, found));
    }
    let (rows, cols) = (prologue.rows as usize, prologue.cols as usize);
    let mut dense = Dense::<T>::zeros(rows, cols, Layout::ColumnMajor)?;
    let values = dense.data_mut();
    let mut elements = Elements { text, at: prologue.body, read: 0, prologue };
    with_value_text!(prologue.field, V => {
        // Without rows there are no elements, whatever the number of columns.
        for col in 0..if rows == 0 { 0 } else { cols } {
            let first = match prologue.symmetry {
                Symmetry::General => 0,
                Symmetry::Symmetric => col,
                Symmetry::SkewSymmetric => col + 1,
            };
            for row in first..rows {
                let (at, value) = elements.next::<T, V>()?;
                values[col * rows + row] = value;
                if prologue.symmetry == Symmetry::Symmetric {
                    values[row * rows + col] = value;
                } else if prologue.symmetry == Symmetry::SkewSymmetric {
                    let token = || owned(&text[at..elements.at]).trim().into();
                    values[row * rows + col] = negated(value)
                        .ok_or_else(|| Fault::Value { at, token: token() }.into_error::<T>(text))?;
                }
            }
        }
    });
    elements.end()?;
    options.advance(body);
    Ok(dense)
}

struct Elements<'a> {
    text: &'a [u8],
    at: usize,
    read: u64,
    prologue: &'a Prologue,
}

impl Elements<'_> {
    fn next<T: Scalar, V: ValueText<T>>(&mut self) -> Result<(usize, T)> {
        // The usual line: a number and a line end.
        let mut cursor = self.at;
        if let Some(value) = V::quick(self.text, &mut cursor)
            && self.text.get(cursor) == Some(&b'\n')
        {
            let start = std::mem::replace(&mut self.at, cursor + 1);
            self.read += 1;
            return Ok((start, value));
        }
        let expected = || format!("{} elements as the size line says", self.prologue.entries);
        let Some((start, end)) = self.line()? else {
            let found = format!("{} at the end of the file", self.read);
            return Err(unexpected(self.text, self.text.len(), expected(), found));
        };
        let mut words = tokens(self.text, start, end);
        let (at, token) = words.next().unwrap_or((start, &[]));
        let value = careful_value::<T, V>(self.text, at, token)
            .map_err(|fault| fault.into_error::<T>(self.text))?;
        if let Some((at, _)) = words.next() {
            return Err(unexpected(self.text, at, "one element per line", "another one"));
        }
        self.read += 1;
        Ok((at, value))
    }

    /// The next line that is neither blank nor a comment.
    fn line(&mut self) -> Result<Option<(usize, usize)>> {
        while self.at < self.text.len() {
            let start = self.at;
            let rest = &self.text[start..];
            let len = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
            self.at = (start + len + 1).min(self.text.len());
            match tokens(self.text, start, start + len).next() {
                None => {}
                Some((_, token)) if token[0] == b'%' => {}
                Some(_) if len > LONGEST_LINE => {
                    let expected = format!("a line of at most {LONGEST_LINE} bytes");
                    let found = format!("one of {len}");
                    return Err(unexpected(self.text, start + LONGEST_LINE, expected, found));
                }
                Some(_) => return Ok(Some((start, start + len))),
            }
        }
        Ok(None)
    }

    fn end(&mut self) -> Result<()> {
        match self.line()? {
            None => Ok(()),
            Some((start, _)) => {
                let expected = format!("{} elements as the size line says", self.prologue.entries);
                Err(unexpected(self.text, start, expected, "one more"))
            }
        }
    }
}
