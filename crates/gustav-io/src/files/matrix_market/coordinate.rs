//! Coordinate matrices, parsed in parallel: the text is divided into chunks at line ends, the lines
//! of every chunk are counted, and each chunk writes its entries at the position given by the lines
//! before it.

use std::ops::Range;

use gustav_core::buffer::UninitBuffer;
use gustav_core::{Buffer, Csr, Error, Index, Result, Scalar, parallel};

use super::counting_sort::{self, Mirror, Triples};
use super::line::{Fault, Lines, ValueText, with_value_text};
use super::prologue::Prologue;
use crate::files::header::{Field, Symmetry};
use crate::files::options::ReadOptions;
use crate::files::pattern;
use crate::files::text::{self, newlines, unexpected};

// Chunks are large enough for a task and small enough to balance the threads.
const SMALLEST_CHUNK: usize = 64 << 10;
const LARGEST_CHUNK: usize = 4 << 20;

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
    let matrix =
        counting_sort::csr(prologue.rows as usize, prologue.cols as usize, triples, mirror);
    matrix.map_err(|error| match error {
        Error::Overflow { .. } => text::at(text, prologue.size_line, error),
        _ => error,
    })
}

/// A chunk of the text and the result of parsing it.
struct Chunk {
    bytes: Range<usize>,
    /// Position of its first entry if every line before it were an entry.
    first: usize,
    /// Number of lines, an upper bound of its entries.
    lines: usize,
    entries: usize,
    /// Whether rows never decrease within the chunk.
    sorted: bool,
    fault: Option<Fault>,
}

fn parse<T: Scalar, I: Index, V: ValueText<T>>(
    text: &[u8],
    prologue: &Prologue,
    options: &ReadOptions<'_>,
) -> Result<Triples<T, I>> {
    let mut chunks = cut(text, prologue.body..text.len());
    let total = count(text, &mut chunks);
    let expected = Some(prologue.entries);
    fill::<T, I, V>(text, prologue, options, (chunks, total, expected))
}

/// The bytes of part `part` of `parts` of the entries: those of the lines that begin in it, of
/// parts of equal size.
pub(crate) fn part(text: &[u8], prologue: &Prologue, part: usize, parts: usize) -> Range<usize> {
    let len = text.len() - prologue.body;
    let line_from = |part: usize| {
        let goal = prologue.body + (len as u128 * part as u128 / parts as u128) as usize;
        if goal == prologue.body {
            return goal;
        }
        let line_end = text[goal - 1..].iter().position(|b| *b == b'\n');
        line_end.map_or(text.len(), |n| goal + n)
    };
    line_from(part)..line_from(part + 1)
}

/// The entries in `range`, which begins and ends with a line, without mirror images; values that
/// the file does not hold are none.
pub(crate) fn entries<T: Scalar>(
    text: &[u8],
    prologue: &Prologue,
    range: Range<usize>,
    options: &ReadOptions<'_>,
) -> Result<Triples<T, u64>> {
    let mut chunks = cut(text, range);
    let total = count(text, &mut chunks);
    with_value_text!(prologue.field, V => {
        fill::<T, u64, V>(text, prologue, options, (chunks, total, None))
    })
}

/// The error for `found` entries in all parts, if the size line says another number.
pub(crate) fn check_count(text: &[u8], prologue: &Prologue, found: u64) -> Result<()> {
    if found == prologue.entries {
        return Ok(());
    }
    let expected = format!("{} entries as the size line says", prologue.entries);
    Err(unexpected(text, text.len(), expected, format!("{found} at the end of the file")))
}

/// Counts the lines of all chunks, sets the position of the first entry of each, and returns the
/// number of lines.
fn count(text: &[u8], chunks: &mut [Chunk]) -> usize {
    let lines = parallel::map(chunks.len(), |p| newlines(&text[chunks[p].bytes.clone()]));
    let mut total = 0;
    let last = chunks.len().saturating_sub(1);
    for (p, (chunk, lines)) in chunks.iter_mut().zip(lines).enumerate() {
        chunk.first = total;
        // The last line may lack its line end.
        chunk.lines = lines + usize::from(p == last);
        total += chunk.lines;
    }
    total
}

/// Reads the entries of all chunks, of `total` lines. The text may be a file that changed since its
/// lines were counted: nothing is written beyond the counted lines of a chunk. `expected` entries
/// are checked.
fn fill<T: Scalar, I: Index, V: ValueText<T>>(
    text: &[u8],
    prologue: &Prologue,
    options: &ReadOptions<'_>,
    (mut chunks, total, expected): (Vec<Chunk>, usize, Option<u64>),
) -> Result<Triples<T, I>> {
    let mut rows = Buffer::<I>::uninit(total, "row indices")?;
    let mut cols = Buffer::<I>::uninit(total, "column indices")?;
    let mut values = Buffer::<T>::uninit(if V::PRESENT { total } else { 0 }, "values")?;
    let (to_rows, to_cols, to_values) = (rows.shared(), cols.shared(), values.shared());
    let reader = Lines::<T, I, V>::new(text, prologue);
    parallel::each_mut(&mut chunks, 1, |_, chunk| {
        let mut at = chunk.bytes.start;
        let mut next = chunk.first;
        let end = chunk.first + chunk.lines;
        let mut last = I::default();
        while at < chunk.bytes.end {
            match reader.next(&mut at) {
                Ok(Some(_)) if next == end => {
                    chunk.fault = Some(Fault::Changed);
                    break;
                }
                Ok(Some(entry)) => {
                    chunk.sorted &= last <= entry.row;
                    last = entry.row;
                    // SAFETY: the chunk owns the positions from `first` to `end`, and `next` is
                    // below `end`.
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
                    chunk.fault = Some(fault);
                    break;
                }
            }
        }
        chunk.entries = next - chunk.first;
        options.advance(chunk.bytes.len());
    });
    let found: usize = chunks.iter().map(|chunk| chunk.entries).sum();
    check(text, expected.unwrap_or(found as u64), &chunks, &reader)?;
    let nnz = found;
    // SAFETY: every chunk wrote `entries` values from `first` on, `nnz` in all.
    let (rows, cols, values) = unsafe {
        (
            close_gaps(rows, &chunks, nnz),
            close_gaps(cols, &chunks, nnz),
            V::PRESENT.then(|| close_gaps(values, &chunks, nnz)),
        )
    };
    let mut start = 0;
    let sorted = chunks.iter().all(|chunk| {
        let follows = start == 0 || chunk.entries == 0 || rows[start - 1] <= rows[start];
        start += chunk.entries;
        chunk.sorted && follows
    });
    Ok(Triples { rows, cols, values, sorted })
}

/// Divides the lines in `body` into chunks that end at line ends.
fn cut(text: &[u8], body: Range<usize>) -> Vec<Chunk> {
    let tasks = 8 * parallel::threads();
    let size = (body.len() / tasks).clamp(SMALLEST_CHUNK, LARGEST_CHUNK);
    let mut chunks = Vec::new();
    let mut start = body.start;
    while start < body.end {
        let goal = start.saturating_add(size).min(body.end);
        let end = text[goal..body.end].iter().position(|b| *b == b'\n');
        let end = end.map_or(body.end, |n| goal + n + 1);
        let (first, lines, entries) = (0, 0, 0);
        chunks.push(Chunk { bytes: start..end, first, lines, entries, sorted: true, fault: None });
        start = end;
    }
    chunks
}

/// Reports the first fault, or a number of entries other than `expected`.
fn check<T: Scalar, I: Index, V: ValueText<T>>(
    text: &[u8],
    expected: u64,
    chunks: &[Chunk],
    reader: &Lines<'_, T, I, V>,
) -> Result<()> {
    let mut left = expected;
    if chunks.iter().any(|chunk| matches!(chunk.fault, Some(Fault::Changed))) {
        return Err(Fault::Changed.into_error::<T>(text));
    }
    for chunk in chunks {
        if chunk.entries as u64 > left {
            let mut at = chunk.bytes.start;
            let mut line = at;
            while at < chunk.bytes.end
                && let Ok(entry) = reader.next(&mut at)
            {
                if entry.is_some() && left == 0 {
                    break;
                }
                left -= u64::from(entry.is_some());
                line = at;
            }
            let expected = format!("{expected} entries as the size line says");
            return Err(unexpected(text, line, expected, "one more"));
        }
        left -= chunk.entries as u64;
        if let Some(fault) = &chunk.fault {
            return Err(fault.clone().into_error::<T>(text));
        }
    }
    if left > 0 {
        let found = format!("{} at the end of the file", expected - left);
        let expected = format!("{expected} entries as the size line says");
        return Err(unexpected(text, text.len(), expected, found));
    }
    Ok(())
}

/// Moves the entries of all chunks together; lines without an entry left gaps between them.
///
/// # Safety
/// Every chunk wrote `entries` values from `first` on, `nnz` in all.
unsafe fn close_gaps<E: bytemuck::Pod>(
    mut buffer: UninitBuffer<E>,
    chunks: &[Chunk],
    nnz: usize,
) -> Buffer<E> {
    let base = buffer.as_mut_ptr();
    let mut end = 0;
    for chunk in chunks {
        if chunk.first != end {
            // SAFETY: both ranges lie within the buffer; `end` never passes `first`.
            unsafe { std::ptr::copy(base.add(chunk.first), base.add(end), chunk.entries) };
        }
        end += chunk.entries;
    }
    // SAFETY: the first `nnz` values are now those of the chunks.
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
        let mut chunks = cut(before.as_bytes(), prologue.body..before.len());
        let total = count(before.as_bytes(), &mut chunks);
        let options = ReadOptions::default();
        let chunks = (chunks, total, Some(prologue.entries));
        let read = fill::<f64, u32, RealText>(after.as_bytes(), &prologue, &options, chunks);
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
