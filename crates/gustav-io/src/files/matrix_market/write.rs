//! Writing Matrix Market files; numbers in the shortest form that reads back the same.

use std::io::{self, Write};
use std::ops::Range;

use gustav_core::{CsrView, DenseView, Index, Scalar, parallel};

use crate::files::Symmetry;

// Lines formatted by one task; all threads format, and the text is written in order.
const LINES: usize = 1 << 14;

fn field<T: Scalar>() -> &'static str {
    if T::DTYPE.is_integer() { "integer" } else { "real" }
}

/// Writes the entries that a file of this symmetry stores in coordinate form, in the order of the
/// matrix.
pub(crate) fn coordinate<T: Scalar, I: Index, O: Index>(
    to: &mut (impl Write + ?Sized),
    matrix: CsrView<'_, T, I, O>,
    symmetry: Symmetry,
    pattern_only: bool,
) -> io::Result<()> {
    let shape = [matrix.nrows(), matrix.ncols(), matrix.nnz()];
    coordinate_head::<T>(to, shape, symmetry, pattern_only)?;
    coordinate_lines(to, matrix, 0, pattern_only)
}

/// Writes what is before the entries: `rows`, `columns` and `entries` are what the file holds.
pub(crate) fn coordinate_head<T: Scalar>(
    to: &mut (impl Write + ?Sized),
    [rows, columns, entries]: [usize; 3],
    symmetry: Symmetry,
    pattern_only: bool,
) -> io::Result<()> {
    let field = if pattern_only { "pattern" } else { field::<T>() };
    writeln!(to, "%%MatrixMarket matrix coordinate {field} {}", symmetry.name())?;
    writeln!(to, "{rows} {columns} {entries}")
}

/// Writes the entries of `matrix`, whose first row is row `first_row` of the file's.
pub(crate) fn coordinate_lines<T: Scalar, I: Index, O: Index>(
    to: &mut (impl Write + ?Sized),
    matrix: CsrView<'_, T, I, O>,
    first_row: usize,
    pattern_only: bool,
) -> io::Result<()> {
    in_order(to, matrix.nnz(), |entries, text| {
        let offsets = matrix.offsets();
        let mut row = offsets.partition_point(|o| o.to_usize() <= entries.start) - 1;
        for k in entries {
            while offsets[row + 1].to_usize() <= k {
                row += 1;
            }
            write!(text, "{} {}", first_row + row + 1, matrix.indices()[k].to_usize() + 1)?;
            if pattern_only {
                text.push(b'\n');
            } else {
                // `Debug` gives the shortest text that parses to the same value, with an exponent
                // where shorter.
                writeln!(text, " {:?}", matrix.values()[k])?;
            }
        }
        Ok(())
    })
}

/// Writes a matrix as array, columns in order; with a symmetry the elements on and below the
/// diagonal, or only below it.
pub(crate) fn array<T: Scalar>(
    to: &mut (impl Write + ?Sized),
    dense: DenseView<'_, T>,
    symmetry: Symmetry,
) -> io::Result<()> {
    let (rows, cols) = (dense.nrows(), dense.ncols());
    array_head::<T>(to, [rows, cols], symmetry)?;
    // The first row of a column, and the elements before the column.
    let first = |j: usize| match symmetry {
        Symmetry::General => 0,
        Symmetry::Symmetric => j,
        Symmetry::SkewSymmetric => j + 1,
    };
    let left_out = |j: usize| if j == 0 { 0 } else { first(j) * first(j - 1) / 2 };
    let before = |j: usize| j * rows - left_out(j);
    in_order(to, before(cols), |elements, text| {
        let (mut low, mut high) = (0, cols);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if before(middle) <= elements.start { low = middle } else { high = middle }
        }
        let (mut j, mut i) = (low, first(low) + elements.start - before(low));
        for _ in elements {
            while i == rows {
                j += 1;
                i = first(j);
            }
            writeln!(text, "{:?}", dense.get(i, j))?;
            i += 1;
        }
        Ok(())
    })
}

/// Writes what is before the elements.
pub(crate) fn array_head<T: Scalar>(
    to: &mut (impl Write + ?Sized),
    [rows, columns]: [usize; 2],
    symmetry: Symmetry,
) -> io::Result<()> {
    writeln!(to, "%%MatrixMarket matrix array {} {}", field::<T>(), symmetry.name())?;
    writeln!(to, "{rows} {columns}")
}

/// Writes the elements of one column.
pub(crate) fn array_lines<T: Scalar>(
    to: &mut (impl Write + ?Sized),
    dense: DenseView<'_, T>,
    column: usize,
) -> io::Result<()> {
    in_order(to, dense.nrows(), |rows, text| {
        for row in rows {
            writeln!(text, "{:?}", dense.get(row, column))?;
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
