//! Several matrices of one shape in one dense matrix.

use super::{DenseView, DenseViewMut, Layout};
use crate::{Error, Operation, Problem, Result, Scalar};

/// The shape of a batch of matrices that one dense matrix holds: side by side in its columns, as `n
/// × (heads · d)`, or one above the other in its rows, as `(heads · n) × d`. The shape of the
/// matrix tells which.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// The product, for messages.
    pub op: &'static str,
    /// The operand, for messages.
    pub name: &'static str,
    /// Matrices.
    pub count: usize,
    /// Rows of each.
    pub rows: usize,
    /// Columns of each.
    pub columns: usize,
    /// Layout of all.
    pub layout: Layout,
}

/// Where the matrices of a [`Batch`] are in a dense matrix, as distances in values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strides {
    /// From one matrix to the next.
    pub matrix: usize,
    /// From one line of a matrix to the next: the leading dimension in the layout of the batch.
    pub line: usize,
}

impl Batch {
    /// Where the matrices are in a dense matrix of `shape`, `layout` and leading dimension `ld`. A
    /// matrix of one row or one column may be of the other layout, where the same memory is a
    /// matrix in that of the batch.
    ///
    /// # Errors
    /// [`Error::Shape`] when it does not hold the batch.
    pub fn strides(&self, shape: (usize, usize), layout: Layout, ld: usize) -> Result<Strides> {
        let Batch { count, rows, columns, .. } = *self;
        let beside = shape == (rows, columns.saturating_mul(count));
        let below = shape == (rows.saturating_mul(count), columns);
        let line = layout.leading_dimension_in(self.layout, shape, ld);
        let Some(line) = line.filter(|_| beside || below) else {
            return Err(self.refused(shape, layout));
        };
        // A batch of one is both side by side and one above the other.
        let matrix = match (beside, self.layout) {
            (true, Layout::RowMajor) => columns,
            (true, Layout::ColumnMajor) => columns.saturating_mul(line),
            (false, Layout::RowMajor) => rows.saturating_mul(line),
            (false, Layout::ColumnMajor) => rows,
        };
        Ok(Strides { matrix, line })
    }

    /// Matrix `index` of the batch in `all`.
    ///
    /// # Errors
    /// As [`Batch::strides`].
    ///
    /// # Panics
    /// When there is no such matrix, as slices do.
    pub fn matrix<'a, T: Scalar>(
        &self,
        all: &DenseView<'a, T>,
        index: usize,
    ) -> Result<DenseView<'a, T>> {
        let ld = all.leading_dimension();
        let Strides { matrix, line } =
            self.strides((all.nrows(), all.ncols()), all.layout(), ld)?;
        assert!(index < self.count, "matrix {index} of {}", self.count);
        let at = all.as_ptr().wrapping_add(index * matrix);
        // SAFETY: the matrix is a block of the columns or of the rows of `all`, whose elements are
        // borrowed.
        unsafe { DenseView::from_raw_parts(self.rows, self.columns, self.layout, line, at) }
    }

    /// Matrix `index` of the batch in `all`, to be written.
    ///
    /// # Errors
    /// As [`Batch::strides`].
    ///
    /// # Panics
    /// When there is no such matrix, as slices do.
    pub fn matrix_mut<'a, T: Scalar>(
        &self,
        all: &'a mut DenseViewMut<'_, T>,
        index: usize,
    ) -> Result<DenseViewMut<'a, T>> {
        let ld = all.leading_dimension();
        let Strides { matrix, line } =
            self.strides((all.nrows(), all.ncols()), all.layout(), ld)?;
        assert!(index < self.count, "matrix {index} of {}", self.count);
        let at = all.as_mut_ptr().wrapping_add(index * matrix);
        // SAFETY: as in `matrix`; `all` is borrowed as long as the block lives.
        unsafe { DenseViewMut::from_raw_parts(self.rows, self.columns, self.layout, line, at) }
    }

    fn refused(&self, (nrows, ncols): (usize, usize), found: Layout) -> Error {
        let Batch { op, name, count, rows, columns, layout } = *self;
        let (wide, tall) = (columns.saturating_mul(count), rows.saturating_mul(count));
        let expected = match count {
            1 => format!("{name} of {rows} x {columns}, {layout}"),
            _ => format!(
                "{name} of {rows} x {wide} or {tall} x {columns}, {layout}, for a batch of {count}"
            ),
        };
        Error::Shape { op, expected, found: format!("{nrows} x {ncols}, {found}") }
    }
}

impl Problem {
    /// The batch of B of an SpMM, of Y of an SDDMM.
    pub fn batch_b(&self, name: &'static str) -> Batch {
        self.matrices(name, self.inner(), self.layout_b)
    }

    /// The batch of C of an SpMM, of X of an SDDMM.
    pub fn batch_c(&self, name: &'static str) -> Batch {
        self.matrices(name, self.output_rows(), self.layout_c)
    }

    fn matrices(&self, name: &'static str, rows: usize, layout: Layout) -> Batch {
        let Problem { operation, batch, columns, .. } = *self;
        Batch { op: operation.name(), name, count: batch, rows, columns, layout }
    }

    /// For a `backend` with batches: checks that the batch is not empty and that the product
    /// supports it.
    ///
    /// # Errors
    /// [`Error::Unsupported`] otherwise.
    pub fn check_batch(&self, backend: &str) -> Result<()> {
        let refuse = |reason: &str, nearest: &str| {
            Err(Error::Unsupported {
                problem: self.to_string(),
                backend: backend.into(),
                reason: reason.into(),
                nearest: nearest.into(),
            })
        };
        match self.batch {
            1 => Ok(()),
            0 => refuse("the batch is empty", "a batch of one"),
            _ if self.extremum.is_some() => {
                refuse("max and min are of one matrix", "one product after another")
            }
            _ if !matches!(self.operation, Operation::Spmm | Operation::Sddmm) => {
                refuse("it has no batches", "one product after another")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_side_by_side_or_one_above_the_other() {
        let batch = |count, layout| Batch {
            op: "attention",
            name: "Q",
            count,
            rows: 5,
            columns: 3,
            layout,
        };
        let (row, column) = (Layout::RowMajor, Layout::ColumnMajor);
        let of = |b: Batch, shape, layout, ld| b.strides(shape, layout, ld).ok().map(|s| s.matrix);
        assert_eq!(of(batch(4, row), (5, 12), row, 16), Some(3));
        assert_eq!(of(batch(4, row), (20, 3), row, 8), Some(40));
        assert_eq!(of(batch(4, column), (5, 12), column, 7), Some(21));
        assert_eq!(of(batch(4, column), (20, 3), column, 32), Some(5));
        assert_eq!(of(batch(1, row), (5, 3), row, 9), Some(3));
        for (shape, layout) in [((5, 3), row), ((20, 12), row), ((5, 12), column), ((12, 5), row)] {
            let refused = batch(4, row).strides(shape, layout, 99).unwrap_err().to_string();
            assert!(refused.contains("Q of 5 x 12 or 20 x 3"), "{refused}");
        }
    }

    #[test]
    fn one_row_or_column_is_of_both_layouts() {
        let (row, column) = (Layout::RowMajor, Layout::ColumnMajor);
        let of = |(rows, columns), layout, found, ld| {
            let batch = Batch { op: "spmm", name: "B", count: 1, rows, columns, layout };
            batch.strides((rows, columns), found, ld).ok().map(|s| s.line)
        };
        // A packed column, and one of a wider matrix.
        assert_eq!(of((5, 1), column, row, 1), Some(5));
        assert_eq!(of((5, 1), column, row, 4), None);
        assert_eq!(of((5, 1), row, column, 9), Some(1));
        // A packed row, and one of a higher matrix.
        assert_eq!(of((1, 5), row, column, 1), Some(5));
        assert_eq!(of((1, 5), row, column, 4), None);
        assert_eq!(of((1, 5), column, row, 9), Some(1));
        assert_eq!(of((1, 1), row, column, 7), Some(1));
        // No elements, and two lines.
        assert_eq!(of((0, 5), row, column, 3), Some(5));
        assert_eq!(of((2, 2), row, column, 2), None);
        // Heads of one column, one above the other.
        let batch = Batch { op: "spmm", name: "B", count: 3, rows: 4, columns: 1, layout: column };
        assert_eq!(batch.strides((12, 1), row, 1).ok(), Some(Strides { matrix: 4, line: 12 }));
    }
}
