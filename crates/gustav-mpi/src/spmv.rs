//! SpMV over ranks: y = scale(α, op(A)·x) ⊕ scale(β, y).

use gustav_core::{
    DenseView, DenseViewMut, Index, Layout, Operation, Problem, Result, Scale, Values,
};

use crate::{Device, DistPattern, DistScalar, Explanation, SpmmPlan};

/// A plan for sparse × vector products with one pattern over ranks: an [`SpmmPlan`] of one column, on vectors.
pub struct SpmvPlan<T: DistScalar> {
    inner: SpmmPlan<T>,
}

impl<T: DistScalar> SpmvPlan<T> {
    /// Plans `problem` for `pattern`. Collective.
    ///
    /// # Errors
    /// As [`SpmmPlan::new`].
    pub fn new<I: Index, O: Index>(
        pattern: &DistPattern<I, O>,
        problem: &Problem,
        device: &Device,
    ) -> Result<Self> {
        let problem = Problem { operation: Operation::Spmv, columns: 1, ..problem.clone() };
        Ok(SpmvPlan { inner: SpmmPlan::new(pattern, &problem, device)? })
    }

    /// What is computed, what ranks send, and how work is balanced.
    pub fn explain(&self) -> &Explanation {
        self.inner.explain()
    }

    /// y = scale(α, op(A)·x) ⊕ scale(β, y), with this rank's values of A and elements of x and y. Collective.
    ///
    /// # Errors
    /// As [`SpmmPlan::execute`].
    pub fn execute<'v>(
        &mut self,
        values: impl Into<Values<'v, T>>,
        x: &'v [T],
        y: &'v mut [T],
        scale: impl Into<Scale<T::Accum>>,
    ) -> Result<()> {
        let x = DenseView::new(x.len(), 1, Layout::RowMajor, 1, x)?;
        let y = DenseViewMut::new(y.len(), 1, Layout::RowMajor, 1, y)?;
        self.inner.execute(values, x, y, scale)
    }
}
