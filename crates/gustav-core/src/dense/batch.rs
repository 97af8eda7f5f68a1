//! Several matrices of one shape in one dense matrix.

use super::Layout;
use crate::{Error, Result};

/// The shape of a batch of matrices that one dense matrix holds: side by side in its columns, as
/// `n × (heads · d)`, or one above the other in its rows, as `(heads · n) × d`. Which of them, the shape of the matrix
/// says.
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
    /// Values from one matrix to the next in a dense matrix of `shape`, `layout` and leading dimension `ld`.
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
        // A batch of one is both.
        Ok(match (beside, layout) {
            (true, Layout::RowMajor) => columns,
            (true, Layout::ColumnMajor) => columns * ld,
            (false, Layout::RowMajor) => rows * ld,
            (false, Layout::ColumnMajor) => rows,
        })
    }

    fn refused(&self, (nrows, ncols): (usize, usize), found: Layout) -> Error {
        let Batch { op, name, count, rows, columns, layout } = *self;
        let (wide, tall) = (columns.saturating_mul(count), rows.saturating_mul(count));
        let expected = match count {
            1 => format!("{name} of {rows} x {columns}, {layout}"),
            _ => format!(
                "{name} of {rows} x {wide} or {tall} x {columns}, {layout}, for {count} heads"
            ),
        };
        Error::Shape { op, expected, found: format!("{nrows} x {ncols}, {found}") }
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
