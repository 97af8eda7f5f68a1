//! Writing Matrix Market files; numbers in the shortest form that reads back the same.

use std::io::{self, Write};
use std::ops::Range;

use gustav_core::{CsrView, DenseView, Index, Scalar, parallel};

// Text is made by all threads, this many lines to a task, and written in order.
const LINES: usize = 1 << 14;

fn field<T: Scalar>() -> &'static str {
    if T::DTYPE.is_integer() { "integer" } else { "real" }
}

/// Writes a matrix as coordinate general, rows in order, entries of a row as they are.
pub(crate) fn coordinate<T: Scalar, I: Index, O: Index>(
    to: &mut (impl Write + ?Sized),
    matrix: CsrView<'_, T, I, O>,
    pattern_only: bool,
) -> io::Result<()> {
    let field = if pattern_only { "pattern" } else { field::<T>() };
    writeln!(to, "%%MatrixMarket matrix coordinate {field} general")?;
    writeln!(to, "{} {} {}", matrix.nrows(), matrix.ncols(), matrix.nnz())?;
    in_order(to, matrix.nnz(), |entries, text| {
        let offsets = matrix.offsets();
        let mut row = offsets.partition_point(|o| o.to_usize() <= entries.start) - 1;
        for k in entries {
            while offsets[row + 1].to_usize() <= k {
                row += 1;
            }
            write!(text, "{} {}", row + 1, matrix.indices()[k].to_usize() + 1)?;
            if pattern_only {
                text.push(b'\n');
            } else {
                // `Debug` is the shortest text that reads back, with an exponent where shorter.
                writeln!(text, " {:?}", matrix.values()[k])?;
            }
        }
        Ok(())
    })
}

/// Writes a matrix as array general, columns in order.
pub(crate) fn array<T: Scalar>(
    to: &mut (impl Write + ?Sized),
    dense: DenseView<'_, T>,
) -> io::Result<()> {
    let (rows, cols) = (dense.nrows(), dense.ncols());
    writeln!(to, "%%MatrixMarket matrix array {} general", field::<T>())?;
    writeln!(to, "{rows} {cols}")?;
    in_order(to, rows * cols, |elements, text| {
        for k in elements {
            writeln!(text, "{:?}", dense.get(k % rows, k / rows))?;
        }
        Ok(())
    })
}

fn in_order(
    to: &mut (impl Write + ?Sized),
    lines: usize,
    format: impl Fn(Range<usize>, &mut Vec<u8>) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let tasks = lines.div_ceil(LINES);
    let width = 4 * parallel::threads();
    for first in (0..tasks).step_by(width) {
        let texts = parallel::map(width.min(tasks - first), |k| {
            let (start, mut text) = ((first + k) * LINES, Vec::with_capacity(32 * LINES));
            format(start..lines.min(start + LINES), &mut text)?;
            Ok::<_, io::Error>(text)
        });
        for text in texts {
            to.write_all(&text?)?;
        }
    }
    Ok(())
}
