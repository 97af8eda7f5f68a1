//! Arrays of dense operands, with padding.

use gustav_core::{DenseView, Layout, Result, Scalar};

/// Shape and leading dimension of a dense operand; its array is longer than it needs when
/// padded.
pub(super) struct Storage {
    nrows: usize,
    ncols: usize,
    pub layout: Layout,
    pub ld: usize,
    len: usize,
}

impl Storage {
    pub fn new(nrows: usize, ncols: usize, layout: Layout, padded: bool) -> Self {
        let (lines, line) = match layout {
            Layout::RowMajor => (nrows, ncols),
            Layout::ColumnMajor => (ncols, nrows),
        };
        // Odd, so that padded lines are not aligned to vectors.
        let ld = if padded { (line + 3) | 1 } else { line };
        Storage { nrows, ncols, layout, ld, len: lines * ld }
    }

    /// Whether element `k` of the array belongs to the matrix.
    pub fn holds(&self, k: usize) -> bool {
        let line = match self.layout {
            Layout::RowMajor => self.ncols,
            Layout::ColumnMajor => self.nrows,
        };
        k % self.ld.max(1) < line
    }

    pub fn fill<T: Scalar>(&self, outside: T, inside: &[T]) -> Vec<T> {
        let mut inside = inside.iter();
        let next = |k| if self.holds(k) { inside.next().copied() } else { None };
        (0..self.len).map(next).map(|v| v.unwrap_or(outside)).collect()
    }

    pub fn view<'a, T: Scalar>(&self, data: &'a [T]) -> Result<DenseView<'a, T>> {
        DenseView::new(self.nrows, self.ncols, self.layout, self.ld, data)
    }
}
