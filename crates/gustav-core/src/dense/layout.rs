//! Row-major or column-major, and how many values a matrix spans.

use std::fmt::Display;

use crate::{Error, Result};

/// Row-major or column-major.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Elements of a row are contiguous.
    #[default]
    RowMajor,
    /// Elements of a column are contiguous.
    ColumnMajor,
}

impl Layout {
    /// The name used on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Layout::RowMajor => "row-major",
            Layout::ColumnMajor => "column-major",
        }
    }

    /// Number of lines (rows of row-major, columns of column-major) and their length.
    pub(super) const fn lines(self, nrows: usize, ncols: usize) -> (usize, usize) {
        match self {
            Layout::RowMajor => (nrows, ncols),
            Layout::ColumnMajor => (ncols, nrows),
        }
    }

    /// Position of element (i, j) relative to element (0, 0).
    #[inline(always)]
    pub(super) const fn position(self, i: usize, j: usize, ld: usize) -> usize {
        match self {
            Layout::RowMajor => i * ld + j,
            Layout::ColumnMajor => j * ld + i,
        }
    }

    /// The leading dimension with which a matrix of `nrows` × `ncols` in this layout, whose leading
    /// dimension is `ld`, is the same matrix in layout `to`. A matrix of one row or one column may
    /// be both; `None` for others.
    pub fn leading_dimension_in(
        self,
        to: Layout,
        (nrows, ncols): (usize, usize),
        ld: usize,
    ) -> Option<usize> {
        match self.lines(nrows, ncols) {
            _ if self == to => Some(ld),
            // One line, whose elements become lines of one element; or no elements.
            (1, _) => Some(1),
            (lines, len) if lines == 0 || len == 0 || (len == 1 && ld == 1) => Some(lines),
            _ => None,
        }
    }
}

impl Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Checks a leading dimension and returns how many values the matrix spans; `usize::MAX` on
/// overflow.
pub(super) fn span(nrows: usize, ncols: usize, layout: Layout, ld: usize) -> Result<usize> {
    let (lines, len) = layout.lines(nrows, ncols);
    if ld < len {
        return Err(Error::Shape {
            op: "dense matrix",
            expected: format!(
                "a leading dimension of at least {len} for {nrows} x {ncols} {layout}"
            ),
            found: format!("{ld}"),
        });
    }
    if lines == 0 || len == 0 {
        return Ok(0);
    }
    Ok((lines - 1).saturating_mul(ld).saturating_add(len))
}

/// Checks that `found` values are enough for a matrix.
pub(super) fn check(
    nrows: usize,
    ncols: usize,
    layout: Layout,
    ld: usize,
    found: usize,
) -> Result<()> {
    let need = span(nrows, ncols, layout, ld)?;
    if found < need {
        return Err(Error::Length { what: "dense matrix values", expected: need, found });
    }
    Ok(())
}
