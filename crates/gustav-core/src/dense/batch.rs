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

impl Batch {
    /// Distance in values from one matrix to the next in a dense matrix of `shape`, `layout` and leading dimension
    /// `ld`.
    ///
    /// # Errors
    /// [`Error::Shape`] when it does not hold the batch.
    pub fn distance(&self, shape: (usize, usize), layout: Layout, ld: usize) -> Result<usize> {
        let Batch { count, rows, columns, .. } = *self;
        let beside = shape == (rows, columns.saturating_mul(count));
        let below = shape == (rows.saturating_mul(count), columns);
        if layout != self.layout || !(beside || below) {
            return Err(self.refused(shape, layout));
        }
        // A batch of one is both side by side and one above the other.
        Ok(match (beside, layout) {
            (true, Layout::RowMajor) => columns,
            (true, Layout::ColumnMajor) => columns.saturating_mul(ld),
            (false, Layout::RowMajor) => rows.saturating_mul(ld),
            (false, Layout::ColumnMajor) => rows,
        })
    }

    /// Matrix `index` of the batch in `all`.
    ///
    /// # Errors
    /// As [`Batch::distance`].
    ///
    /// # Panics
    /// When there is no such matrix, as slices do.
    pub fn matrix<'a, T: Scalar>(
        &self,
        all: &DenseView<'a, T>,
        index: usize,
    ) -> Result<DenseView<'a, T>> {
        let ld = all.leading_dimension();
        let distance = self.distance((all.nrows(), all.ncols()), all.layout(), ld)?;
        assert!(index < self.count, "matrix {index} of {}", self.count);
        let at = all.as_ptr().wrapping_add(index * distance);
        // SAFETY: the matrix is a block of the columns or of the rows of `all`, whose elements are borrowed.
        unsafe { DenseView::from_raw_parts(self.rows, self.columns, self.layout, ld, at) }
    }

    /// Matrix `index` of the batch in `all`, to be written.
    ///
    /// # Errors
    /// As [`Batch::distance`].
    ///
    /// # Panics
    /// When there is no such matrix, as slices do.
    pub fn matrix_mut<'a, T: Scalar>(
        &self,
        all: &'a mut DenseViewMut<'_, T>,
        index: usize,
    ) -> Result<DenseViewMut<'a, T>> {
        let ld = all.leading_dimension();
        let distance = self.distance((all.nrows(), all.ncols()), all.layout(), ld)?;
        assert!(index < self.count, "matrix {index} of {}", self.count);
        let at = all.as_mut_ptr().wrapping_add(index * distance);
        // SAFETY: as in `matrix`; `all` is borrowed as long as the block lives.
        unsafe { DenseViewMut::from_raw_parts(self.rows, self.columns, self.layout, ld, at) }
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
        let of = |b: Batch, shape, layout, ld| b.distance(shape, layout, ld).ok();
        assert_eq!(of(batch(4, row), (5, 12), row, 16), Some(3));
        assert_eq!(of(batch(4, row), (20, 3), row, 8), Some(40));
        assert_eq!(of(batch(4, column), (5, 12), column, 7), Some(21));
        assert_eq!(of(batch(4, column), (20, 3), column, 32), Some(5));
        assert_eq!(of(batch(1, row), (5, 3), row, 9), Some(3));
        for (shape, layout) in [((5, 3), row), ((20, 12), row), ((5, 12), column), ((12, 5), row)] {
            let refused = batch(4, row).distance(shape, layout, 99).unwrap_err().to_string();
            assert!(refused.contains("Q of 5 x 12 or 20 x 3"), "{refused}");
        }
    }
}
