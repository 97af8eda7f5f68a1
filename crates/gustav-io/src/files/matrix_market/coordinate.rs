//! Coordinate matrices, parsed in parallel: the text is cut at line ends, the lines of every
//! piece are counted, and each piece writes its entries where its lines begin in the order of
//! the file.

use std::ops::Range;

use gustav_core::buffer::UninitBuffer;
use gustav_core::{Buffer, Csr, Error, Index, Result, Scalar, parallel};

use super::line::{Fault, Lines, ValueText, with_value_text};
use super::place::{self, Mirror, Triples};
use super::prologue::Prologue;
use crate::files::header::{Field, Symmetry};
use crate::files::options::ReadOptions;
use crate::files::pattern;
use crate::files::text::{self, newlines, unexpected};

// Pieces are large enough to be worth a task and small enough to balance the threads.
const SMALLEST_PIECE: usize = 64 << 10;
const LARGEST_PIECE: usize = 4 << 20;

/// The matrix in `text`, symmetry expanded.
pub(crate) fn read<T: Scalar, I: Index, O: Index>(
    text: &[u8],
    prologue: &Prologue,
    options: &ReadOptions<'_>,
) -> Result<Csr<T, I, O>> {
    text::check_index::<I>(text, prologue.size_line, "rows", prologue.rows)?;
    text::check_index::<I>(text, prologue.size_line, "columns", prologue.cols)?;
    let mut triples = with_value_text!(prologue.field, V => {
        parse::<T, I, V>(text, prologue, options)?
    });
    if prologue.field == Field::Pattern {
        triples.values = pattern::values(options.values, triples.rows.len())?;
    }
    let mirror = match prologue.symmetry {
        Symmetry::General => None,
        Symmetry::Symmetric => Some(Mirror::Same),
        Symmetry::SkewSymmetric => Some(Mirror::Negated),
    };
    let matrix = place::csr(prologue.rows as usize, prologue.cols as usize, triples, mirror);
    matrix.map_err(|error| match error {
        Error::Overflow { .. } => text::at(text, prologue.size_line, error),
        _ => error,
    })
}

/// One piece of the text and what came of it.
struct Piece {
    bytes: Range<usize>,
    /// Where its entries begin, were every line an entry.
    first: usize,
    /// Lines, and so the most entries that there is room for.
    lines: usize,
    entries: usize,
    /// Rows never go down within the piece.
    sorted: bool,
    fault: Option<Fault>,
}

fn parse<T: Scalar, I: Index, V: ValueText<T>>(
    text: &[u8],
    prologue: &Prologue,
    options: &ReadOptions<'_>,
) -> Result<Triples<T, I>> {
    let mut pieces = cut(text, prologue.body);
    let total = count(text, &mut pieces);
    fill::<T, I, V>(text, prologue, options, pieces, total)
}

/// Counts the lines of all pieces, says where the entries of each begin, and returns the number
/// of lines.
fn count(text: &[u8], pieces: &mut [Piece]) -> usize {
    let lines = parallel::map(pieces.len(), |p| newlines(&text[pieces[p].bytes.clone()]));
    let mut total = 0;
    let last = pieces.len().saturating_sub(1);
    for (p, (piece, lines)) in pieces.iter_mut().zip(lines).enumerate() {
        piece.first = total;
        // The last line may lack its line end.
        piece.lines = lines + usize::from(p == last);
        total += piece.lines;
    }
    total
}

/// Reads the entries of all pieces, of `total` lines. The text may be a file that changed since
/// its lines were counted: nothing is written beyond the room that the count made.
fn fill<T: Scalar, I: Index, V: ValueText<T>>(
    text: &[u8],
    prologue: &Prologue,
    options: &ReadOptions<'_>,
    mut pieces: Vec<Piece>,
    total: usize,
) -> Result<Triples<T, I>> {
    let mut rows = Buffer::<I>::uninit(total, "row indices")?;
    let mut cols = Buffer::<I>::uninit(total, "column indices")?;
    let mut values = Buffer::<T>::uninit(if V::PRESENT { total } else { 0 }, "values")?;
    let (to_rows, to_cols, to_values) = (rows.shared(), cols.shared(), values.shared());
    let reader = Lines::<T, I, V>::new(text, prologue);
    parallel::each_mut(&mut pieces, 1, |_, piece| {
        let mut at = piece.bytes.start;
        let mut next = piece.first;
        let end = piece.first + piece.lines;
        let mut last = I::default();
        while at < piece.bytes.end {
            match reader.next(&mut at) {
                Ok(Some(_)) if next == end => {
                    piece.fault = Some(Fault::Changed);
                    break;
                }
                Ok(Some(entry)) => {
                    piece.sorted &= last <= entry.row;
                    last = entry.row;
                    // SAFETY: the piece owns the positions from `first` up to `end`, which
                    // `next` has not reached.
                    unsafe {
                        to_rows.put(next, entry.row);
                        to_cols.put(next, entry.col);
                        if V::PRESENT {
                            to_values.put(next, entry.value);
                        }
                    }
                    next += 1;
                }
                Ok(None) => {}
                Err(fault) => {
                    piece.fault = Some(fault);
                    break;
                }
            }
        }
        piece.entries = next - piece.first;
        options.advance(piece.bytes.len());
    });
    check(text, prologue, &pieces, &reader)?;
    let nnz = prologue.entries as usize;
    // SAFETY: every piece wrote `entries` values from `first` on, `nnz` in all.
    let (rows, cols, values) = unsafe {
        (
            close_gaps(rows, &pieces, nnz),
            close_gaps(cols, &pieces, nnz),
            V::PRESENT.then(|| close_gaps(values, &pieces, nnz)),
        )
    };
    let mut start = 0;
    let sorted = pieces.iter().all(|piece| {
        let follows = start == 0 || piece.entries == 0 || rows[start - 1] <= rows[start];
        start += piece.entries;
        piece.sorted && follows
    });
    Ok(Triples { rows, cols, values, sorted })
}

/// Cuts the text from `body` on into pieces that end with lines.
fn cut(text: &[u8], body: usize) -> Vec<Piece> {
    let tasks = 8 * parallel::threads();
    let size = ((text.len() - body) / tasks).clamp(SMALLEST_PIECE, LARGEST_PIECE);
    let mut pieces = Vec::new();
    let mut start = body;
    while start < text.len() {
        let goal = start.saturating_add(size).min(text.len());
        let end =
            text[goal..].iter().position(|b| *b == b'\n').map_or(text.len(), |n| goal + n + 1);
        let (first, lines, entries) = (0, 0, 0);
        pieces.push(Piece { bytes: start..end, first, lines, entries, sorted: true, fault: None });
        start = end;
    }
    pieces
}

/// Reports the first fault, or a number of entries other than the size line says.
fn check<T: Scalar, I: Index, V: ValueText<T>>(
    text: &[u8],
    prologue: &Prologue,
    pieces: &[Piece],
    reader: &Lines<'_, T, I, V>,
) -> Result<()> {
    let mut left = prologue.entries;
    if pieces.iter().any(|piece| matches!(piece.fault, Some(Fault::Changed))) {
        return Err(Fault::Changed.into_error::<T>(text));
    }
    for piece in pieces {
        if piece.entries as u64 > left {
            let mut at = piece.bytes.start;
            let mut line = at;
            while at < piece.bytes.end
                && let Ok(entry) = reader.next(&mut at)
            {
                if entry.is_some() && left == 0 {
                    break;
                }
                left -= u64::from(entry.is_some());
                line = at;
            }
            let expected = format!("{} entries as the size line says", prologue.entries);
            return Err(unexpected(text, line, expected, "one more"));
        }
        left -= piece.entries as u64;
        if let Some(fault) = &piece.fault {
            return Err(fault.clone().into_error::<T>(text));
        }
    }
    if left > 0 {
        let found = format!("{} at the end of the file", prologue.entries - left);
        let expected = format!("{} entries as the size line says", prologue.entries);
        return Err(unexpected(text, text.len(), expected, found));
    }
    Ok(())
}

/// Moves the entries of all pieces together; lines without an entry left room between them.
///
/// # Safety
/// Every piece wrote `entries` values from `first` on, and they are `nnz` together.
unsafe fn close_gaps<E: bytemuck::Pod>(
    mut buffer: UninitBuffer<E>,
    pieces: &[Piece],
    nnz: usize,
) -> Buffer<E> {
    let base = buffer.as_mut_ptr();
    let mut end = 0;
    for piece in pieces {
        if piece.first != end {
            // SAFETY: both ranges lie within the buffer; `end` never passes `first`.
            unsafe { std::ptr::copy(base.add(piece.first), base.add(end), piece.entries) };
        }
        end += piece.entries;
    }
    // SAFETY: the first `nnz` values are now those of the pieces.
    unsafe { buffer.assume_init(nnz) }
}

#[cfg(test)]
mod tests {
    use super::super::line::RealText;
    use super::super::prologue;
    use super::*;

    /// Lines are counted in `before`, entries read from `after`.
    fn changed(before: &str, after: &str) -> String {
        assert_eq!(before.len(), after.len());
        let prologue = prologue::parse(before.as_bytes(), true).unwrap().unwrap();
        let mut pieces = cut(before.as_bytes(), prologue.body);
        let total = count(before.as_bytes(), &mut pieces);
        let options = ReadOptions::default();
        let read = fill::<f64, u32, RealText>(after.as_bytes(), &prologue, &options, pieces, total);
        read.err().expect("the file changed").to_string()
    }

    #[test]
    fn a_text_that_changes_after_its_lines_were_counted_is_an_error() {
        let head = "%%MatrixMarket matrix coordinate real general\n1 1 2000\n";
        let long = format!("1 1 1{}\n", " ".repeat(66)).repeat(2000);
        let short = "1 1 1111\n".repeat(2000 * 8);
        let (before, after) = (format!("{head}{long}"), format!("{head}{short}"));
        let message = "Matrix Market: the file changed while it was read; read it again once \
                       nobody writes to it";
        assert_eq!(changed(&before, &after), message);
        let blank = format!("{head}{}\n", " ".repeat(long.len() - 1));
        let message = changed(&before, &blank);
        assert!(message.contains("found 0 at the end of the file"), "{message}");
    }
}
